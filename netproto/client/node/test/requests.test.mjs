import assert from "node:assert/strict";
import { test } from "node:test";
import * as holdfast from "holdfast-queue";
import { client, network, queue, rejected, until, url, waits } from "./helper.mjs";

const { Client, ConnectionError, NoPacketError, Packet, Uncounted, UnknownError } = holdfast;
const bytes = Buffer.from([0, 255, 13, 10, 128]);

test("a packet has what its push said", async (t) => {
  const c = client(t), q = queue(), at = new Date(Date.now() + 3_600_000);
  const id = await c.push(q, bytes, {
    priority: 7, key: bytes, tags: { class: "low", ["__proto__"]: "ä" }, producer: "shop", lease: 5000, meta: bytes, unique: "u", at,
  });
  const packet = await c.show(q, id);
  assert.ok(packet instanceof Packet);
  assert.deepEqual([packet.payload, packet.key, packet.meta], [bytes, bytes, bytes]);
  assert.deepEqual(Object.entries(packet.tags).sort(), [["__proto__", "ä"], ["class", "low"]]);
  const { queue: where, priority, producer, lease, unique, attempt, state, notBefore } = packet;
  assert.deepEqual({ where, priority, producer, lease, unique, attempt, state, notBefore },
    { where: q, priority: 7, producer: "shop", lease: 5000, unique: "u", attempt: 0, state: "delayed", notBefore: at });
  assert.ok(packet.enqueued instanceof Date && packet.why.length > 0);
  assert.equal(packet.token, undefined);
});

test("payloads are bytes or strings", async (t) => {
  const c = client(t), q = queue();
  for (const payload of ["", "ä", bytes, new Uint8Array(bytes), new DataView(new ArrayBuffer(2))]) {
    await c.push(q, payload);
    const [packet] = await c.pop(q);
    assert.deepEqual(packet.payload, ArrayBuffer.isView(payload) ? Buffer.from(payload.buffer.slice(payload.byteOffset, payload.byteOffset + payload.byteLength)) : Buffer.from(payload));
  }
  for (const payload of [undefined, null, 5, {}, [1]]) assert.equal((await rejected(c.push(q, payload))).code, "INVALID");
});

test("every refusal has its class", async (t) => {
  const c = client(t), full = queue(), paused = queue(), string = queue(), q = queue(), closed = queue();
  await c.command("SET", string, "x");
  await c.set(full, { bound: 1 });
  await c.push(full, "");
  await c.set(paused, { "pause-in": "yes" });
  await c.closeQueue(closed);
  for (const [what, call, name] of [
    ["an ack of no claim", () => c.claimed(q, "1", 1).ack(), "StaleError"],
    ["a nack of no claim", () => c.claimed(q, "1", 1).nack(), "StaleError"],
    ["figures of no queue", () => c.stats(q), "NoQueueError"],
    ["a push to a full queue", () => c.push(full, ""), "FullError"],
    ["a push that waits for room", () => c.push(full, "", { block: 1 }), "FullError"],
    ["a push to a paused queue", () => c.push(paused, ""), "PausedError"],
    ["a push to a closed queue", () => c.push(closed, ""), "ClosedError"],
    ["a claim of a drained queue", () => c.claim(closed), "ClosedError"],
    ["a push to a string", () => c.push(string, ""), "WrongTypeError"],
    ["a large payload", () => c.push(q, "x".repeat(2 ** 20 + 1)), "TooLargeError"],
    ["a large batch", () => c.pushBatch(q, Array(5).fill("x".repeat(2 ** 20))), "TooLargeError"],
    ["an option of another call", () => c.push(q, "", { older: 1 }), "InvalidError"],
    ["an option of none", () => c.push(q, "", { dealy: 1 }), "InvalidError"],
    ["a name of Object", () => c.push(q, "", { constructor: 1 }), "InvalidError"],
    ["a priority that is no number", () => c.push(q, "", { priority: NaN }), "InvalidError"],
    ["a moment that is no Date", () => c.push(q, "", { at: 5 }), "InvalidError"],
    ["a filter that is none", () => c.pop(q, { filters: ["class"] }), "InvalidError"],
    ["a setting of no time", () => c.set(q, { lease: "30 parsecs" }), "InvalidError"],
    ["a pause until no moment", () => c.pause(q, { until: 5 }), "InvalidError"],
    ["a pause of something else", () => c.pause(q, { gate: "in" }), "InvalidError"],
    ["a setting that is not known", () => c.set(q, { colour: "red" }), "InvalidError"],
    ["a packet that is not there", () => c.show(full, "999999"), "NoPacketError"],
    ["another packet's priority", () => c.setPriority(full, "999999", 1), "NoPacketError"],
    ["a push to no queue", () => c.push(undefined, ""), "InvalidError"],
    ["a number among ids", () => c.delete(q, "1", 2), "InvalidError"],
    ["a payload of a batch", () => c.pushBatch(q, ["", 5]), "InvalidError"],
    ["a worker of no queue", () => c.consume(undefined, () => {}), "InvalidError"],
    ["a worker that takes groups", () => c.consume(q, () => {}, { group: true }), "InvalidError"],
    ["a worker without handlers", () => c.consume(q, () => {}, { concurrency: 0 }), "InvalidError"],
    ["a batch of nothing", () => c.consumeBatch(q, 0, 1, () => {}), "InvalidError"],
    ["a worker on a string", () => c.consume(string, () => {}), "WrongTypeError"],
  ]) {
    const error = await rejected(call());
    assert.equal(error.name, name, `${what} gives ${error.stack}`);
    assert.ok(error instanceof holdfast[name] && error instanceof holdfast.HoldfastError, what);
    assert.equal(error.code, name.replace("Error", "").toUpperCase());
  }
});

test("calls do what they say", async (t) => {
  const c = client(t), q = queue(), other = queue();
  const ids = await c.pushBatch(q, ["a", "b", "c", "d"], { tags: { class: "low" } });
  assert.deepEqual([await c.pushBatch(q, []), await c.len(q), (await c.peek(q, 2)).map((p) => p.id)], [[], 4, ids.slice(0, 2)]);
  assert.deepEqual(await c.queues(`${q}*`), [q]);
  await c.setPriority(q, ids[3], 1);
  await c.rescheduleIn(q, ids[0], 60_000);
  assert.equal((await c.show(q, ids[0])).state, "delayed");
  await c.reschedule(q, ids[0]);
  const [d] = await c.claim(q, { lease: 60_000, as: "me", filters: ["class<=low", ["class", "!=", "high"]], matchAny: 1 });
  assert.deepEqual([d.id, d.consumer, d.attempt, d.state, d.answered], [ids[3], "me", 1, "claimed", false]);
  const end = d.leaseEnd;
  await d.extend(120_000);
  assert.ok(d.leaseEnd - end > 50_000);
  await d.progress(40, "half");
  const shown = await c.show(q, d.id);
  assert.deepEqual([shown.percent, shown.percentText], [40, "half"]);
  assert.equal(shown.cancelled, undefined);
  assert.deepEqual(await c.cancel(q, ids[3], ids[2], "999999"), ["told", "gone", undefined]);
  assert.equal((await c.show(q, d.id)).cancelled, true);
  assert.equal(await d.nack("over"), "cancelled");
  assert.ok(d.answered);
  const [a] = await c.claim(q);
  assert.deepEqual([await a.nack(new holdfast.Dead(new TypeError("no: address"))), (await c.show(q, a.id)).errorClass], ["dead", "TypeError"]);
  assert.ok((await c.show(q, a.id)).died instanceof Date);
  await c.redrivePacket(q, a.id);
  assert.ok((await rejected(c.redrivePacket(q, a.id))) instanceof NoPacketError);
  assert.deepEqual([await c.move(q, other, a.id), await c.moveAll(q, other, { dryRun: true }), await c.delete(other, a.id)], [1, 1, 1]);
  const stats = await c.stats(q), { ready, pushed, cancelled, died, full, held, sharesAtLimit } = stats;
  assert.deepEqual({ ready, pushed, cancelled, died, full, held, sharesAtLimit },
    { ready: 1, pushed: 4, cancelled: 2, died: 1, full: false, held: false, sharesAtLimit: 0 });
  assert.deepEqual(stats.bands.filter(({ packets }) => packets > 0), [{ from: 100, to: 999, packets: 1 }]);
  await c.set(q, { "max-attempts": 3, "pause-out": true, enum: { class: ["low", "high"] } });
  const settings = await c.get(q);
  assert.deepEqual([settings["max-attempts"], settings.enum], ["3", { class: ["low", "high"] }]);
  const gates = async (...want) => {
    const all = await c.get(q);
    assert.deepEqual(["pause-out", "pause-out-until", "pause-in", "pause-in-until"].map((name) => all[name]), want);
  };
  await gates("yes", "0", "no", "0");
  await c.resume(q);
  await gates("no", "0", "no", "0");
  await c.pause(q);
  await c.pause(q, { until: new Date(4e12), pushes: true });
  await gates("yes", "0", "yes", "4000000000000");
  await c.resume(q, { pushes: true });
  await c.pause(q, { until: new Date(4e12) });
  await gates("yes", "4000000000000", "no", "0");
  await c.resume(q);
  await c.set(q, { lease: "1.1m", "backoff-min": 250, "backoff-max": "90s", retain: "2h", "retain-dead": "1d", "alert-age": "500ms", "dead-letter": "30s" });
  const { lease, retain, ...times } = await c.get(q);
  assert.deepEqual([lease, times["backoff-min"], times["backoff-max"], retain, times["retain-dead"], times["alert-age"], times["dead-letter"]],
    ["66000", "250", "90000", "7200000", "86400000", "500", "30s"]);
  await c.set(q, { retain: 0, "dead-letter": "" });
  const [producer] = await c.producers(q);
  assert.deepEqual([producer.pushed, typeof producer.connection], [4, "string"]);
  assert.equal((await c.command("CLIENT", "LIST", "ID", producer.connection)).toString().startsWith(`id=${producer.connection} `), true);
  await c.set(q, { "share-by": "key" });
  await c.push(q, "", { key: "acme" });
  await c.setShare(q, "acme", { weight: 3, rate: "10/1m" });
  const [share] = await c.shares(q);
  assert.deepEqual([share.name, share.weight, share.rate, share.ready], ["acme", 3, "10/1m", 1]);
  await c.resetShare(q, "acme");
  assert.equal((await c.shares(q)).find(({ name }) => name === "acme").weight, 1);
  assert.deepEqual([await c.purge(q), await c.closeQueue(q), await c.closeQueue(q)], [2, true, false]);
  await c.drop(q);
});

test("a claim takes from several queues", async (t) => {
  const c = client(t), first = queue(), second = queue();
  await c.push(second, "x");
  const [packet] = await c.claim(first, { newest: true, or: [second] });
  assert.equal(packet.queue, second);
  await packet.ack();
});

test("a push with unique tells what became of it", async (t) => {
  const c = client(t), q = queue();
  const first = await c.pushTold(q, "1", { unique: "u", delay: 60_000 });
  assert.equal(first.told, "new");
  assert.deepEqual(await c.pushTold(q, "2", { unique: "u", replace: true }), { id: first.id, told: "replaced" });
  assert.deepEqual(await c.pushTold(q, "3", { unique: "u" }), { id: first.id, told: "delayed" });
  assert.equal((await c.show(q, first.id)).payload.toString(), "2");
});

test("a list goes through all pages", async (t) => {
  const c = client(t), q = queue();
  const ids = await c.pushBatch(q, Array(250).fill("x"));
  const got = [];
  for await (const packet of c.list(q, { state: "ready" })) got.push(packet.id);
  assert.deepEqual(got, ids);
});

test("a take waits for a packet, and its signal ends that", async (t) => {
  const c = client(t), q = queue(), abort = new AbortController();
  const claimed = c.claim(q, { block: 0 });
  await waits(c, q);
  assert.deepEqual((await c.consumers(q))[0].waiting[0].queues, [q]);
  await c.push(q, "now");
  assert.equal((await claimed)[0].payload.toString(), "now");
  assert.deepEqual(await c.pop(q, { block: 1 }), []);
  const popped = c.pop(q, { block: 0, signal: abort.signal });
  await waits(c, q);
  abort.abort(new Error("enough"));
  assert.equal((await rejected(popped)).message, "enough");
  await c.push(q, "later");
  assert.equal(await c.len(q), 2);
  assert.equal((await rejected(c.push(q, "", { signal: abort.signal }))).message, "enough");
});

test("claims end with the queue, and return what nobody has begun with", async (t) => {
  const c = client(t), q = queue();
  await c.pushBatch(q, ["1", "2", "3"]);
  for await (const packet of c.claims(q, { count: 3 })) {
    await packet.ack();
    break;
  }
  assert.deepEqual((await c.peek(q)).map((p) => [String(p.payload), p.attempt]), [["2", 0], ["3", 0]]);
  await c.closeQueue(q);
  const got = [];
  for await (const packet of c.claims(q)) {
    got.push(String(packet.payload));
    await packet.ack();
  }
  assert.deepEqual(got, ["2", "3"]);
});

test("a push is not repeated when its answer is lost, and what may be repeated is", async (t) => {
  const net = await network(t), c = client(t, { url: net.url }), sure = client(t), q = queue();
  await c.push(q, "1");
  net.stalls = true; // the request arrives, its answer does not
  net.sees = (text) => { if (text.includes("QPUSH")) until(async () => (await sure.len(q)) === 2).then(net.cut); };
  assert.ok((await rejected(c.push(q, "2"))) instanceof UnknownError);
  let asked = 0;
  net.sees = (text) => { if (text.includes("QLEN") && ++asked === 1) net.cut(); };
  net.stalls = false;
  assert.deepEqual([await c.len(q), asked], [2, 2]);
});

test("a server that says nothing is given up, and found again", async (t) => {
  const net = await network(t), c = client(t, { url: net.url, socket: { connectTimeout: 1000 } }), q = queue();
  await c.push(q, "1");
  net.stalls = true;
  assert.ok((await rejected(c.push(q, "2"))) instanceof UnknownError);
  assert.ok((await rejected(c.len(q))) instanceof ConnectionError);
  assert.ok(net.dials <= 3, `it has tried ${net.dials} connections`); // the first, one of len, and perhaps one more
  net.resume();
  assert.equal(await c.len(q), 2);
});

test("a long answer over a slow line is waited for", async (t) => {
  const net = await network(t), c = client(t, { url: net.url, socket: { connectTimeout: 1000 } }), q = queue();
  const ids = await c.pushBatch(q, Array(16).fill("x".repeat(4096)));
  net.stalls = true;
  const popped = c.pop(q, { count: 16 });
  await until(() => net.kept() > 16 * 4096);
  await Promise.race([net.drip(4096, 100), popped]);
  assert.deepEqual((await popped).map(({ id }) => id), ids);
});

test("a server that is not there is a ConnectionError, and so is a client that is closed", async (t) => {
  const net = await network(t), c = client(t, { url: net.url });
  net.down = true;
  assert.ok((await rejected(c.push("q", "x"))) instanceof ConnectionError);
  c.close();
  assert.ok((await rejected(c.len("q"))) instanceof ConnectionError);
});

test("the end of a client ends a connection that is being made", { timeout: 30_000 }, async (t) => {
  const net = await network(t), c = client(t, { url: net.url, socket: { connectTimeout: 2 ** 29 } });
  net.stalls = true;
  const asked = rejected(c.len("q"));
  await until(() => net.kept() > 0); // the first answer of its login
  c.close();
  assert.ok((await asked) instanceof ConnectionError);
});

test("a client has a name that no other has", async (t) => {
  const q = queue();
  for (const c of [client(t), client(t)]) await c.push(q, "");
  const all = await client(t).producers(q);
  assert.equal(new Set(all.map(({ name }) => name)).size, 2);
  assert.ok(all.every(({ name }) => name.includes(`-${process.pid}-`)));
  const named = new Client(url);
  t.after(() => named.close());
  await named.push(q, "");
});

test("a verdict needs no reason", async (t) => {
  const c = client(t), q = queue();
  await c.push(q, "");
  const [packet] = await c.claim(q);
  assert.equal(await packet.nack(new Uncounted(0)), "ready");
  assert.equal((await c.show(q, packet.id)).reason, undefined);
});
