import * as actions from "./actions.js";
import { to } from "./address.js";
import { el, problem, setTimed } from "./dom.js";
import { filterWords } from "./filter.js";
import { commandCut } from "./server.js";
import { now, packetStates } from "./state.js";
import { count, label, line, span, stamp } from "./text.js";

// A page of the packets of a queue. Never all of them: the server goes on from a cursor.

const perPage = 20;
const perSearch = 500; // packets that a search asks for at a time
const mostSearched = 10_000;
const most = 400; // bytes of a payload, a tag or a reason
const mostErrors = 20; // that are named
const errorClass = "last-error-class";

// Columns are [title, class, what a packet has there]; the link to the packet is in the first.
const columns = [
  ["Packet", "", null],
  ["State", "", (p) => [el("span", { class: "state " + p.state }, p.state), p.cancelled ? " cancelled" : null]],
  ["Priority", "middle", (p) => count(p.priority)],
  ["Attempts", "narrow", (p) => count(p.attempt)],
  ["Age", "narrow", (p) => p.enqueued ? span(now() - p.enqueued) : "–"],
  ["Payload", "payload", payload],
];

export class Packets {
  // changed is called when packets were changed.
  constructor(place, changed) {
    this.q = { database: place.database, name: place.name };
    this.changed = changed;
    this.cursors = ["0"]; // of the pages up to this one
    this.rows = []; // {packet, box, element}
    this.heading = el("h2", { tabindex: "-1" }, "Packets");
    this.tabs = el("nav", { class: "tabs", "aria-label": "Packets by state" });
    this.tags = el("input", { type: "search", "aria-label": "Only packets with tags", placeholder: 'Tags: class=high size<=10', spellcheck: "false", autocomplete: "off" });
    this.find = el("input", { type: "search", "aria-label": "Find packets by id, key, producer or last error", placeholder: "Find by id, key, producer or last error", spellcheck: "false", autocomplete: "off" });
    this.leave = el("a", {}, "Show all");
    this.all = el("input", { type: "checkbox", "aria-label": "Tick all packets of this page", change: () => { for (const r of this.rows) r.box.checked = this.all.checked; this.tick(); } });
    this.list = el("tbody", {});
    this.table = el("table", { class: "packets" }, el("thead", {}, el("tr", {}, el("th", { class: "tick" }, this.all),
      columns.map(([title, className]) => el("th", { scope: "col", class: className }, title)))), this.list);
    this.note = el("p", { class: "muted", role: "status" });
    this.errors = el("p", { class: "errors" });
    const button = (words, click) => el("button", { type: "button", click }, words);
    this.first = button("First page", () => { this.cursors = ["0"]; this.load(); });
    this.back = button("Back", () => { this.cursors.pop(); this.load(); });
    this.next = button("Next page", () => { this.cursors.push(this.cursor); this.load(); });
    this.element = el("section", { class: "list" }, this.heading, this.tabs, el("div", { class: "bar" },
      el("form", { class: "bar", submit: (e) => { e.preventDefault(); location.hash = to("queue", this.place.database, this.place.name, { state: this.place.state, tags: this.tags.value }); } },
        this.tags, el("button", { type: "submit" }, "Filter")),
      el("form", { class: "bar", role: "search", submit: (e) => { e.preventDefault(); location.hash = to("queue", this.place.database, this.place.name, { find: this.find.value.trim() }); } },
        this.find, el("button", { type: "submit" }, "Find"), this.leave)),
      this.errors, this.tickedBar(), this.table, this.note, el("div", { class: "buttons" }, this.first, this.back, this.next, button("Refresh", () => this.reload())));
    this.set(place);
  }

  tickedBar() {
    const button = (words, action, className) => el("button", { type: "button", class: className, click: async () => { if (await action(this.q, this.ticked().map((p) => p.id))) this.changed(); } }, words);
    this.number = el("strong", { role: "status" });
    this.retry = button("Retry ticked…", actions.redrivePackets);
    this.bar = el("div", { class: "bar ticked", role: "group", "aria-label": "Actions on ticked packets", hidden: true },
      this.number, this.retry, button("Move ticked…", actions.movePackets), button("Cancel ticked…", actions.cancelPackets, "danger"), button("Delete ticked…", actions.deletePackets, "danger"));
    return this.bar;
  }

  // offer shows boxes to tick, if the user may change the queue.
  offer(manage) {
    this.table.classList.toggle("fixed", !manage);
    this.manage = manage;
    this.tick();
  }

  ticked() {
    return this.rows.filter((r) => r.box.checked).map((r) => r.packet);
  }

  tick() {
    const ticked = this.ticked();
    this.bar.hidden = !this.manage || !ticked.length;
    this.all.checked = ticked.length > 0 && ticked.length === this.rows.length;
    this.all.indeterminate = ticked.length > 0 && !this.all.checked;
    this.retry.disabled = !ticked.some((p) => p.state === "dead" || p.origin !== undefined);
    this.retry.title = this.retry.disabled ? "None of them is dead." : "";
    setTimed(this.number, count(ticked.length) + " ticked");
  }

  set(place) {
    this.place = place;
    this.cursors = ["0"];
    this.grouped = null;
    this.errors.replaceChildren();
    this.tags.value = place.tags;
    this.find.value = place.find;
    this.leave.href = to("queue", place.database, place.name);
    this.leave.hidden = !place.find;
    this.tabs.replaceChildren(...["", ...packetStates].map((s) => el("a", { href: to("queue", place.database, place.name, { state: s, tags: place.tags }), "aria-current": s === place.state ? "true" : null }, s || "all")));
  }

  async go(place) {
    this.set(place);
    await this.reload();
    this.heading.focus();
  }

  // reload shows the page again, and the errors, which may have changed. Another page of the same
  // list, which load shows, has the same errors: a group under way goes on.
  async reload() {
    const grouped = this.grouped = {};
    await this.load();
    this.group(grouped).catch(() => { if (grouped === this.grouped) this.errors.replaceChildren(); }); // the list says why
  }

  async load() {
    const asked = this.asked = {};
    try {
      const [cursor, all] = await (this.place.find ? this.search(asked) : this.ask(this.cursors.at(-1), perPage));
      if (asked !== this.asked) return;
      this.cursor = cursor;
      this.show(all);
    } catch (e) {
      if (asked !== this.asked) return;
      this.cursor = "0";
      this.show([]);
      this.note.replaceChildren(problem(e.message));
    }
    const more = String(this.cursor) !== "0";
    this.next.disabled = !more;
    this.back.disabled = this.first.disabled = this.cursors.length === 1;
  }

  ask(cursor, n) {
    const { database, name, state, tags } = this.place;
    return commandCut(most, database, "QLIST", name, ...(state ? ["STATE", state] : []), ...filterWords(tags), "CURSOR", cursor, "COUNT", n);
  }

  // search looks at the queue piece by piece, until it has a page or has looked at enough for once.
  // An id is found at once, unless one state is asked for: then it is an error.
  async search(asked) {
    const { database, name, find, state } = this.place;
    const isID = !state && /^[1-9]\d{0,18}$/.test(find) && this.cursors.length === 1;
    if (isID && await commandCut(1, database, "QSHOW", name, find).catch(() => null) !== null && asked === this.asked) {
      this.asked = null;
      location.replace(to("packet", database, name, { id: find }));
    }
    const found = [];
    let cursor = this.cursors.at(-1);
    for await (const [next, all, looked] of this.pieces(cursor, () => asked === this.asked)) {
      setTimed(this.note, "Looking; " + count(looked) + " so far…");
      found.push(...all.filter((p) => [p.key, p.producer, p[errorClass]].some((v) => label(v, most) === find)));
      cursor = next;
      if (found.length >= perPage) break;
    }
    return [cursor, found];
  }

  // pieces gives the packets from a cursor on, with the next cursor, and how many are looked at so
  // far: mostSearched at most, and no more once they are not wanted.
  async *pieces(cursor, wanted) {
    for (let looked = perSearch; looked <= mostSearched && wanted(); looked += perSearch) {
      const [next, all] = await this.ask(cursor, perSearch);
      yield [next, all, looked];
      if (String(next) === "0") return;
      cursor = next;
    }
  }

  // group says which errors dead packets have, those with the most packets first.
  async group(grouped) {
    const { database, name, state, tags } = this.place;
    if (state !== "dead") return;
    const counts = new Map();
    let more = false;
    for await (const [next, all] of this.pieces("0", () => grouped === this.grouped)) {
      for (const p of all) {
        const error = label(p[errorClass], most);
        if (error) counts.set(error, (counts.get(error) ?? 0) + 1);
      }
      more = String(next) !== "0";
    }
    if (grouped !== this.grouped) return;
    const worst = [...counts].sort((a, b) => b[1] - a[1]);
    this.errors.replaceChildren(...(worst.length ? ["By their last error" + (more ? ", of the first " + count(mostSearched) : "") + ": ",
      ...worst.slice(0, mostErrors).flatMap(([error, n], i) => [i ? ", " : "", el("a", { href: to("queue", database, name, { state, tags, find: error }) }, el("bdi", {}, error)), " (" + count(n) + ")"]),
      worst.length > mostErrors ? " and " + count(worst.length - mostErrors) + " more" : ""] : []));
  }

  // Packets that are still there stay ticked.
  show(all) {
    const ticked = this.ticked().map((p) => p.id);
    this.table.hidden = all.length === 0;
    this.rows = all.map((p) => this.row(p, ticked.includes(p.id)));
    this.list.replaceChildren(...this.rows.map((r) => r.element));
    this.tick();
    const more = String(this.cursor) !== "0";
    const found = this.place.find ? " with the id, key, producer or last error " + this.place.find : "";
    setTimed(this.note, (found && all.length ? count(all.length) + (all.length === 1 ? " packet" : " packets") + found + (more ? "; look further on the next page." : ".")
      : found && !more ? "No packet has the id, key, producer or last error " + this.place.find + "."
      : all.length ? "Page " + this.cursors.length + ", " + count(all.length) + (all.length === 1 ? " packet" : " packets") + (more ? "; there are more." : ".")
      : more ? "None among those that were looked at. Look further on the next page." : "No packets" + (this.place.state ? " are " + this.place.state : "") + (this.place.tags ? " with these tags." : "."))
      + " As of " + stamp(now()) + ".");
  }

  row(packet, ticked) {
    const box = el("input", { type: "checkbox", checked: ticked, "aria-label": "Tick packet " + packet.id, change: () => this.tick() });
    const link = el("a", { href: to("packet", this.place.database, this.place.name, { id: packet.id }) }, packet.id);
    const element = el("tr", {}, el("td", { class: "tick" }, box), columns.map(([, className, has]) => el("td", { class: className }, has ? has(packet) : link)));
    return { packet, box, element };
  }
}

function payload(p) {
  const tags = Array.isArray(p.tags) ? p.tags : Object.entries(p.tags ?? {});
  return [
    el("bdi", { class: "name" }, p.payload === undefined ? "(cannot be read)" : line(p.payload, 160) || "(empty)"),
    tags.length || p.key !== undefined ? el("small", {}, p.key !== undefined ? [el("bdi", {}, "key " + label(p.key, 60)), " "] : null, tags.slice(0, 8).map(([k, v]) => [el("bdi", { class: "tag" }, label(k, 40) + "=" + label(v, 40)), " "]).flat()) : null,
    p.reason !== undefined ? el("small", { class: "reason" }, el("bdi", {}, line(p.reason, 200))) : null,
  ];
}
