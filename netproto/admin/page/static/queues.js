import { to } from "./address.js";
import { badges, el, setText } from "./dom.js";
import { now, queueStates, rates, state } from "./state.js";
import { brief, count, short } from "./text.js";

// The table of all queues. Only the rows that can be seen are elements, so ten thousand queues cost
// no more than thirty.

const spare = 8; // rows above and below what is seen
const rowHeight = 36; // as in app.css

const age = (q) => q.since ? now() - q.since : 0;

// Columns are [title, value to sort by, text, class, what the title means].
const columns = [
  ["Queue", (q) => q.label, null, "name"],
  ["Ready", (q) => q.ready, (q) => count(q.ready), ""],
  ["Delayed", (q) => q.delayed, (q) => count(q.delayed), "wide"],
  ["Claimed", (q) => q.claimed, (q) => count(q.claimed), "middle"],
  ["Dead", (q) => q.dead, (q) => count(q.dead), ""],
  ["Oldest", age, (q) => age(q) ? brief(age(q)) : "–", "narrow", "age of the oldest ready packet"],
  ["In /s", (q) => rates(q).pushed, (q) => short(rates(q).pushed), "wide", "packets pushed in the last second"],
  ["Out /s", (q) => rates(q).popped + rates(q).acked, (q) => short(rates(q).popped + rates(q).acked), "middle", "packets popped or acknowledged in the last second"],
];

export class Queues {
  constructor(place) {
    this.title = "Queues";
    this.sort = Math.max(0, columns.findIndex(([title]) => title.toLowerCase() === place.sort));
    this.down = this.sort > 0;
    this.list = [];
    this.rows = [];
    this.filter = el("input", { type: "search", "aria-label": "Filter by name or state", placeholder: "Filter by name or state  ( / )", value: place.filter, spellcheck: "false", autocomplete: "off",
      input: () => this.refilter(), keydown: (e) => { if (e.key === "ArrowDown") { e.preventDefault(); this.focus(0); } else if (e.key === "Enter" && this.list.length === 1) location.hash = to("queue", this.list[0].database, this.list[0].name); } });
    this.number = el("span", { class: "muted", role: "status" });
    this.above = el("tr", { class: "space", "aria-hidden": "true" }, el("td", {}));
    this.below = el("tr", { class: "space", "aria-hidden": "true" }, el("td", {}));
    this.body = el("tbody", { keydown: (e) => this.key(e) }, this.above, this.below);
    this.heads = columns.map(([name, , , className, meaning], i) => el("th", { scope: "col", class: className },
      el("button", { type: "button", title: meaning, click: () => this.sortBy(i) }, name)));
    this.table = el("table", { class: "queues" }, el("thead", {}, el("tr", {}, this.heads)), this.body);
    this.element = el("section", {}, el("h1", { tabindex: "-1" }, "Queues"), el("div", { class: "bar" }, this.filter, this.number), this.table);
    addEventListener("scroll", this.scrolled = () => requestAnimationFrame(() => this.draw()), { passive: true });
    addEventListener("resize", this.scrolled);
    document.addEventListener("keydown", this.slash = (e) => {
      if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) { e.preventDefault(); this.filter.focus(); }
    });
  }

  shown() {
    this.update(true);
  }

  end() {
    removeEventListener("scroll", this.scrolled);
    removeEventListener("resize", this.scrolled);
    document.removeEventListener("keydown", this.slash);
  }

  refilter() {
    const query = this.filter.value ? "?" + new URLSearchParams({ filter: this.filter.value }) : "";
    history.replaceState(null, "", "#/queues" + query);
    this.update(true);
  }

  sortBy(i) {
    this.down = this.sort === i ? !this.down : i !== 0;
    this.sort = i;
    this.update(true);
  }

  // Rows keep their places while somebody points at them.
  update(always = false) {
    if (always || !this.body.matches(":hover, :focus-within")) this.order();
    else this.list = this.list.map((q) => state.queues.get(q.key)).filter(Boolean);
    const all = state.queues.size;
    setText(this.number, !state.session.look ? "Your user may look at no queue." : (this.list.length === all ? count(all) : count(this.list.length) + " of " + count(all)) + (all === 1 ? " queue" : " queues")
      + (state.more ? "; " + count(state.more) + " more are not shown" : ""));
    this.draw();
  }

  order() {
    const wanted = this.filter.value.toLowerCase();
    const all = [...state.queues.values()];
    const trouble = ["dead", "damaged", ...queueStates.map(([name]) => name)].filter((name) => wanted && name.startsWith(wanted));
    this.list = wanted ? all.filter((q) => (typeof q.name === "string" ? q.name : q.label).toLowerCase().includes(wanted) || trouble.some((name) => q[name])) : all;
    const value = columns[this.sort][1];
    const sign = this.down ? -1 : 1;
    const keyed = this.list.map((q) => [value(q), q]);
    const byName = (a, b) => a.label < b.label ? -1 : a.label > b.label ? 1 : a.database - b.database;
    keyed.sort(([a, p], [b, q]) => a < b ? -sign : a > b ? sign : byName(p, q));
    this.list = keyed.map(([, q]) => q);
    this.heads.forEach((h, i) => h.setAttribute("aria-sort", i !== this.sort ? "none" : this.down ? "descending" : "ascending"));
    this.table.setAttribute("aria-rowcount", this.list.length + 1);
  }

  draw() {
    const top = this.above.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(this.list.length, Math.floor(-top / rowHeight)) - spare);
    const last = Math.min(this.list.length, first + Math.ceil(innerHeight / rowHeight) + 2 * spare);
    while (this.rows.length < last - first) this.rows.push(new Row());
    for (const row of this.rows.splice(last - first)) row.element.remove();
    this.above.firstChild.style.height = first * rowHeight + "px";
    this.below.firstChild.style.height = (this.list.length - last) * rowHeight + "px";
    this.place(first, last);
  }

  // A row goes on showing the queue that it shows, so that a focus stays on its queue.
  place(first, last) {
    const had = new Map(this.rows.map((row) => [row.key, row]));
    const wanted = this.list.slice(first, last);
    const free = this.rows.filter((row) => !wanted.some((q) => q.key === row.key));
    let at = this.above;
    this.rows = wanted.map((q, i) => {
      const row = had.get(q.key) ?? free.pop();
      row.show(q, first + i);
      if (at.nextSibling !== row.element) at.after(row.element);
      at = row.element;
      return row;
    });
  }

  focus(i) {
    i = Math.max(0, Math.min(this.list.length - 1, i));
    if (!this.list.length) return;
    const top = this.above.getBoundingClientRect().top + i * rowHeight;
    const head = 100;
    if (top < head) scrollBy(0, top - head);
    else if (top + rowHeight > innerHeight) scrollBy(0, top + rowHeight - innerHeight + 8);
    this.draw();
    this.rows.find((row) => row.key === this.list[i].key)?.link.focus({ preventScroll: true });
  }

  key(e) {
    const page = Math.floor(innerHeight / rowHeight) - 4;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    const row = this.rows.find((r) => r.element.contains(e.target));
    if (!step || !row) return;
    e.preventDefault();
    if (row.index === 0 && step < 0) this.filter.focus();
    else this.focus(row.index + step);
  }
}

class Row {
  constructor() {
    this.link = el("a", {}, el("bdi", {}));
    this.base = el("span", { class: "muted" });
    this.states = el("span", { class: "states" });
    this.cells = columns.map(([, , , className], i) => el("td", { class: className }, i ? null : [this.link, this.base, this.states]));
    this.element = el("tr", {}, this.cells);
  }

  show(q, index) {
    if (this.key !== q.key) {
      this.key = q.key;
      setText(this.link.firstChild, q.label || "(empty name)");
      this.link.href = to("queue", q.database, q.name);
      setText(this.base, q.database ? " db " + q.database : "");
    }
    this.index = index;
    this.element.setAttribute("aria-rowindex", index + 2);
    badges(this.states, queueStates.filter(([name]) => q[name]));
    columns.forEach(([, , words], i) => { if (words) setText(this.cells[i], words(q)); });
    this.cells[4].classList.toggle("bad", q.dead > 0);
  }
}
