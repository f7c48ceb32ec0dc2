import { label } from "./text.js";

// What the server has told so far: its figures, its queues, and what happened. It lasts as long as
// the page.

const mostTold = 500;

// queueStates are what can be wrong with a queue, or done to it, as [figure, what it means].
export const queueStates = [
  ["full", "a push found no room"],
  ["overdue", "the oldest ready packet is older than alert-age"],
  ["paused-in", "pushes are paused"],
  ["paused-out", "deliveries are paused"],
  ["held", "a consumer that was not heard of for ten minutes holds packets"],
  ["at-limit", "all is claimed that max-claimed allows"],
  ["closed", "nothing will be pushed any more"],
];

// packetStates are the states of a packet, in the order in which lists show them.
export const packetStates = ["ready", "delayed", "claimed", "dead", "done", "damaged"];

export const state = {
  session: { look: true, troubles: [] }, // who looks, as /page/session says
  server: null,
  queues: new Map(),
  more: 0, // queues that were not sent
  told: [], // newest first
};

const managed = new Map(); // whether the user may change queues, by their keys
let ahead = 0; // milliseconds of the server's clock before this one's

// now is the time by the server's clock, as ages are.
export const now = () => Date.now() + ahead;

export function forget() {
  Object.assign(state, { server: null, queues: new Map(), more: 0, told: [] });
  managed.clear();
}

export const keyOf = (database, name) => JSON.stringify([database, name]);

function setClock(at) {
  const by = at - now();
  if (Math.abs(by) < 1000) return;
  ahead += by;
  for (const q of state.queues.values()) q.heard += by;
}

export function hearServer(s) {
  setClock(s.at);
  const before = state.server;
  state.server = s;
  const rate = (name) => before?.totals && s.totals && s.at > before.at ? Math.max(0, s.totals[name] - before.totals[name]) * 1000 / (s.at - before.at) : 0;
  s.rates = { pushed: rate("pushed"), popped: rate("popped"), acked: rate("acked"), died: rate("died") };
}

export function hearQueues(m) {
  const at = now();
  if (m.whole) {
    for (const key of state.queues.keys()) state.queues.get(key).stale = true;
  }
  for (const [database, name] of m.gone) state.queues.delete(keyOf(database, name)); // the rows may tell of others of these names
  for (const row of m.rows) hearRow(m.columns, row, at);
  if (m.whole) {
    for (const [key, q] of state.queues) if (q.stale) state.queues.delete(key);
  }
  state.more = m.more ?? 0;
}

// Rows come once a second at most, and only if they have changed. So a change after a longer time
// is one of the last second.
function hearRow(columns, row, at) {
  const q = Object.fromEntries(columns.map((c, i) => [c, row[i]]));
  const key = keyOf(q.database, q.name);
  const before = state.queues.get(key);
  q.key = key;
  q.heard = at;
  q.label = before?.label ?? label(q.name);
  const passed = before ? at - before.heard : 0;
  const ms = passed > 1500 || passed < 300 ? 1000 : passed;
  const rate = (name) => before ? Math.max(0, (q[name] ?? 0) - (before[name] ?? 0)) * 1000 / ms : 0;
  q.rates = { pushed: rate("pushed"), popped: rate("popped"), acked: rate("acked") };
  state.queues.set(key, q);
  managed.set(key, q.manage);
}

// rates of a queue are 0 when it has not changed for more than a second.
export function rates(q) {
  return now() - q.heard > 2000 ? { pushed: 0, popped: 0, acked: 0 } : q.rates;
}

// mayManage says whether the user may change a queue: the server says so of each that it sends. One
// that is gone may come back.
export const mayManage = (key) => managed.get(key) ?? state.more > 0;

// hearTold adds an event. Those that the server remembers come again with each connection.
export function hearTold(event, raw) {
  if (state.told.some((e) => e.raw === raw)) return;
  const told = [{ ...event, raw }, ...state.told.slice(0, mostTold - 1)];
  state.told = told.length > 1 && told[1].at > told[0].at ? told.sort((a, b) => b.at - a.at) : told;
}
