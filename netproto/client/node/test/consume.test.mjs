import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { format } from "node:util";
import {
  CancelledError, ClosedError, Dead, Hold, HoldfastError, RetryIn, ShutdownError, Snooze, StaleError, Uncounted,
} from "holdfast-queue";
import { client, network, queue, rejected, until, waits } from "./helper.mjs";

const forever = () => new Promise(() => {});
const ended = ({ signal }) => new Promise((resolve) => { signal.addEventListener("abort", () => resolve(signal.reason)); });

class AddressError extends Error {}
const hidden = new Error("hidden");
Object.defineProperty(hidden, "message", { get() { throw new Error("no"); } });
const refuse = () => { throw new Error("no"); };
const hostile = new Proxy({}, { get: refuse, getPrototypeOf: refuse });

test("what a handler throws decides", async (t) => {
  const c = client(t, { log: async (_, cause) => cause.message.length }), q = queue(), hour = 3_600_000;
  await c.set(q, { "max-attempts": 0, "backoff-min": hour, "backoff-max": hour });
  const cases = {
    good: [() => 7, undefined],
    bad: [() => { throw new TypeError("no address"); }, "delayed", "TypeError: no address", 1],
    own: [async () => { throw new AddressError("no: address"); }, "delayed", "AddressError: no: address", 1],
    text: [() => { throw "no address"; }, "delayed", "no address", 1],
    nothing: [() => { throw undefined; }, "delayed", "undefined was thrown", 1],
    object: [() => { throw { a: 1 }; }, "delayed", "object: { a: 1 }", 1],
    symbol: [() => { throw Symbol("a"); }, "delayed", "symbol: Symbol(a)", 1],
    hidden: [() => { throw hidden; }, "delayed", "Error: what was thrown cannot be shown", 1],
    long: [() => { throw new Error(`x${"ä".repeat(5000)}`); }, "delayed", `Error: x${"ä".repeat(2044)}`, 1],
    later: [() => { throw new RetryIn(hour, new Error("busy")); }, "delayed", "Error: busy", 1],
    never: [() => { throw new Dead("no address"); }, "dead", "no address", 1],
    returned: [() => new Dead("no address"), "dead", "no address", 1],
    "not yet": [() => { throw new Snooze(hour); }, "delayed", "snoozed for 3600000 ms", 0],
    promise: [() => { throw Promise.resolve(); }, "delayed", /^object: Promise/, 1],
    "a promise that fails": [() => { throw Promise.reject(new Error()); }, "delayed", /^object: Promise/, 1],
    "a promise that never ends": [async () => { throw forever(); }, "delayed", /^object: Promise/, 1],
    hostile: [() => { throw hostile; }, "delayed", "Error: what was thrown cannot be shown", 1],
    generator: [async function* () {}, "delayed", "InvalidError: the handler is a generator: nobody has run it", 1],
    "no time": [() => { throw new RetryIn(NaN); }, "delayed", "InvalidError: milliseconds: expected a number, got NaN", 1],
    ever: [() => { throw new Snooze(Infinity); }, "delayed", "InvalidError: milliseconds: expected a number, got Infinity", 1],
    words: [() => { throw new Snooze("5s"); }, "delayed", "InvalidError: milliseconds: expected a number, got '5s'", 1],
    refused: [() => { throw new Snooze(1e18); }, "delayed", "snoozed for 1000000000000000000 ms", 1],
    "a wrong cost": [(packet) => { packet.cost = "3"; }, undefined],
    "no cost": [(packet) => { packet.cost = Infinity; }, undefined],
    "too much": [(packet) => { packet.cost = 1e10; }, undefined],
    "failed at too much": [(packet) => { packet.cost = 1e10; throw new Error("busy"); }, "delayed", "Error: busy", 1],
    uncounted: [() => { throw new Uncounted(hour, new Error("busy")); }, "delayed", "Error: busy", 0],
  };
  const ids = {};
  for (const name in cases) ids[name] = await c.push(q, name);
  await c.consume(q, (packet) => cases[packet.payload][0](packet), { concurrency: 3, signal: await allClaimed(c, q, Object.keys(cases).length) });
  for (const [name, [, state, reason, attempt]] of Object.entries(cases)) {
    const packet = await c.show(q, ids[name]).catch(() => ({}));
    const said = reason instanceof RegExp && reason.test(packet.reason) ? reason : packet.reason;
    assert.deepEqual([packet.state, said, packet.attempt], [state, reason, attempt], name);
  }
});

/** allClaimed is a signal that aborts when so many answers are counted. */
async function allClaimed(c, q, n) {
  const abort = new AbortController();
  const look = async () => {
    const { acked, nacked } = await c.stats(q);
    return acked + nacked >= n;
  };
  until(look).then(() => abort.abort());
  return abort.signal;
}

/** logged is a client whose lines are kept: each as console.warn would print it. */
function logged(t, options) {
  const lines = [];
  return [client(t, { ...options, log: (...all) => lines.push(format(...all)) }), lines];
}

/** answers works on one packet, whose handler gets it. */
async function answers(c, q, handler) {
  await c.set(q, { "backoff-min": "1h", "backoff-max": "1h" });
  const id = await c.push(q, ""), signal = await allClaimed(c, q, 1);
  await c.consume(q, handler, { signal });
  return c.show(q, id).catch(() => ({}));
}

test("whatever a verdict and a cost are, an answer is sent", async (t) => {
  const c = client(t), dead = (message) => Object.defineProperty(new Dead("no address"), "message", { get: () => message() });
  for (const [why, state, reason] of [
    [dead(() => 5), "dead", "no address"], [dead(refuse), "dead", "no address"], [dead(() => "moved"), "dead", "moved"],
    [new Proxy(new Dead("no address"), {}), "delayed", "Dead: no address"], [Object.create(Dead.prototype), "delayed", /Dead/],
  ]) {
    for (const handler of [() => { throw why; }, () => why]) {
      const packet = await answers(c, queue(), handler);
      assert.equal(packet.state, state, reason);
      assert.match(packet.reason, reason instanceof RegExp ? reason : new RegExp(`^${reason}$`));
    }
  }
  for (const cost of [Symbol("a"), { valueOf: refuse }]) {
    assert.equal((await answers(c, queue(), (packet) => { packet.cost = cost; })).state, undefined);
  }
});

test("what is expected is a line of the log, or none", async (t) => {
  const [c, lines] = logged(t);
  for (const [why, want] of [
    [new Hold(60_000, new Error("429"))], [new Snooze(60_000)], [new Dead("no address"), /^holdfast: [^\n]* failed at attempt 1: Dead: no address$/],
    [new RetryIn(60_000, new Error("busy")), /^holdfast: [^\n]* failed at attempt 1: RetryIn: Error: busy$/], [new TypeError("a bug"), / failed at attempt 1 TypeError: a bug\n +at /],
  ]) {
    lines.length = 0;
    const q = queue();
    await c.push(q, "");
    await c.consume(q, () => { throw why; }, { signal: await allClaimed(c, q, 1) });
    assert.equal(lines.length, want === undefined ? 0 : 1, String(lines));
    if (want !== undefined) assert.match(lines[0], want);
  }
});

test("a server that is away is a line each time", async (t) => {
  const net = await network(t), [c, lines] = logged(t, { url: net.url }), q = queue();
  net.down = true;
  const work = c.consume(q, () => {});
  await until(() => lines.length > 0);
  assert.match(lines[0], /^holdfast: [^\n]*: no packet could be claimed: no connection to the server: [^\n]+$/);
  await c.shutdown();
  await work;
});

test("a signal does not abort once its handler has ended", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), q = queue();
  await c.push(q, "");
  let told, ends;
  const ending = new Promise((resolve) => { ends = resolve; });
  const work = c.consume(q, (_, { signal }) => {
    told = signal;
    net.down = true;
    net.cut();
    ends();
  }, { lease: 1000 });
  await ending;
  await c.shutdown(60_000); // ends when the lease is over
  await work;
  assert.equal(told.aborted, false);
});

test("a worker that blocks the event loop says so", async (t) => {
  const [c, lines] = logged(t), q = queue();
  await c.push(q, "");
  await c.set(q, { "max-attempts": 1 });
  await c.consume(q, () => { for (const begin = performance.now(); performance.now() - begin < 1500;); }, { lease: 2400, burst: true });
  const told = lines.filter((line) => line.includes("the event loop was blocked"));
  assert.equal(told.length, 1, String(lines));
  assert.match(told[0], /blocked for [0-9.]+ s; leases of 2.4 s cannot be renewed meanwhile$/);
});

test("a burst ends when there is nothing to claim", async (t) => {
  const c = client(t), q = queue(), other = queue(), got = [];
  await c.push(q, "later", { delay: 3_600_000 });
  await c.push(q, "first");
  await c.push(other, "third");
  await c.consume(q, async ({ payload }) => {
    if (got.push(String(payload)) > 1) return;
    await c.push(q, "second");
    throw new RetryIn(0, new Error("again"));
  }, { burst: true, concurrency: 3, or: [other] });
  assert.deepEqual([got.sort(), await c.len(q)], [["first", "first", "second", "third"], 1]);
  await c.pushBatch(q, Array(5).fill(""));
  await c.consumeBatch(q, 3, 1, () => {}, { burst: true });
  await c.work(queue(), () => {}, { burst: true });
  assert.equal(await c.len(q), 1);
});

test("a time may be longer than a timer", async (t) => {
  const warnings = [], warn = ({ name }) => warnings.push(name);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const long = 2 ** 35, c = client(t, { socket: { socketTimeout: long } }), q = queue();
  const claimed = c.claim(q, { block: 0, fill: 2 ** 31, count: 2 });
  await c.pushBatch(q, ["1", "2"]);
  assert.equal((await claimed).length, 2);
  await c.push(q, "3");
  await c.consume(q, () => {}, { lease: 13 * 2 ** 31, burst: true });
  await new Promise((resolve) => { setImmediate(resolve); }); // warnings come later
  assert.deepEqual([warnings, (await c.stats(q)).acked], [[], 1]);
});

test("what is no handler is refused before a packet is claimed", async (t) => {
  const c = client(t), q = queue();
  await c.push(q, "");
  for (const handler of [undefined, "handler", function* () {}, async function* () {}]) {
    assert.match((await rejected(c.consume(q, handler))).message, /^handler: expected a function that is no generator, got /);
    assert.equal((await rejected(c.consumeBatch(q, 2, 20, handler))).code, "INVALID");
  }
  assert.equal((await c.stats(q)).nacked, 0);
});

test("a handler that is told to wait holds its queue", async (t) => {
  const c = client(t);
  await Promise.all([60_000, 365 * 86_400_000].map(async (ms) => {
    const q = queue(), id = await c.push(q, "");
    c.consume(q, () => { throw new Hold(ms, new Error("429")); });
    const packet = await until(async () => [await c.show(q, id)].find(({ reason }) => reason === "Error: 429"));
    assert.deepEqual([packet.state, packet.attempt, (await c.stats(q)).pausedOut], ["ready", 0, true]);
  }));
  await c.shutdown();
});

test("leases are renewed while handlers work, and so many work as may", async (t) => {
  const c = client(t), q = queue(), begun = [];
  await c.pushBatch(q, Array(9).fill(""));
  let finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  const work = c.consume(q, (packet) => { begun.push(packet); return finished; }, { lease: 2000, concurrency: 8 });
  await until(() => begun.length === 8);
  const first = begun[0].leaseEnd;
  const shown = await until(async () => [await c.show(q, begun[0].id)].find(({ leaseEnd }) => leaseEnd - first > 500));
  assert.deepEqual([shown.attempt, begun.length, (await c.stats(q)).claimed], [1, 8, 8]);
  finish();
  await until(async () => (await c.stats(q).catch(() => ({ pushed: 0, claimed: 0 }))).claimed === 0);
  await c.shutdown();
  await work;
  assert.equal(await c.len(q), 0);
});

test("a handler is told that its lease is lost, and its answer is not sent", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), boss = client(t), q = queue(), causes = [];
  await c.push(q, "");
  const work = c.consume(q, async (packet, how) => {
    if (packet.attempt > 1) return;
    const told = ended(how);
    assert.equal(await boss.harvest(q), 1);
    causes.push(await told);
    throw new Error("this is no second failure");
  }, { lease: 2000 });
  await until(async () => causes.length > 0 && (await c.len(q)) === 0);
  assert.ok(causes[0] instanceof StaleError);
  await c.shutdown();
  await work;
  assert.equal(net.requests.includes("QNACK"), false);
});

test("a handler is told that its packet was cancelled, and its answer is sent", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), boss = client(t), q = queue(), id = await c.push(q, ""), causes = [];
  const work = c.consume(q, async (packet, how) => {
    const told = ended(how);
    assert.deepEqual(await boss.cancel(q, id), ["told"]);
    causes.push(await told);
    throw causes[0];
  }, { lease: 6000 });
  await until(async () => causes.length > 0 && (await c.len(q)) === 0);
  assert.ok(causes[0] instanceof CancelledError);
  await c.shutdown();
  await work;
  assert.ok(net.requests.includes("QNACK"));
});

test("shutdown waits for handlers, and claims no more", async (t) => {
  const c = client(t), other = client(t), q = queue();
  await c.push(q, "1");
  let finish, begun;
  const begins = new Promise((resolve) => { begun = resolve; });
  const work = c.consume(q, () => new Promise((resolve) => { finish = resolve; begun(); }), { concurrency: 2 });
  await begins;
  const down = c.shutdown();
  await other.push(q, "2");
  finish();
  assert.equal(await down, 0);
  await work;
  assert.deepEqual((await other.peek(q)).map(({ payload }) => String(payload)), ["2"]);
  await c.consume(q, forever); // a client that is shut down works no more
});

test("what hangs is given back when the drain is over, and counts as no attempt", async (t) => {
  const c = client(t), q = queue(), abort = new AbortController(), causes = [];
  const id = await c.push(q, "");
  await c.consume(q, (packet, how) => {
    ended(how).then((cause) => causes.push(cause));
    abort.abort();
    return forever();
  }, { signal: abort.signal, drain: 30 });
  const packet = await c.show(q, id);
  assert.deepEqual([packet.state, packet.attempt, packet.reason], ["ready", 0, "ShutdownError: the worker has ended"]);
  assert.ok(causes[0] instanceof ShutdownError);
});

test("what comes after the drain is given back, and no handler begins with it", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), other = client(t), q = queue(), begun = [];
  await other.push(q, "1");
  const work = c.consume(q, (_, how) => { begun.push(ended(how)); return forever(); }, { concurrency: 2 });
  await until(() => begun.length > 0);
  await waits(other, q);
  net.stalls = true;
  await other.push(q, "2");
  await until(() => net.kept() > 0); // the answer to the claim
  const down = c.shutdown(0);
  await begun[0];
  net.resume();
  assert.equal(await down, 2);
  await work;
  assert.equal(begun.length, 1);
  assert.deepEqual((await other.peek(q)).map(({ payload, attempt }) => [String(payload), attempt]), [["1", 0], ["2", 0]]);
});

test("a queue that is closed ends the work when it is drained", async (t) => {
  const c = client(t), q = queue();
  await c.pushBatch(q, ["1", "2"]);
  await c.closeQueue(q);
  const got = [];
  await c.consume(q, ({ payload }) => { got.push(String(payload)); });
  assert.deepEqual(got, ["1", "2"]);
  assert.ok((await rejected(c.claim(q))) instanceof ClosedError);
});

test("a handler may settle its packet", async (t) => {
  const c = client(t), q = queue(), id = await c.push(q, "");
  await c.closeQueue(q);
  await c.consume(q, async (packet) => {
    if (packet.attempt === 0) return;
    await packet.nack(new Dead("no address"));
    throw new Error("this comes too late");
  });
  assert.equal((await c.show(q, id)).reason, "no address");
});

test("batches are filled, and each packet of one may be settled alone", async (t) => {
  const c = client(t), q = queue(), sizes = [];
  const ids = await c.pushBatch(q, Array(5).fill(""));
  await c.closeQueue(q);
  await c.consumeBatch(q, 3, 20, async (packets) => {
    sizes.push(packets.length);
    if (packets.some(({ id }) => id === ids[0])) await packets[0].nack(new Dead("bad"));
  });
  assert.deepEqual(sizes, [3, 2]);
  assert.deepEqual([(await c.stats(q)).acked, (await c.show(q, ids[0])).state], [4, "dead"]);
});

test("each packet is handled once by many", async (t) => {
  const q = queue(), n = 2000, seen = new Map(), workers = [client(t), client(t)];
  for (let i = 0; i < n; i += 1000) await workers[0].pushBatch(q, Array.from({ length: 1000 }, (_, j) => String(i + j)));
  await workers[0].closeQueue(q);
  await Promise.all(workers.map((c) => c.consume(q, async ({ payload }) => {
    seen.set(String(payload), (seen.get(String(payload)) ?? 0) + 1);
  }, { concurrency: 64 })));
  assert.deepEqual([seen.size, [...seen.values()].every((times) => times === 1)], [n, true]);
  const { acked, claimed } = await workers[0].stats(q);
  assert.deepEqual([acked, claimed], [n, 0]);
});

test("a push that waits does not hold up the acks of a worker", async (t) => {
  const c = client(t), q = queue(), full = queue();
  await c.set(full, { bound: 1, full: "block" });
  await c.push(full, "1");
  await c.push(q, "");
  await c.closeQueue(q);
  const waits = c.push(full, "2").catch((error) => error);
  await c.consume(q, () => {});
  assert.equal(await Promise.race([waits, "it waits"]), "it waits");
  await client(t).pop(full);
  assert.match(await waits, /^[0-9]+$/);
});

test("a handler says what its work has cost", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), q = queue();
  await c.pushBatch(q, ["1", "2"]);
  await c.closeQueue(q);
  await c.consume(q, (packet) => { packet.cost = Number(packet.payload); }, { concurrency: 2 });
  assert.equal((await c.stats(q)).acked, 2);
  assert.deepEqual([net.requests.split("QACK").length, net.requests.split("COST").length], [3, 2]);
});

test("a worker comes back when the network does, and its answer with it", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), sure = client(t), q = queue(), got = [];
  await sure.set(q, { "max-attempts": 1 });
  const work = c.consume(q, async ({ payload }) => {
    got.push(String(payload));
    if (got.length > 1) return;
    net.down = true;
    net.cut();
    setTimeout(() => { net.down = false; }, 100);
  });
  await sure.push(q, "1");
  await until(() => got.length === 1);
  await sure.push(q, "2");
  await until(async () => (await sure.stats(q)).acked === 2);
  assert.deepEqual(got, ["1", "2"]);
  await c.shutdown();
  await work;
});

test("a handler does not begin when the claim's answer comes after the lease", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), other = client(t), q = queue(), got = [];
  await other.set(q, { "max-attempts": 0 });
  const work = c.consume(q, ({ payload }) => { got.push(String(payload)); }, { lease: 300 });
  await waits(other, q);
  net.stalls = true;
  await other.push(q, "first");
  const [taken] = await other.claim(q, { block: 0, lease: 60_000 });
  assert.equal(taken.attempt, 2);
  net.resume();
  await other.push(q, "second");
  await until(() => got.length > 0);
  assert.deepEqual(got, ["second"]);
  await c.shutdown();
  await work;
  await taken.ack();
});

test("a handler begins with a new lease when the claim's answer comes late", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), other = client(t), q = queue();
  let extends_;
  const work = c.consume(q, () => { extends_ = net.requests.split("QEXTEND").length - 1; }, { lease: 3000 });
  await waits(other, q);
  await other.push(q, "", { delay: 1100 });
  await until(() => extends_ !== undefined);
  assert.equal(extends_, 1);
  await c.shutdown();
  await work;
});

test("a worker that is refused says so", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), q = queue();
  await c.command("SET", q, "a string");
  assert.equal((await rejected(c.consume(q, () => {}))).code, "WRONGTYPE");
  const gone = queue(), work = c.consume(gone, () => {});
  await waits(client(t), gone);
  c.close();
  assert.ok((await rejected(work)) instanceof HoldfastError);
});

test("the end of a worker ends its wait in the server", async (t) => {
  const c = client(t), other = client(t), q = queue();
  await other.set(q, { bound: 5 });
  const work = c.consume(q, () => {});
  await waits(other, q);
  await c.shutdown();
  await work;
  assert.equal((await other.consumers(q))[0]?.waiting?.length ?? 0, 0);
});

test("the end of a worker does not wait for a server that says nothing", async (t) => {
  const net = await network(t), c = client(t, { url: net.url, socket: { connectTimeout: 1000 } }), q = queue();
  await c.set(q, { bound: 5 });
  const work = c.consume(q, () => {});
  await waits(client(t), q);
  net.stalls = true;
  await c.shutdown();
  await work;
  assert.ok(net.dials <= 3, `it has tried ${net.dials} connections`); // of calls, of the wait, and perhaps one more
});

test("work ends with SIGTERM", async (t) => {
  const c = client(t), q = queue();
  await c.push(q, "");
  await c.work(q, async () => {
    const told = once(process, "SIGTERM");
    process.kill(process.pid, "SIGTERM");
    await told;
  });
  assert.equal(await c.len(q), 0);
  assert.equal(process.listenerCount("SIGTERM"), 0);
});

test("many works of a client have one listener", async (t) => {
  const c = client(t), works = Array.from({ length: 12 }, () => c.work(queue(), () => {}));
  assert.deepEqual([process.listenerCount("SIGTERM"), process.listenerCount("SIGINT")], [1, 1]);
  process.kill(process.pid, "SIGINT");
  await Promise.all(works);
  assert.equal(process.listenerCount("SIGTERM"), 0);
});
