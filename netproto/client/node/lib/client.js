"use strict";
const { hostname } = require("node:os");
const { randomBytes } = require("node:crypto");
const { Consumer } = require("./consume.js");
const { whole, errors: { ClosedError, FullError, NoPacketError, Uncounted } } = require("./errors.js");
const { Packet } = require("./packet.js");
const { Wire } = require("./wire.js");
const { moment, pairs, read, setting, text, texts, words } = require("./words.js");

const list = (reply) => reply.map((one) => read(one));
const long = { fill: 0, turn: 2 ** 30 }; // an answer that may take long, on a connection of its own

/** found refuses a reply that says that there is no such packet. */
function found(reply, queue, id) {
  if (reply === 0 || reply === null) throw new NoPacketError(`${queue} has no packet ${id} with which this can be done`);
  return reply;
}

/** Client is a client of one server. index.d.ts says what its methods do. */
class Client {
  #wire; #log; #stopped;
  #consumers = new Set();
  #works = 0; // calls of work, which share the listeners of the process
  #down = () => { this.shutdown(); };

  constructor(options = {}) {
    const { log = console.warn, ...redis } = typeof options === "string" ? { url: options } : options;
    const name = `${hostname().slice(0, 64)}-${process.pid}-${randomBytes(3).toString("hex")}`;
    this.#wire = new Wire({ name, ...redis });
    this.#log = log;
  }
  close() { this.#wire.close(); }
  async command(...args) { return this.#wire.once(args); }

  async push(queue, payload, options) { return text(await this.#push(["QPUSH", queue, payload], options)); }
  async pushTold(queue, payload, options) {
    const [id, told] = await this.#push(["QPUSH", queue, payload, "TELL"], options);
    return { id: text(id), told: text(told) };
  }
  async pushBatch(queue, payloads, options) {
    if (payloads.length === 0) return [];
    return texts(await this.#push(["QMPUSH", queue, String(payloads.length), ...payloads], options));
  }
  async #push(command, { block, signal, ...options } = {}) {
    const reply = await this.#wire.wait([...command, ...words(options)], { block, signal, turn: 600_000 });
    if (reply !== null && reply[0] !== null) return reply;
    throw new FullError(`the queue is full${block === undefined ? " of better packets" : ", or paused, and no room came in time"}`);
  }

  pop(queue, options) { return this.#take("QPOP", queue, options); }
  claim(queue, options) { return this.#take("QCLAIM", queue, options); }
  async #take(command, queue, { block, signal, ...options } = {}) {
    const wait = { block, signal, fill: options.fill };
    return Packet.of(this.#wire, await this.#wire.wait([command, queue, ...words(options)], wait));
  }
  async *claims(queue, options) {
    const packets = [];
    try {
      for (; ; packets.push(...await this.claim(queue, { ...options, block: 0 }))) {
        while (packets.length > 0) yield packets.shift();
      }
    } catch (error) {
      if (!(error instanceof ClosedError)) throw error;
    } finally { // what nobody has begun with
      await Promise.allSettled(packets.map((packet) => packet.nack(new Uncounted(0, "not begun"))));
    }
  }
  claimed(queue, id, token) { return Object.assign(new Packet(this.#wire, []), { id, queue, token, state: "claimed" }); }

  consume(queue, handler, options) { return this.#consume(queue, handler, options, 0); }
  consumeBatch(queue, size, fill, handler, options) { return this.#consume(queue, handler, { ...options, fill }, size); }
  async #consume(queue, handler, { signal, ...options } = {}, size) {
    const log = (message, ...cause) => { (async () => this.#log(`holdfast: ${queue}: ${message}`, ...cause))().catch(() => {}); };
    const consumer = new Consumer(this.#wire, log, queue, handler, options, size);
    if (this.#stopped || signal?.aborted) return;
    signal?.addEventListener("abort", () => consumer.stop(), { signal: consumer.stopping.signal });
    this.#consumers.add(consumer);
    await (consumer.ended = consumer.run()).finally(() => this.#consumers.delete(consumer));
  }
  async work(queue, handler, options) {
    if (this.#works++ === 0) process.once("SIGTERM", this.#down).once("SIGINT", this.#down);
    await this.consume(queue, handler, options).finally(() => {
      if (--this.#works === 0) process.off("SIGTERM", this.#down).off("SIGINT", this.#down);
    });
  }
  async shutdown(drain) {
    this.#stopped = true;
    const left = await Promise.all([...this.#consumers].map((consumer) => consumer.stop(drain)));
    return left.reduce((sum, n) => sum + n, 0);
  }

  async queues(pattern = "*") { return texts(await this.#wire.ask(["QUEUES", "MATCH", pattern])).sort(); }
  len(queue) { return this.#wire.ask(["QLEN", queue]); }
  async peek(queue, n = 10) { return Packet.of(this.#wire, await this.#wire.ask(["QPEEK", queue, "COUNT", whole(n, "count")])); }
  async show(queue, id) { return new Packet(this.#wire, found(await this.#wire.ask(["QSHOW", queue, id]), queue, id)); }
  /** pages goes through the pages of a list. Each comes with the cursor of the next one. */
  async *#pages(...request) {
    for (let cursor = "0", page; page === undefined || String(cursor) !== "0"; yield* page) {
      [cursor, page] = await this.#wire.ask([...request, cursor]);
    }
  }
  async *list(queue, options) {
    const pages = this.#pages("QLIST", queue, ...words(options), "COUNT", "100", "CURSOR");
    for await (const one of pages) yield new Packet(this.#wire, one);
  }

  async purge(queue, options) { return this.#wire.wait(["QPURGE", queue, ...words(options)], long); }
  async harvest(queue, options) { return this.#wire.wait(["QHARVEST", queue, ...words(options)], long); }
  async redrive(queue, options) { return this.#wire.wait(["QREDRIVE", queue, ...words(options)], long); }
  async redrivePacket(queue, id) { found(await this.#wire.once(["QREDRIVE", queue, id]), queue, id); }
  async moveAll(queue, to, options) { return this.#wire.wait(["QMOVE", queue, "TO", to, ...words(options)], long); }
  move(queue, to, ...ids) { return this.#wire.once(["QMOVE", queue, ...ids, "TO", to]); }
  delete(queue, ...ids) { return this.#wire.once(["QDEL", queue, ...ids]); }
  async cancel(queue, ...ids) { return texts(await this.#wire.once(["QCANCEL", queue, ...ids])); }
  async #change(command, queue, id, ...args) { found(await this.#wire.ask([command, queue, id, ...args]), queue, id); }
  async setPriority(queue, id, priority) { await this.#change("QPRIO", queue, id, whole(priority, "priority")); }
  async reschedule(queue, id, at = new Date(0)) { await this.#change("QRUN", queue, id, "AT", moment(at, "at")); }
  async rescheduleIn(queue, id, ms) { await this.#change("QRUN", queue, id, "DELAY", whole(ms, "delay")); }

  async drop(queue) { await this.#wire.once(["QDROP", queue]); }
  async closeQueue(queue) { return (await this.#wire.once(["QCLOSE", queue])) === 1; }
  async get(queue) {
    return pairs(await this.#wire.ask(["QGET", queue]), (value, name) => (name === "enum" ? pairs(value, texts) : text(value)));
  }
  async set(queue, { enum: orders = {}, ...settings }, { force = false } = {}) {
    const all = Object.entries(settings).flatMap(([name, value]) => [name, setting(name, value)]);
    if (all.length > 0) await this.#wire.ask(["QSET", queue, ...(force ? ["FORCE"] : []), ...all]);
    for (const [tag, values] of Object.entries(orders)) await this.#wire.ask(["QSET", queue, "enum", tag, ...values]);
  }
  async pause(queue, { until, ...options } = {}) {
    if (until === undefined) return this.#gate(queue, "yes", options);
    await this.#wire.ask(["QPAUSE", queue, ...words(options), "UNTIL", moment(until, "until")]);
  }
  async resume(queue, options) { await this.#gate(queue, "no", options); }
  async #gate(queue, paused, { pushes, ...others } = {}) {
    await this.#wire.ask(["QSET", queue, pushes ? "pause-in" : "pause-out", paused, ...words(others)]);
  }
  async stats(queue) { return read(await this.#wire.ask(["QSTAT", queue])); }
  async consumers(queue) { return list(await this.#wire.ask(["QCONSUMERS", queue])); }
  async producers(queue) { return list(await this.#wire.ask(["QPRODUCERS", queue], { numbers: String })); }
  async shares(queue) {
    const all = [];
    for await (const share of this.#pages("QSHARES", queue, "COUNT", "1000", "AFTER")) all.push(read(share));
    return all;
  }
  async setShare(queue, share, options) { await this.#wire.ask(["QSHARE", queue, share, ...words(options)]); }
  async resetShare(queue, share) { await this.#wire.ask(["QSHARE", queue, share, "RESET"]); }
}

module.exports = { Client };
