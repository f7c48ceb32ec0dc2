"use strict";
const { setImmediate: turn, setTimeout: sleep } = require("node:timers/promises");
const { isGeneratorFunction, isGeneratorObject } = require("node:util/types");
const { check, errors } = require("./errors.js");
const { Packet } = require("./packet.js");
const { longest } = require("./wire.js");
const { words } = require("./words.js");

const now = () => performance.now();
const maxCount = 1000; // the most packets that the server gives, or takes answers for, at once

/** longer is the next pause between attempts: up to a second, and never quite the same. */
const longer = (pause) => Math.min(Math.max(2 * pause, 50), 1000) * (0.75 + Math.random() / 4);

/**
 * Consumer is a call of consume. A job is a packet from its claim until its answer is known. Held
 * says that its claim is good, as far as is known; finished that its answer is decided; renewed is
 * when its lease was asked for, as the lease did not begin before.
 */
class Consumer {
  jobs = new Set();
  running = 0; // handlers
  looked = now(); // when the leases were looked at
  left = 0; // how many packets were given back: at the end of the drain, when over is set
  stopping = new AbortController(); // ends claiming
  wake = () => {};

  constructor(wire, log, queue, handler, { lease = 30_000, concurrency = 1, drain = 10_000, fill, burst, ...options }, size) {
    check(typeof handler === "function" && !isGeneratorFunction(handler), handler, "handler", "a function that is no generator");
    const batch = size === 0 ? fill === undefined : size <= maxCount && fill > 0;
    const good = batch && concurrency >= 1 && lease >= 1 && !("count" in options || "group" in options);
    check(good, { size, fill, concurrency, lease, ...options }, "a worker",
      "concurrency and lease of 1 or more, neither count nor group, and a fill with batches of 1 to 1,000 alone");
    const request = ["QCLAIM", queue, ...words({ ...options, lease, fill })];
    Object.assign(this, { wire, log, handler, request, lease, concurrency, drain, fill, burst, size, step: lease / 12 });
  }

  async run() {
    const timer = setInterval(() => this.renew(), Math.min(Math.max(1, this.step), longest));
    try { await this.claim(); } finally {
      while (this.jobs.size > 0) await this.change();
      clearInterval(timer);
      this.stopping.abort(); // nobody stops it any more
    }
  }

  /**
   * stop ends claiming. After the drain it gives back what is not finished, and returns how much.
   */
  async stop(drain = this.drain) {
    this.stopping.abort();
    this.wake();
    const timer = drain <= longest ? setTimeout(() => this.giveBack(), drain) : undefined;
    await this.ended.catch(() => {}); // consume rejects with it
    clearTimeout(timer);
    return this.left;
  }

  change() { return new Promise((resolve) => { this.wake = resolve; }); }

  async claim() {
    const { signal } = this.stopping;
    for (let pause = 0, idle = false; !signal.aborted;) {
      await turn(); // to the answers of quick handlers
      const n = this.free();
      const wait = { block: this.burst ? undefined : 0, fill: this.fill, signal };
      try {
        if (n === 0) await this.change();
        else if ((await this.begin(await this.wire.wait([...this.request, "COUNT", String(n)], wait), wait.asked)) > 0) idle = false;
        else if (this.burst) {
          if (idle) return;
          while (this.jobs.size > 0) await this.change(); // what they push or return may be there then
          idle = true;
        }
        pause = 0;
      } catch (error) {
        if (signal.aborted || error instanceof errors.ClosedError) return;
        if (!this.wire.passing(error)) throw error;
        this.log(`no packet could be claimed: ${error.message}`);
        await sleep(pause = longer(pause), undefined, { signal }).catch(() => {});
      }
    }
  }

  /** free is how many packets may be claimed, though some answers may be on their way. */
  free() {
    const n = Math.min(this.concurrency - this.running, 2 * this.concurrency - this.jobs.size / (this.size || 1), maxCount);
    return n < 1 ? 0 : this.size || n;
  }

  /**
   * begin has the handler work on packets, and returns how many were claimed. If the answer to the
   * claim came late the leases may be over, so they are renewed first. A packet whose lease is not
   * is left to others. What comes after the drain is given back.
   */
  async begin(reply, asked) {
    const jobs = Packet.of(this.wire, reply).map((packet) => ({ packet, renewed: asked, held: true }));
    if (now() - asked > this.lease / 3) await Promise.all(jobs.map((job) => this.extend(job)));
    const good = jobs.filter((job) => job.held && !job.cancelled && !this.isLate(job));
    if (good.length < jobs.length) this.log(`${jobs.length - good.length} claims came too late to begin with their packets`);
    if (this.over) await this.giveBack(good);
    else if (this.size === 0) for (const job of good) this.handle([job]);
    else if (good.length > 0) this.handle(good);
    return jobs.length;
  }

  /**
   * isLate says that no time is left: a renewal may take two steps, and the third is for the
   * handler.
   */
  isLate(job) { return now() - job.renewed >= this.lease - 3 * this.step; }

  async handle(jobs) {
    const [packets, work] = [jobs.map((job) => job.packet), { abort: new AbortController(), leases: jobs.length }];
    for (const job of jobs) this.jobs.add(Object.assign(job, { work }));
    this.running++;
    let why; // undefined: all is well
    try {
      const result = await this.handler.call(undefined, this.size === 0 ? packets[0] : packets, { signal: work.abort.signal });
      if (isGeneratorObject(result)) throw new errors.InvalidError("the handler is a generator: nobody has run it");
      if (result instanceof errors.Verdict) why = errors.Verdict.of(result);
    } catch (error) { why = errors.Verdict.of(error ?? `${error} was thrown`); }
    this.running--;
    this.look();
    const fails = why !== undefined && !(why instanceof errors.Uncounted || why instanceof errors.Hold);
    if (fails && jobs.some((job) => job.held && !job.finished && !job.cancelled)) {
      const says = `packet ${packets[0].id} failed at attempt ${packets[0].attempt}`;
      if (why.constructor === errors.Verdict) this.log(says, why.cause ?? why);
      else this.log(`${says}: ${why.name}: ${why.reason}`); // it was expected
    }
    for (const job of jobs) this.finish(job, why);
    this.wake();
  }

  /** finish decides what is answered for a packet. Only the first decision counts. */
  async finish(job, why) {
    if (job.finished) return;
    job.finished = true;
    if (job.held && !job.packet.answered) await this.answer(job, why);
    if (this.jobs.delete(job)) this.wake();
  }

  /** answer sends the answer for a packet, until it arrives or the lease is over. */
  async answer(job, why, pause = 0) {
    const { packet } = job;
    try {
      await this.wire.send(why === undefined ? packet.acks() : packet.nacks(why));
    } catch (error) {
      if (this.wire.passing(error)) {
        if (!this.over) await sleep(pause = longer(pause));
        if (job.held && !this.over) await this.answer(job, why, pause);
      } else if (!job.cancelled && !(pause > 0 && error.code === "STALE")) { // the first one may have arrived
        this.log(`the answer for packet ${packet.id} was not taken: ${error.message}`);
        if ((error instanceof errors.HoldfastError && error.code !== "INVALID") || job.plain) return;
        job.plain = true; // without its cost, and what its verdict says
        packet.cost = undefined;
        await this.answer(job, why?.plain);
      }
    }
  }

  /** look says once that the event loop was blocked, so that no lease could be renewed. */
  look() {
    const blocked = now() - this.looked - this.step, seconds = (ms) => Number((ms / 1000).toPrecision(2));
    if (blocked > this.lease / 3 && !this.told) {
      this.told = true;
      this.log(`the event loop was blocked for ${seconds(blocked)} s; leases of ${seconds(this.lease)} s cannot be renewed meanwhile`);
    }
    this.looked = now();
  }

  /**
   * renew looks at the leases twelve times in the time of one, and renews one once a third is over.
   */
  renew() {
    this.look();
    for (const job of this.jobs) {
      if (!job.held || job.cancelled || job.packet.answered) continue;
      if (this.isLate(job)) this.lose(job, new errors.StaleError("the lease is over: the server did not answer in time"));
      else if (!job.extending && now() - job.renewed >= this.lease / 3) this.extend(job);
    }
  }

  async extend(job) {
    const asked = now();
    job.extending = true;
    try {
      await this.wire.send(job.packet.extends(this.lease));
      job.renewed = asked;
    } catch (error) { // one that was cancelled goes with its claim, whatever is answered
      job.cancelled = error.code === "CANCELLED";
      if (!this.wire.passing(error)) this.lose(job, error);
    }
    job.extending = false;
  }

  /** lose tells a handler that a packet is not its own any more, once none is. */
  lose(job, cause) {
    if (!job.held) return;
    job.held = job.cancelled === true;
    if (job.finished) return; // its handler has ended
    if (!job.held) this.log(`the lease of packet ${job.packet.id} is lost: ${cause.message}`);
    if (job.work && --job.work.leases === 0) job.work.abort.abort(cause);
  }

  /** giveBack returns the packets that handlers still work on: others may take them at once. */
  async giveBack(jobs = [...this.jobs]) {
    this.over = true;
    const cause = new errors.ShutdownError("the worker has ended");
    const left = jobs.filter((job) => !job.finished);
    this.left += left.length;
    const answers = left.map((job) => this.finish(job, new errors.Uncounted(0, cause)));
    for (const job of left) job.work?.abort.abort(cause);
    await Promise.all(answers);
  }
}

module.exports = { Consumer };
