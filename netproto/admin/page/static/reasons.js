import { now } from "./state.js";
import { ahead, count, label, packets, span, stamp, yes } from "./text.js";

const silence = 600_000; // milliseconds after which a consumer that holds packets is named, as for held

const held = [
  ["shares-at-limit", "Shares of which all is claimed that may be"],
  ["shares-not-due", "Shares that wait for their rate or rest"],
  ["packets-behind", "Packets that wait for another one of their key"],
];

// reasons says in sentences why packets of a queue do not move, or that they do. q is its row,
// rates are those of the last second; settings, stat and consumers are replies of QGET, QSTAT and
// QCONSUMERS, and next is the delayed packet that is ready first.
export function reasons(q, rates, settings, stat, consumers, next) {
  const all = [];
  const waiting = consumers.filter((c) => c.waiting?.length);
  const lost = consumers.filter((c) => c.claimed && now() - (c.seen ?? c.since) > silence);
  const working = consumers.filter((c) => c.claimed && !lost.includes(c));
  if (yes(settings.closed)) all.push("The queue is closed: nothing will be pushed any more.");
  else if (yes(settings["pause-in"])) all.push("Pushes are paused" + end(settings["pause-in-until"]) + ": they are refused, or wait.");
  if (yes(settings["pause-out"])) all.push("Deliveries are paused" + end(settings["pause-out-until"]) + ": nobody gets packets" + (settings["pause-out-until"] ? "." : " until they are resumed."));
  all.push(...bounds(q, settings));
  if (q.damaged) all.push(packets(q.damaged) + " cannot be read from the disk; the log says why. The others go on.");
  if (q.dead) all.push(packets(q.dead) + (q.dead === 1 ? " is dead: it waits" : " are dead: they wait") + " for somebody to look, and to retry or delete.");
  for (const c of lost.slice(0, 3)) all.push(label(c.name, 60) + " holds " + packets(c.claimed) + " for " + span(now() - c.since) + (c.seen ? ", and was last heard of " + span(now() - c.seen) + " ago." : "."));
  if (q.ready && q["at-limit"]) all.push("All is claimed that max-claimed allows, " + packets(settings["max-claimed"]) + ": the others wait for a claim to end.");
  else if (q.ready && !yes(settings["pause-out"])) all.push(...untaken(q, rates, stat, waiting, working));
  for (const [figure, what] of held) if (q[figure]) all.push(what + ": " + count(q[figure]) + ".");
  if (!q.ready && q.delayed) all.push((q.delayed === 1 ? "One packet is delayed" : count(q.delayed) + " packets are delayed") + (next?.["not-before"] ? "; the next is ready at " + stamp(next["not-before"]) + ", " + ahead(next["not-before"] - now()) + "." : "."));
  if (!q.ready && q.claimed) all.push(packets(q.claimed) + (q.claimed === 1 ? " is" : " are") + " with consumers: no other is ready.");
  if (q.hidden) all.push(packets(q.hidden) + " of priority 0 " + (q.hidden === 1 ? "goes" : "go") + " only together with another of the same key.");
  if (!q.ready && !q.delayed && !q.claimed && !q.hidden && !q.dead && !q.damaged) all.push("The queue is empty: everything was taken.");
  return all;
}

function bounds(q, settings) {
  const full = { reject: "pushes are refused", block: "pushes wait for room", drop: "worse packets are dropped for better ones" }[settings.full] ?? "pushes are refused";
  const held = q.ready + q.delayed + q.claimed + (q.hidden ?? 0);
  if (settings.bound > 0 && held >= settings.bound) return ["The queue is at its bound of " + packets(settings.bound) + ": " + full + "."];
  if (settings["bound-bytes"] > 0 && q.bytes >= settings["bound-bytes"]) return ["The queue is at its bound of " + count(settings["bound-bytes"]) + " bytes: " + full + "."];
  return [];
}

function untaken(q, rates, stat, waiting, working) {
  if (rates.popped + rates.acked > 0) return ["Packets are taken."];
  if (stat.consumer) return ["Only the client " + stat.consumer + " may take packets (exclusive-consumer), and it takes none now."];
  if (waiting.length && waiting.every((c) => c.waiting.every((w) => w.filter))) return ["Consumers wait, but only for packets with tags that no ready packet has."];
  if (waiting.length) return ["Consumers wait; packets go to them as soon as they may."];
  if (working.length) return ["Consumers are at work, and none waits for more packets."];
  return ["Nobody waits for packets: no consumer is there that would take the " + count(q.ready) + " that " + (q.ready === 1 ? "is" : "are") + " ready. Are the workers up?"];
}

// end says when a pause ends, if that is known.
const end = (until) => until ? " until " + stamp(until) : "";
