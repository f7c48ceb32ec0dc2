import { el, setText, setTimed } from "./dom.js";
import { Past } from "./past.js";
import { plots } from "./plot.js";
import { problems } from "./problems.js";
import { state } from "./state.js";
import { count, short, size, span, stamp } from "./text.js";

// The whole server: what is wrong, how many packets there are, and what it does.

const tiles = [
  ["Ready", "ready", (s) => count(s.packets.ready)],
  ["Delayed", "delayed", (s) => count(s.packets.delayed)],
  ["Claimed", "claimed", (s) => count(s.packets.claimed)],
  ["Dead", "dead", (s) => count(s.packets.dead)],
];

// Figures of the whole server are told to those who may look at all of it, so a row can be null.
const rows = [
  ["Queues", (s) => count(s.queues)],
  ["Bytes in queues", (s) => size(s.bytes)],
  ["Pushed, a second", (s) => s.totals && short(s.rates.pushed)],
  ["Popped, a second", (s) => s.totals && short(s.rates.popped)],
  ["Acknowledged, a second", (s) => s.totals && short(s.rates.acked)],
  ["Pushed since the start", (s) => s.totals && count(s.totals.pushed)],
  ["Connections", (s) => s.connections && (Object.entries(s.connections).filter(([, n]) => n).map(([door, n]) => door + " " + count(n)).join(", ") || "none")],
  ["Disk", (s) => s.disk && size(s.disk.free) + " free of " + size(s.disk.total)],
  ["Memory", (s) => s.memory && size(s.memory.rss || s.memory.heap)],
  ["Last good backup", (s) => s.totals && (s.backup?.at ? stamp(s.backup.at) + ", " + span(s.at - s.backup.at) + " ago" : "none known")],
];

export class Overview {
  constructor() {
    this.title = "Overview";
    this.problems = el("ul", { class: "problems", "aria-label": "Problems" });
    this.tiles = tiles.map(() => el("dd", {}, "–"));
    this.cells = rows.map(() => el("dd", {}, "–"));
    this.past = new Past(() => this.draw());
    this.plots = plots(this.past);
    this.element = el("section", {}, el("h1", { tabindex: "-1" }, "Overview"), this.problems,
      el("dl", { class: "tiles" }, tiles.map(([name, className], i) => el("div", { class: className }, el("dt", {}, el("a", { href: "#/queues?sort=" + className }, name)), this.tiles[i]))),
      el("div", { class: "plots" }, this.plots.map((p) => p.element)),
      el("dl", { class: "figures" }, rows.map(([name], i) => el("div", {}, el("dt", {}, name), this.cells[i]))));
  }

  shown() {
    this.update();
  }

  update() {
    if (!state.server) return;
    tiles.forEach(([, , words], i) => setText(this.tiles[i], words(state.server)));
    rows.forEach(([, words], i) => {
      const told = words(state.server);
      this.cells[i].parentElement.hidden = !told;
      setTimed(this.cells[i], told ?? "");
    });
    const { at, packets, totals } = state.server;
    let since = 0;
    const seen = { pushed: 0, popped: 0, acked: 0 }; // what a user who may not look at all queues sees
    for (const q of state.queues.values()) {
      if (q.since && (!since || q.since < since)) since = q.since;
      for (const name in seen) seen[name] += q[name];
    }
    this.past.add(at, packets, totals ?? seen, since);
    this.draw();
    this.showProblems();
  }

  draw() {
    for (const p of this.plots) p.update();
  }

  // The list stays while the focus is in it: its elements would be others.
  showProblems() {
    if (this.problems.matches(":focus-within")) return;
    const found = problems();
    const said = JSON.stringify(found);
    if (said === this.said) return;
    this.said = said;
    this.problems.replaceChildren(...(found.length ? found.map((p) => el("li", { class: p.grave ? "grave" : null }, p.text, p.links.length ? ": " : null, p.links.map((l, i) => [i ? ", " : null,
      el("a", { href: l.href }, el("bdi", { class: "name" }, l.label)), l.note ? " (" + l.note + ")" : null]).flat(),
    p.more ? " and " + count(p.more) + " more" : null)) : [el("li", { class: "fine" }, "Nothing needs you.")]));
  }

  end() {
    for (const p of this.plots) p.end();
  }
}
