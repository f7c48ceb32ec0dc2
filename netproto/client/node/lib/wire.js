"use strict";
const { setTimeout: sleep } = require("node:timers/promises");
const { createClient, RESP_TYPES, ErrorReply, ClientClosedError, ClientOfflineError } = require("redis");
const { HoldfastError, ConnectionError, UnknownError } = require("./errors.js").errors;
const { bytes } = require("./words.js");

/** failure is the server's refusal, or an error of the connection. */
function failure(error, Kind, says) {
  if (error instanceof ErrorReply) return HoldfastError.of(error);
  return new Kind(`${says}: ${error.message || error.code}`, { cause: error });
}

/** longest is what a timer can wait for, in milliseconds: a longer one ends at once. */
const longest = 2 ** 31 - 1;

/** Connection is one to the server, made when it is needed. node-redis repeats nothing on it. */
class Connection {
  #opening; #end; #timer; #heard;
  #unanswered = 0;
  id; // what CLIENT UNBLOCK calls it

  /** patience is how long the server may say nothing, in milliseconds. */
  constructor(options, patience) { Object.assign(this, { options, patience }); }

  async #open() {
    const end = (this.#end = new AbortController()); // also of a connection that is not made yet
    const socket = { ...this.options.socket, reconnectStrategy: false, socketTimeout: undefined, signal: end.signal };
    const redis = createClient({ ...this.options, socket, disableOfflineQueue: true, maintNotifications: "disabled" });
    const lost = () => { if (this.#end === end) this.cut(); };
    redis.on("error", lost);
    const timer = setTimeout(() => end.abort(), 2 * this.patience); // connectTimeout is not of the login
    try {
      await redis.connect();
      this.id = await redis.sendCommand(["CLIENT", "ID"], { typeMapping: { [RESP_TYPES.NUMBER]: String } }); // of 63 bits
      return redis;
    } catch (error) {
      lost();
      throw failure(error, ConnectionError, "no connection to the server");
    } finally { clearTimeout(timer); }
  }

  /** send sends a request once. UnknownError says that it may have been carried out. */
  async send(given, { numbers = Number, patience = this.patience } = {}) {
    const args = given.map((arg) => bytes(arg, given[0]));
    const redis = await (this.#opening ??= this.#open());
    const hear = () => this.#hear(); // node-redis asks how to read each text, and so tells that a long reply goes on
    const typeMapping = { [RESP_TYPES.MAP]: Array, [RESP_TYPES.NUMBER]: numbers, get [RESP_TYPES.BLOB_STRING]() { hear(); return Buffer; } };
    if (this.#unanswered++ === 0) this.#timer = setTimeout(() => this.#listen(), Math.min(patience, longest));
    try {
      return await redis.sendCommand(args, { typeMapping, timeout: undefined });
    } catch (error) {
      if (error instanceof ClientClosedError || error instanceof ClientOfflineError) throw failure(error, ConnectionError, "not sent");
      throw failure(error, UnknownError, "the connection was lost before the answer, so the call may have been carried out");
    } finally {
      this.#hear();
      if (--this.#unanswered === 0) clearTimeout(this.#timer);
    }
  }

  #hear() { this.#heard = true; this.#timer.refresh(); }

  /**
   * listen hears what has come while the program was busy. If that is nothing the connection goes.
   */
  #listen() {
    this.#heard = false;
    setImmediate(() => this.#heard || this.cut());
  }

  /**
   * cut ends the connection, so that the server gives nothing to a wait that nobody has any more.
   */
  cut() {
    this.#end?.abort();
    this.#end = this.#opening = this.id = undefined;
  }
}

/** soon are the requests that must come before a lease ends. Long ones do not hold them up. */
const soon = new Set(["QACK", "QNACK", "QEXTEND"]);

/** Wire sends requests. */
class Wire {
  #all = []; #idle = []; // connections, and those that have waited
  #main; #soon; #closed;

  constructor(options) {
    const patience = options.socket?.socketTimeout ?? options.socket?.connectTimeout ?? 5000;
    Object.assign(this, { options, patience: Math.min(patience, longest / 2) }); // a connection has twice that
  }

  #make() {
    if (this.#closed) throw new ConnectionError("the client is closed: make a new one");
    return this.#all[this.#all.push(new Connection(this.options, this.patience)) - 1];
  }

  close() {
    for (const connection of this.#all) connection.cut();
    this.#closed = true;
    this.#main = this.#soon = undefined;
  }

  /** passing says whether an error may be over soon: the server is away, or short of something. */
  passing(error) { return !this.#closed && ["CONNECTION", "UNKNOWN", "NOSPACE", "TOOMANY"].includes(error?.code); }

  async send(args, options) {
    const connection = soon.has(args[0]) ? (this.#soon ??= this.#make()) : (this.#main ??= this.#make());
    return connection.send(args, options);
  }

  /** once sends a request that does something twice when it is sent twice. */
  once(args) { return this.ask(args, undefined, false); }

  /**
   * ask sends a request, and again when the connection is lost: five times in half a second, or
   * fewer if the server says nothing for long.
   */
  async ask(args, options, repeat = true) {
    for (let pause = 30, end = performance.now() + 2 * this.patience; ; await sleep(pause *= 2)) {
      try {
        return await this.send(args, options);
      } catch (error) {
        const again = error instanceof ConnectionError || (repeat && error instanceof UnknownError);
        if (!again || this.#closed || pause > 300 || performance.now() >= end) throw error;
      }
    }
  }

  /**
   * wait sends a request with BLOCK, on a connection of its own and in turns of some time, so that
   * it notices a server that is cut off. It ends with an answer, or when block is over: 0 has no
   * end, undefined is no BLOCK. The abort of signal ends it, too, and is an error unless there is
   * an answer. wait.asked becomes the moment of the last turn. Without block and fill it is once.
   */
  async wait(args, wait) {
    const { block, turn = 30_000, fill, signal } = wait;
    signal?.throwIfAborted();
    wait.asked = performance.now();
    if (block === undefined && fill === undefined) return this.once(args);
    const connection = (!this.#closed && this.#idle.pop()) || this.#make();
    try {
      for (const begin = performance.now(); ; signal?.throwIfAborted()) {
        wait.asked = performance.now();
        const rest = block > 0 ? Math.max(1, Math.min(turn, Math.ceil(block - (wait.asked - begin)))) : turn;
        const request = block === undefined ? args : [...args, "BLOCK", String(rest)];
        const answer = connection.send(request, { patience: turn + (fill ?? 0) + this.patience });
        const interrupt = () => this.#interrupt(connection, answer);
        signal?.addEventListener("abort", interrupt, { once: true });
        const reply = await answer.finally(() => signal?.removeEventListener("abort", interrupt));
        if (reply !== null || block === undefined || (block > 0 && performance.now() - begin >= block)) return reply;
      }
    } finally { this.#idle.push(connection); }
  }

  /**
   * interrupt tells the server to end a wait. The server may get this before the request, so it is
   * told again, less and less often. It may refuse, if the connections are not of one user. A server
   * that says nothing loses the connection.
   */
  async #interrupt(connection, answer) {
    let waits = true;
    const timer = setTimeout(() => connection.cut(), this.patience);
    answer.catch(() => {}).then(() => { waits = false; clearTimeout(timer); });
    for (let pause = 1; waits; await sleep(pause *= 2)) {
      if (connection.id === undefined) continue; // it is not made yet
      await this.send(["CLIENT", "UNBLOCK", connection.id]).catch((error) => this.passing(error) || connection.cut());
    }
  }
}

module.exports = { Wire, longest };
