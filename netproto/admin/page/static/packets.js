import { to } from "./address.js";
import { el, problem, setText } from "./dom.js";
import { filterWords } from "./filter.js";
import { commandCut } from "./server.js";
import { now } from "./state.js";
import { count, label, span } from "./text.js";

// A page of the packets of a queue. Never all of them: the server goes on from a cursor.

const perPage = 20;
const most = 400; // bytes of a payload, a tag or a reason
const states = ["", "ready", "delayed", "claimed", "dead", "done", "damaged"];

export class Packets {
  constructor(place) {
    this.cursors = ["0"]; // of the pages up to this one
    this.heading = el("h2", { tabindex: "-1" }, "Packets");
    this.tabs = el("nav", { class: "tabs", "aria-label": "Packets by state" });
    this.tags = el("input", { type: "search", "aria-label": "Only packets with tags", placeholder: 'Tags: class=high size<=10', spellcheck: "false", autocomplete: "off" });
    this.list = el("tbody", {});
    this.table = el("table", { class: "packets" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Packet"), el("th", { scope: "col" }, "State"),
      el("th", { scope: "col", class: "middle" }, "Priority"), el("th", { scope: "col", class: "narrow" }, "Attempts"), el("th", { scope: "col", class: "narrow" }, "Age"), el("th", { scope: "col" }, "Payload"))), this.list);
    this.note = el("p", { class: "muted", role: "status" });
    const button = (words, click) => el("button", { type: "button", click }, words);
    this.first = button("First page", () => { this.cursors = ["0"]; this.load(); });
    this.back = button("Back", () => { this.cursors.pop(); this.load(); });
    this.next = button("Next page", () => { this.cursors.push(this.cursor); this.load(); });
    this.element = el("section", { class: "list" }, this.heading,
      el("form", { class: "bar", submit: (e) => { e.preventDefault(); location.hash = to("queue", this.place.database, this.place.name, { state: this.place.state, tags: this.tags.value }); } },
        this.tabs, this.tags, el("button", { type: "submit" }, "Filter")),
      this.table, this.note, el("div", { class: "buttons" }, this.first, this.back, this.next, button("Refresh", () => this.load())));
    this.set(place);
  }

  set(place) {
    this.place = place;
    this.cursors = ["0"];
    this.tags.value = place.tags;
    this.tabs.replaceChildren(...states.map((s) => el("a", { href: to("queue", place.database, place.name, { state: s, tags: place.tags }), "aria-current": s === place.state ? "true" : null }, s || "all")));
  }

  async go(place) {
    this.set(place);
    await this.load();
    this.heading.focus();
  }

  async load() {
    const asked = this.asked = {};
    const { database, name, state, tags } = this.place;
    try {
      const [cursor, all] = await commandCut(most, database, "QLIST", name, ...(state ? ["STATE", state] : []), ...filterWords(tags), "CURSOR", this.cursors.at(-1), "COUNT", perPage);
      if (asked !== this.asked) return;
      this.cursor = cursor;
      this.show(all);
    } catch (e) {
      if (asked !== this.asked) return;
      this.cursor = "0";
      this.list.replaceChildren();
      this.note.replaceChildren(problem(e.message));
    }
    const more = String(this.cursor) !== "0";
    this.next.disabled = !more;
    this.back.disabled = this.first.disabled = this.cursors.length === 1;
  }

  show(all) {
    this.table.hidden = all.length === 0;
    this.list.replaceChildren(...all.map((p) => this.row(p)));
    const more = String(this.cursor) !== "0";
    setText(this.note, all.length ? "Page " + this.cursors.length + ", " + count(all.length) + (all.length === 1 ? " packet" : " packets") + (more ? "; there are more." : ".")
      : more ? "None among those that were looked at. Look further on the next page." : "No packets" + (this.place.state ? " are " + this.place.state : "") + (this.place.tags ? " with these tags." : "."));
  }

  row(p) {
    const tags = Array.isArray(p.tags) ? p.tags : Object.entries(p.tags ?? {});
    return el("tr", {},
      el("td", {}, el("a", { href: to("packet", this.place.database, this.place.name, { id: p.id }) }, p.id)),
      el("td", { class: "state " + p.state }, p.state),
      el("td", { class: "middle" }, count(p.priority)),
      el("td", { class: "narrow" }, count(p.attempt)),
      el("td", { class: "narrow" }, p.enqueued ? span(now() - p.enqueued) : "–"),
      el("td", { class: "payload" },
        el("bdi", { class: "name" }, p.payload === undefined ? "(cannot be read)" : label(p.payload, 160) || "(empty)"),
        tags.length || p.key !== undefined ? el("small", {}, p.key !== undefined ? [el("bdi", {}, "key " + label(p.key, 60)), " "] : null, tags.slice(0, 8).map(([k, v]) => [el("bdi", { class: "tag" }, label(k, 40) + "=" + label(v, 40)), " "]).flat()) : null,
        p.reason !== undefined ? el("small", { class: "reason" }, el("bdi", {}, label(p.reason, 200))) : null));
  }
}
