import { act } from "./dialog.js";
import { filterWords } from "./filter.js";
import { command } from "./server.js";
import { packetStates } from "./state.js";
import { count, label, packets } from "./text.js";

// What an operator can do to a queue q ({database, name}) and to one packet. Each returns a promise
// that tells whether something was changed.

// A name that can be typed is typed; others are stood in for by a word.
function confirmation(q) {
  const name = label(q.name, 64);
  return name === q.name && name.trim() === name && /^[\x20-\x7e]{1,40}$/.test(name) ? name : "delete";
}

const title = (q) => label(q.name, 60);
const states = [["", "in any state"], ...packetStates.map((s) => [s, s])];
const tagsField = (value) => ({ name: "tags", label: "Only packets with tags", value, placeholder: "all; such as class=high" });
const verb = (n, one, many) => packets(n) + " " + (n === 1 ? one : many);

function bulk(q, words, more) {
  const run = (dry) => async (values) => command(q.database, ...words(values), ...filterWords(values.tags ?? ""), ...dry);
  return act({ ...more, count: run(["DRYRUN"]), run: run([]) });
}

export function redrive(q, tags = "") {
  return bulk(q, (v) => ["QREDRIVE", q.name, ...(v.to ? ["TO", v.to] : [])], {
    title: "Retry dead packets of " + title(q), button: "Retry",
    explain: "Dead packets become ready, with no attempts. Those of a dead-letter queue go back to where they died.",
    fields: [tagsField(tags), { name: "to", label: "Into another queue", placeholder: "back to their own" }],
    counted: (n) => n ? verb(n, "would be ready again.", "would be ready again.") : "There are no such dead packets.",
    done: (n) => verb(n, "is ready again.", "are ready again."),
  });
}

export function purge(q, state = "", tags = "") {
  return bulk(q, (v) => ["QPURGE", q.name, ...(v.state ? ["STATE", v.state] : [])], {
    title: "Delete packets of " + title(q), button: "Delete", confirm: confirmation(q),
    fields: [{ name: "state", label: "Packets that are", options: states, value: state }, tagsField(tags)],
    counted: (n) => n ? verb(n, "would be deleted.", "would be deleted.") : "There are no such packets.",
    done: (n) => verb(n, "was deleted.", "were deleted."),
  });
}

export function harvest(q, tags = "") {
  return bulk(q, (v) => ["QHARVEST", q.name, ...(Number(v.older) > 0 ? ["OLDER", Math.round(v.older * 1000)] : [])], {
    title: "End claims of " + title(q), button: "End claims", confirm: confirmation(q), risk: "Work that goes on is done twice.",
    explain: "For consumers that are lost: what they claimed becomes ready at once, before the lease ends. A consumer that still works is answered STALE.",
    fields: [{ name: "older", label: "Claims at least so many seconds old", type: "number", min: 0, value: "0" }, tagsField(tags)],
    counted: (n) => n ? count(n) + (n === 1 ? " claim" : " claims") + " would be ended." : "There are no such claims.",
    done: (n) => count(n) + (n === 1 ? " claim was ended." : " claims were ended."),
  });
}

export function move(q, state = "", tags = "") {
  return bulk(q, (v) => ["QMOVE", q.name, "TO", v.to, ...(v.state ? ["STATE", v.state] : []), ...(Number(v.most) > 0 ? ["COUNT", v.most] : [])], {
    title: "Move packets of " + title(q), button: "Move",
    explain: "Packets keep their id, priority, age and state. Claimed and damaged ones stay.",
    fields: [
      { name: "to", label: "Into the queue", required: "Name the queue to move to." },
      { name: "state", label: "Packets that are", options: states.filter(([s]) => s !== "claimed" && s !== "damaged"), value: state },
      { name: "most", label: "At most", type: "number", min: 1, placeholder: "all" }, tagsField(tags)],
    counted: (n) => n ? verb(n, "would be moved.", "would be moved.") : "There are no such packets.",
    done: (n) => verb(n, "was moved.", "were moved."),
  });
}

// gate opens or closes an end of a queue: "pause-in" or "pause-out".
export function gate(q, end, pause) {
  const pushes = end === "pause-in";
  return act({
    title: (pause ? "Pause " : "Resume ") + (pushes ? "pushes to " : "deliveries of ") + title(q), button: pause ? "Pause" : "Resume",
    explain: !pause ? "Clients that wait are served at once."
      : pushes ? "Pushes are refused with PAUSED, or wait if they may. What is queued is taken as before."
        : "Nobody gets packets; workers wait. Pushes go on, and nothing is lost.",
    run: () => command(q.database, "QSET", q.name, end, pause ? "yes" : "no"),
    done: () => (pushes ? "Pushes are " : "Deliveries are ") + (pause ? "paused." : "resumed."),
  });
}

// These are for packets by their ids. What was not done is said by rest.
const some = (ids, q) => (ids.length === 1 ? "packet " + ids[0] : packets(ids.length)) + " of " + title(q);
const did = (n, ids, done, rest) => verb(n, "was " + done, "were " + done) + (n < ids.length ? " " + rest : "");

export function deletePackets(q, ids) {
  return act({
    title: "Delete " + some(ids, q), button: "Delete", confirm: confirmation(q),
    run: () => command(q.database, "QDEL", q.name, ...ids),
    done: (n) => did(n, ids, "deleted.", "What is not in the queue any more was left out."),
  });
}

export function cancelPackets(q, ids) {
  return act({
    title: "Cancel " + some(ids, q), button: "Cancel " + (ids.length === 1 ? "packet" : "packets"), confirm: confirmation(q),
    explain: "What waits is deleted. The worker of a claimed packet is told when it extends its lease; the packet is gone when its claim ends, however it does.",
    run: () => command(q.database, "QCANCEL", q.name, ...ids),
    done: (became) => {
      const n = (what) => became.filter((b) => b === what).length;
      return verb(n("gone"), "was deleted,", "were deleted,") + " " + count(n("told")) + " will be gone when the claim ends.";
    },
  });
}

export function redrivePackets(q, ids) {
  return act({
    title: "Retry " + some(ids, q), button: "Retry",
    explain: "Dead packets become ready, with no attempts. Those of a dead-letter queue go back to where they died.",
    run: async () => {
      let n = 0;
      try {
        for (const id of ids) n += await command(q.database, "QREDRIVE", q.name, id); // which takes one
      } catch (e) {
        throw n ? new Error(e.message + " Before that " + verb(n, "was made ready.", "were made ready.")) : e;
      }
      return n;
    },
    done: (n) => did(n, ids, "made ready again.", "Only dead packets are retried."),
  });
}

export function movePackets(q, ids) {
  return act({
    title: "Move " + some(ids, q), button: "Move",
    fields: [{ name: "to", label: "Into the queue", required: "Name the queue to move to." }],
    run: (v) => command(q.database, "QMOVE", q.name, ...ids, "TO", v.to),
    done: (n) => did(n, ids, "moved.", "Claimed and damaged packets stay."),
  });
}

export function run(q, id) {
  return act({
    title: "Run packet " + id + " now", button: "Run now",
    explain: "It is ready at once, and goes by its priority and age.",
    run: () => command(q.database, "QRUN", q.name, id),
    done: (n) => n ? "The packet is ready." : "The packet was taken or is gone.",
  });
}

export function prioritize(q, id, priority) {
  return act({
    title: "Change the priority of packet " + id, button: "Change",
    explain: "1 is best. A packet of another priority keeps its age.",
    fields: [{ name: "n", label: "Priority", type: "number", min: 0, max: 4294967295, value: String(priority), required: "Give a number." }],
    run: (v) => command(q.database, "QPRIO", q.name, id, v.n),
    done: (n) => n ? "The priority was changed." : "The packet was gone already.",
  });
}
