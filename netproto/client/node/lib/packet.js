"use strict";
const { cut, whole, errors: { HoldfastError, Verdict } } = require("./errors.js");
const { ofPackets, read, text } = require("./words.js");

/** Packet is a packet as the server shows it. Fields that do not apply are not there. */
class Packet {
  #wire;
  #answered = false;
  attempt = 0;

  constructor(wire, reply) {
    this.#wire = wire;
    read(reply, this, ofPackets);
  }

  /** of reads an array of packets, or the null for none. */
  static of(wire, reply) {
    const all = (reply ?? []).map?.((one) => new Packet(wire, one ?? []));
    if (all?.every(({ id }) => id !== undefined)) return all;
    throw new HoldfastError("the server replied with something else than packets: is it Holdfast?");
  }

  #words(command) { return [command, this.queue, this.id, String(this.token)]; }
  #price() { return this.cost > 1 ? ["COST", whole(this.cost, "cost")] : []; }
  acks() { return [...this.#words("QACK"), ...this.#price()]; }
  nacks(why) { return [...this.#words("QNACK"), ...this.#price(), ...Verdict.of(why).words]; }
  extends(ms) { return [...this.#words("QEXTEND"), whole(ms, "lease")]; }

  get answered() { return this.#answered; }
  async #answer(request) {
    const reply = await this.#wire.ask(request);
    this.#answered = true;
    return text(reply);
  }
  async ack() { await this.#answer(this.acks()); }
  async nack(why) { return this.#answer(this.nacks(why)); }
  async extend(ms) { this.leaseEnd = new Date(await this.#wire.ask(this.extends(ms))); }
  async progress(percent, words = "") { await this.#wire.ask([...this.#words("QPROGRESS"), whole(percent, "percent"), cut(words)]); }
}

module.exports = { Packet };
