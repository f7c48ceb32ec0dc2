import * as actions from "./actions.js";
import { to } from "./address.js";
import { badges, el, figures, setText, timed } from "./dom.js";
import { Packets } from "./packets.js";
import { Past } from "./past.js";
import { plots } from "./plot.js";
import { reasons } from "./reasons.js";
import { command, commandCut } from "./server.js";
import { keyOf, mayManage, now, queueStates, rates, state } from "./state.js";
import { count, label, size, span, stamp, yes } from "./text.js";

// One queue: how many packets are in which state, why they do not move, who works on them, and
// what can be done.

const every = 5000; // milliseconds between two looks at what the server does not tell by itself
const tiles = ["ready", "delayed", "claimed", "dead"];
const rare = ["hidden", "done", "damaged"];
const times = ["lease", "backoff-min", "backoff-max", "retain", "retain-dead", "alert-age"];

export class Queue {
  constructor(place) {
    this.place = place;
    this.q = { database: place.database, name: place.name };
    this.key = keyOf(place.database, place.name);
    this.title = label(place.name, 60);
    this.states = el("span", { class: "states" });
    this.why = el("ul", { class: "why", "aria-label": "Why packets move or do not" });
    this.tiles = new Map([...tiles, ...rare].map((s) => [s, el("dd", {}, "–")]));
    this.tileOf = new Map([...tiles, ...rare].map((s) => [s, el("div", { class: s }, el("dt", {},
      s === "hidden" ? "priority 0" : el("a", { href: to("queue", place.database, place.name, { state: s }) }, s)), this.tiles.get(s))]));
    this.facts = el("dl", { class: "figures" });
    this.consumers = el("div", {});
    this.producers = el("div", { class: "producers" });
    this.shares = el("section", { class: "shares", hidden: true }); // of a queue with share-by
    this.settings = el("div", {});
    this.priorities = el("div", {});
    this.past = new Past(() => this.draw(), place);
    this.plots = plots(this.past);
    this.packets = new Packets(place, () => this.changed());
    this.element = el("section", { class: "queue" },
      el("p", { class: "path" }, el("a", { href: "#/queues" }, "Queues"), place.database ? " · database " + place.database : ""),
      el("h1", { tabindex: "-1" }, el("bdi", { class: "name" }, label(place.name, 300) || "(empty name)"), this.states),
      this.why, el("dl", { class: "tiles" }, [...this.tileOf.values()]), this.buttons(), this.barred,
      el("div", { class: "plots" }, this.plots.map((p) => p.element)), this.packets.element,
      el("h2", {}, "Consumers"), this.consumers, el("h2", {}, "Producers"), this.producers, this.shares, el("h2", {}, "Since the queue was made"), this.facts,
      el("h2", {}, "Ready packets by priority"), this.priorities, el("h2", {}, "Settings"), this.settings);
  }

  buttons() {
    const button = (words, action, className) => el("button", { type: "button", class: className, click: async () => { if (await action()) this.changed(); } }, words);
    const gate = (end) => button("", () => actions.gate(this.q, end, !this.paused(end)));
    this.gates = { "pause-in": gate("pause-in"), "pause-out": gate("pause-out") };
    this.redrive = button("Retry dead…", () => actions.redrive(this.q, this.place.tags));
    this.harvest = button("End claims…", () => actions.harvest(this.q, this.place.tags));
    this.showGates();
    this.barred = el("p", { class: "muted", hidden: true }, "Your user may look at this queue and change nothing.");
    return this.actions = el("div", { class: "actions", role: "group", "aria-label": "Actions on this queue", hidden: true },
      this.redrive,
      this.gates["pause-out"], this.gates["pause-in"], this.harvest,
      button("Move…", () => actions.move(this.q, this.place.state, this.place.tags)),
      button("Delete…", () => actions.purge(this.q, this.place.state, this.place.tags), "danger"));
  }

  paused(end) {
    return yes(this.got?.settings[end]);
  }

  showGates() {
    setText(this.gates["pause-out"], (this.paused("pause-out") ? "Resume" : "Pause") + " deliveries…");
    setText(this.gates["pause-in"], (this.paused("pause-in") ? "Resume" : "Pause") + " pushes…");
  }

  shown() {
    this.look();
    this.packets.reload();
    this.update();
  }

  // goes shows other packets of the same queue, and tells whether that is all that was asked for.
  goes(place) {
    if (keyOf(place.database, place.name) !== this.key) return false;
    this.place = place;
    this.packets.go(place);
    return true;
  }

  changed() {
    this.look();
    this.packets.reload();
  }

  async look() {
    clearTimeout(this.timer);
    try {
      const ask = (name) => command(this.q.database, name, this.q.name);
      const [stat, settings, consumers, producers, delayed] = await Promise.all([ask("QSTAT"), ask("QGET"), ask("QCONSUMERS"), ask("QPRODUCERS"), commandCut(64, this.q.database, "QLIST", this.q.name, "STATE", "delayed", "COUNT", 1)]);
      const shares = settings["share-by"] === "no" ? null : await command(this.q.database, "QSHARES", this.q.name, "COUNT", 1000);
      this.got = { stat, settings, consumers, producers, shares, next: delayed[1][0] };
      this.failed = null;
    } catch (e) {
      this.failed = e.code === "NOPERM" ? "Your user may not look at this queue." : e.message;
    }
    if (this.ended) return;
    this.timer = setTimeout(() => this.look(), every);
    this.showGates();
    this.showGot();
    this.update();
  }

  update() {
    const live = state.queues.get(this.key);
    const q = live ?? (this.failed ? null : this.got?.stat);
    for (const [s, cell] of this.tiles) setText(cell, q ? count(q[s]) : "–");
    this.offer(q);
    this.seen ||= Boolean(live); // one that is empty now may have packets soon
    this.element.classList.toggle("gone", Boolean(this.failed) && !this.seen);
    badges(this.states, queueStates.filter(([name]) => q?.[name]));
    this.redrive.classList.toggle("primary", q?.dead > 0);
    for (const s of rare) this.tileOf.get(s).hidden = !q?.[s];
    this.say(q);
    if (live) this.past.add(now(), live, live, live.since);
    else if (state.server && !state.more) this.past.add(now(), { ready: 0, delayed: 0, claimed: 0, dead: 0 }); // it is empty
    this.draw();
  }

  draw() {
    for (const p of this.plots) p.update();
  }

  // offer shows the buttons of a user who may change the queue. One that has nothing to do is off. The
  // dead packets of other queues are ready in a dead-letter queue.
  offer(q) {
    this.actions.hidden = !mayManage(this.key);
    this.packets.offer(!this.actions.hidden);
    this.barred.hidden = !state.queues.has(this.key) || !this.actions.hidden;
    for (const [button, idle, why] of [[this.redrive, !q?.dead && !q?.["died-elsewhere"], "No packet is dead."], [this.harvest, !q?.claimed, "No packet is claimed."]]) {
      button.disabled = idle;
      button.title = idle ? why : "";
    }
  }

  say(q) {
    const live = state.queues.get(this.key);
    const all = this.failed ? [this.failed] : q && this.got ? reasons(q, live ? rates(live) : { popped: 0, acked: 0 }, this.got.settings, this.got.stat, this.got.consumers, this.got.next) : [];
    const said = all.join("\n");
    if (said === this.said) return;
    this.said = said;
    this.why.replaceChildren(...all.map((s) => el("li", {}, timed(s))));
  }

  showGot() {
    if (this.failed || this.element.querySelector("table a:focus")) return;
    const { stat, settings, consumers, producers, shares } = this.got;
    this.facts.replaceChildren(...figures([
      ["Oldest ready packet", stat.age === null ? "none" : span(stat.age)],
      ["Bytes", size(stat.bytes)],
      ...["pushed", "popped", "acked", "nacked", "expired", "died", "dropped", "cancelled"].map((name) => [{ acked: "acknowledged", nacked: "returned" }[name] ?? name, count(stat[name])]),
    ]).children);
    this.consumers.replaceChildren(consumers.length ? this.consumerTable(consumers) : el("p", { class: "muted" }, "Nobody claims or waits."));
    this.producers.replaceChildren(producers.length ? this.producerTable(producers) : el("p", { class: "muted" }, "Nobody has pushed of late."));
    this.shares.hidden = !shares;
    this.shares.replaceChildren(el("h2", {}, "Shares by what waits"), ...(shares ? this.shareTable(...shares) : []));
    this.priorities.replaceChildren(stat.ready ? el("p", {}, stat.priorities.filter((p) => p.packets).map((p) => (p.from === p.to ? p.from : p.from + "–" + p.to) + ": " + count(p.packets)).join(" · ")) : el("p", { class: "muted" }, "None."));
    const { own, ...others } = settings;
    this.settings.replaceChildren(yes(own) ? "" : el("p", { class: "muted" }, "The queue has none of its own: these are the defaults of the server."),
      figures(Object.entries(others).map(([name, v]) => [name.replaceAll("-", " "), setting(name, v)]), "figures settings"));
  }

  consumerTable(consumers) {
    const most = 100;
    const row = (c) => el("tr", {},
      el("th", { scope: "row" }, el("bdi", { class: "name" }, label(c.name, 80))),
      el("td", {}, c.claimed ? [count(c.claimed) + " for " + span(now() - c.since) + ": ", (c.ids ?? []).slice(0, 5).map((id) => [el("a", { href: to("packet", this.q.database, this.q.name, { id }) }, id), " "])].flat(2) : "none"),
      el("td", {}, c.waiting?.length ? c.waiting.slice(0, 3).map((w) => label(typeof w === "object" ? [w.queues].flat().map((n) => label(n, 40)).join(" ") + (w.filter ? " " + [w.filter].flat().map((n) => label(n, 40)).join(" ") : "") : w, 120)).join("; ") : "–"),
      el("td", { class: "narrow" }, c.seen ? timed(stamp(c.seen)) : "–"));
    return el("div", {}, el("table", {}, el("thead", {}, el("tr", {}, ["Consumer", "Works on", "Waits for"].map((h) => el("th", { scope: "col" }, h)), el("th", { scope: "col", class: "narrow" }, "Last seen"))),
      el("tbody", {}, consumers.slice(0, most).map(row))), consumers.length > most ? el("p", { class: "muted" }, count(consumers.length - most) + " more.") : null);
  }

  producerTable(producers) {
    const row = (p) => el("tr", {}, el("th", { scope: "row" }, el("bdi", { class: "name" }, label(p.name, 80))), el("td", {}, label(p.user) || "–"),
      el("td", { class: "narrow" }, count(p.pushed)), el("td", { class: "narrow" }, timed(stamp(p.seen))));
    return el("table", {}, el("thead", {}, el("tr", {}, ["Producer", "User"].map((h) => el("th", { scope: "col" }, h)), ["Pushed", "Last push"].map((h) => el("th", { scope: "col", class: "narrow" }, h)))),
      el("tbody", {}, producers.sort((a, b) => b.seen - a.seen).slice(0, 100).map(row)));
  }

  // shareTable shows a page of shares, sorted. Behind it are others unless its cursor is 0.
  shareTable(cursor, page) {
    const most = 100, shares = page.filter((s) => s.ready + s.claimed > 0).sort((a, b) => b.ready - a.ready || (label(a.name) < label(b.name) ? -1 : 1)).slice(0, most);
    if (!shares.length) return [el("p", { class: "muted" }, "No share has packets that are ready or claimed.")];
    const row = (s) => el("tr", {},
      el("th", { scope: "row" }, el("bdi", { class: "name" }, label(s.name, 80) || "(none)")),
      ...[count(s.ready), count(s.claimed) + (s["max-claimed"] ? " of " + count(s["max-claimed"]) : ""), s.age === undefined ? "–" : span(s.age), count(s.weight)].map((v) => el("td", { class: "narrow" }, v)),
      el("td", {}, s.why ? timed(s.why + (s.until ? ", until " + stamp(s.until) : "")) : "–"));
    return [el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Share"), ["Ready", "Claimed", "Oldest", "Weight"].map((h) => el("th", { scope: "col", class: "narrow" }, h)), el("th", { scope: "col" }, "What stops it"))),
      el("tbody", {}, shares.map(row))), cursor !== "0" || shares.length === most ? el("p", { class: "muted" }, "These are some of the shares.") : ""];
  }

  end() {
    this.ended = true;
    this.packets.asked = null; // which ends a search
    clearTimeout(this.timer);
    for (const p of this.plots) p.end();
  }
}

function setting(name, value) {
  if (name === "enum" && value && typeof value === "object") return Object.entries(value).map(([tag, values]) => label(tag) + ": " + [values].flat().map((v) => label(v)).join(" < ")).join("; ") || "none";
  if (times.includes(name) && Number(value) > 0) return span(Number(value));
  if (name.endsWith("-until") && Number(value) > 0) return stamp(Number(value));
  if (name.endsWith("-until") || ["bound", "bound-bytes", "retain", "retain-dead", "alert-age", "max-attempts"].includes(name) && Number(value) === 0) return name === "max-attempts" ? "without end" : "none";
  return label(value) || "none";
}
