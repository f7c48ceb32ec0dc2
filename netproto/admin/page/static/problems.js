import { to } from "./address.js";
import { now, state } from "./state.js";
import { clockwards, count, label, packets, size, span } from "./text.js";

// What an operator should know first, in words: a list of {text, grave, links, more}, worst first.
// Links are {label, note, href} of some queues, and more is the number of the others.

const named = 5; // queues named in one sentence
const recent = 600_000;
const day = 86_400_000;

export function problems() {
  const found = [];
  const say = (text, links = [], grave = false) => found.push({ text, grave, links: links.slice(0, named).map((link) => link()), more: Math.max(0, links.length - named) });
  const disk = state.server?.disk;
  if (disk?.refuses === "all") say("The disk is full: the server refuses everything. Free space; " + size(disk.free) + " are left.", [], true);
  else if (disk?.refuses) say("The disk is nearly full: the server refuses pushes, and deliveries go on. Free space; " + size(disk.free) + " are left.");
  const memory = state.server?.memory;
  if (memory?.refuses === "claims") say("The memory is full: the server refuses pushes and claims. Acknowledge, pop or delete packets; " + size(memory.counted) + " of " + size(memory.limit) + " are needed.", [], true);
  else if (memory?.refuses) say("The memory is nearly full: the server refuses pushes, and deliveries go on. Take or delete packets; " + size(memory.counted) + " of " + size(memory.limit) + " are needed.");
  if (!state.session.look) say("Your user may look at no queue. Who gives rights can add look to it.");
  fromQueues(say);
  fromTold(say);
  return found;
}

// fromQueues looks for what the server has told that needs somebody.
function fromQueues(say) {
  const at = now();
  for (const t of state.session.troubles) {
    const found = [...state.queues.values()].filter((q) => t.any.some((f) => q[f]) && (q.ready || !t.ready) && (!t.idle || lies(q, at, t.idle)));
    if (!found.length) continue;
    const total = found.reduce((sum, q) => sum + q[t.counts], 0);
    const note = (q) => t.note ? count(q[t.note]) + (t.note === t.counts ? "" : " " + t.note) : span(at - q.since);
    say(t.counts ? packets(total) + " " + (total === 1 ? t.one : t.many) : t.many, found.sort((a, b) => t.note ? b[t.note] - a[t.note] : a.since - b.since)
      .map((q) => () => ({ label: q.label, note: note(q), href: to("queue", q.database, q.name, t.state ? { state: t.state } : undefined) })), t.grave);
  }
}

const lies = (q, at, idle) => !q.claimed && !q["died-elsewhere"] && at - Math.max(q.taken, q.since) > idle;

function fromTold(say) {
  const background = state.told.find((e) => e.event === "background" && now() - e.at < recent);
  const clock = state.told.find((e) => e.event === "clock" && now() - e.at < day);
  if (clock) say("The wall clock was put " + clockwards(clock) + ": TTLs, delays and pauses follow it");
  if (background) say("Work in the background fails, and is tried again: " + label(background.error, 300));
}
