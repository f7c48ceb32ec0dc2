import { to } from "./address.js";
import { now, state } from "./state.js";
import { count, label, packets, size, span } from "./text.js";

// What an operator should know first, in words: a list of {text, grave, links, more}, worst first.
// Links are {label, note, href} of some queues, and more is the number of the others.

const named = 5; // queues named in one sentence
const idle = 60_000; // milliseconds for which ready packets may lie while nobody takes any
const recent = 600_000;

export function problems() {
  const found = [];
  const say = (text, links = [], grave = false) => found.push({ text, grave, links: links.slice(0, named).map((link) => link()), more: Math.max(0, links.length - named) });
  const disk = state.server?.disk;
  if (disk?.refuses === "all") say("The disk is full: the server refuses everything. Free space; " + size(disk.free) + " are left.", [], true);
  else if (disk?.refuses) say("The disk is nearly full: the server refuses pushes, and deliveries go on. Free space; " + size(disk.free) + " are left.");
  if (!state.session.look) say("Your user may look at no queue. Who gives rights can add look to it.");
  fromQueues(say);
  fromTold(say);
  return found;
}

function fromQueues(say) {
  const dead = [], damaged = [], stuck = [], overdue = [], held = [], full = [], paused = [];
  const at = now();
  for (const q of state.queues.values()) {
    if (q.dead) dead.push(q);
    if (q.damaged) damaged.push(q);
    if (q.overdue) overdue.push(q);
    if (q.held) held.push(q);
    if (q.full) full.push(q);
    if (q.ready && (q["paused-in"] || q["paused-out"])) paused.push(q);
    if (q.ready && !q.claimed && at - Math.max(q.taken, q.since) > idle) stuck.push(q);
  }
  const total = (all, field) => all.reduce((sum, q) => sum + q[field], 0);
  const links = (all, field, note, more) => all.sort((a, b) => b[field] - a[field])
    .map((q) => () => ({ label: q.label, note: count(q[field]) + note, href: to("queue", q.database, q.name, more) }));
  if (damaged.length) say(packets(total(damaged, "damaged")) + " cannot be read from the disk", links(damaged, "damaged", "", { state: "damaged" }), true);
  if (dead.length) say(packets(total(dead, "dead")) + (total(dead, "dead") === 1 ? " is dead" : " are dead"), links(dead, "dead", "", { state: "dead" }), true);
  if (overdue.length) say("The oldest packet is older than the alert-age of its queue", overdue.sort((a, b) => a.since - b.since)
    .map((q) => () => ({ label: q.label, note: span(at - q.since), href: to("queue", q.database, q.name) })));
  if (held.length) say("A consumer that was not heard of for ten minutes holds packets", links(held, "claimed", " claimed"));
  if (full.length) say("Queues are full", links(full, "ready", " ready"));
  if (paused.length) say("Queues are paused", links(paused, "ready", " ready"));
  if (stuck.length) say("Nobody has taken packets for a minute or more", links(stuck, "ready", " ready"));
}

function fromTold(say) {
  const background = state.told.find((e) => e.event === "background" && now() - e.at < recent);
  if (background) say("Work in the background fails, and is tried again: " + label(background.error, 300));
}
