import { to } from "./address.js";
import { el, timed } from "./dom.js";
import { state } from "./state.js";
import { clockwards, count, label, line, span, stamp } from "./text.js";

// What happened, newest first.

const words = {
  dead: (e) => [el("a", { href: to("packet", e.database ?? 0, e.to ?? e.queue, { id: e.id }) }, "Packet " + e.id), (e.to === undefined ? " died" : " died and moved to " + label(e.to, 80)) + (e.attempts ? " after " + count(e.attempts) + (e.attempts === 1 ? " attempt" : " attempts") : "") + (e.reason ? ": " + line(e.reason, 300) : "")],
  bound: () => "The queue reached its bound",
  old: (e) => "The oldest ready packet is old" + (e.age_ms === undefined ? "" : ": " + span(e.age_ms)),
  young: () => "The oldest ready packet is younger than the alert-age again",
  disk: (e) => "Disk: " + e.state,
  memory: (e) => "Memory: " + e.state,
  background: (e) => "Work in the background fails: " + label(e.error, 300),
  clock: (e) => "The wall clock was put " + clockwards(e),
  missed: (e) => count(e.messages) + " messages were left out, as they came too fast",
};
const bad = ["dead", "disk", "memory", "background", "clock"];

export class Log {
  constructor() {
    this.title = "Log";
    this.list = el("ol", { class: "log" });
    this.element = el("section", {}, el("h1", { tabindex: "-1" }, "Log"),
      el("p", { class: "muted" }, "Dead packets, bounds, old packets, refusals of the disk and the memory, failures in the background and jumps of the clock; the newest first, 500 at most."), this.list);
  }

  shown() {
    this.update();
  }

  // The list stays while the focus is in it: its elements would be others.
  update() {
    if (this.drawn === state.told || this.list.matches(":focus-within")) return;
    this.drawn = state.told;
    this.list.replaceChildren(...(state.told.length ? state.told.map(entry) : [el("li", { class: "muted" }, "Nothing has been told yet.")]));
  }

  end() {}
}

function entry(e) {
  const href = e.queue === undefined ? null : to("queue", e.database ?? 0, e.queue);
  return el("li", { class: e.state === "fine" ? "" : bad.includes(e.event) ? "bad" : "" },
    timed(stamp(e.at)), " ",
    href ? [el("a", { href }, el("bdi", { class: "name" }, label(e.queue, 80) || "(empty name)")), " "] : null,
    el("span", {}, (words[e.event] ?? (() => e.event))(e)));
}
