"use strict";
const { inspect } = require("node:util");

class HoldfastError extends Error {
  static code = "UNEXPECTED";
  get code() { return this.constructor.code; }
  get name() { return this.constructor.name; }

  /** of gives an error of the server its class: the first whose words it begins with. */
  static of(reply) {
    const [name] = Object.entries(kinds).find(([, begins]) => begins.some((words) => reply.message.startsWith(words))) ?? [];
    return new (errors[name] ?? HoldfastError)(reply.message, { cause: reply });
  }
}

/** kinds are the classes, and how the server's errors of each begin. */
const kinds = {
  StaleError: ["STALE "], CancelledError: ["CANCELLED "], NoQueueError: ["NOQUEUE "], FullError: ["FULL "],
  PausedError: ["PAUSED "], ClosedError: ["CLOSED "], InUseError: ["INUSE "], NoSpaceError: ["OOM "],
  WrongTypeError: ["WRONGTYPE "], DeniedError: ["NOAUTH ", "WRONGPASS "], ForbiddenError: ["NOPERM "],
  TooLargeError: ["ERR too large", "ERR transaction too large", "ERR reply too large", "ERR the request is longer"],
  TooManyError: ["ERR max number of clients", "ERR too many logins"], InvalidError: ["ERR "],
  NoPacketError: [], ConnectionError: [], UnknownError: [], ShutdownError: [], // these are the client's own
};
const make = (name) => ({ [name]: class extends HoldfastError { static code = name.slice(0, -"Error".length).toUpperCase(); } });
const errors = Object.assign({ HoldfastError }, ...Object.keys(kinds).map(make));

/** check returns a value if it is good. */
function check(good, value, what, expected) {
  if (good) return value;
  throw new errors.InvalidError(`${what}: expected ${expected}, got ${inspect(value, { depth: 0 }).slice(0, 100)}`);
}

/** whole rounds up, so that no time becomes 0, which often means never. */
const whole = (value, what) => String(Math.ceil(check(Number.isFinite(value), value, what, "a number")));

/** describe says what was thrown, whatever that is. The server reads its class before the colon. */
function describe(thrown) {
  try {
    if (typeof thrown === "string") return thrown;
    if (typeof thrown?.message !== "string") return `${typeof thrown}: ${inspect(thrown)}`;
    return `${(thrown.name === "Error" ? thrown.constructor.name : thrown.name) || "Error"}: ${thrown.message}`;
  } catch { return "Error: what was thrown cannot be shown"; }
}

/** cut leaves out what the server would not take of a text: 4,096 bytes are enough. */
function cut(text, end = 4096) {
  const bytes = Buffer.from(text.slice(0, end));
  while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end--; // half a letter
  return bytes.subarray(0, end);
}

/** Verdict is what a handler throws to say what becomes of its packet. */
class Verdict extends Error {
  #reason; #words;
  get name() { return this.constructor.name; }
  constructor(why, ...words) {
    super(why === undefined ? "" : describe(why), { cause: why });
    this.#reason = this.message;
    this.#words = words;
  }

  /** of is the verdict of what was thrown, whatever that is. */
  static of(thrown) {
    try {
      if (#words in thrown) return thrown; // made by a constructor of these, which no Proxy is
      if (thrown instanceof Promise) thrown.catch(() => {}); // nobody else looks at how it ends
    } catch { } // it is a Proxy, or no object
    return new Verdict(thrown);
  }

  /** reason is the message, which may have been changed since, to something else than a text too. */
  get reason() {
    try {
      if (typeof this.message === "string") return this.message;
    } catch { }
    return this.#reason;
  }

  /** plain is the reason alone. */
  get plain() { return new Verdict(this.reason); }

  /** words are those of a QNACK that say why, and what then. */
  get words() { return [...(this.reason ? ["REASON", cut(this.reason)] : []), ...this.#words]; }
}
const time = (ms, least = 0, most = Infinity) => String(Math.min(Math.max(whole(ms, "milliseconds"), least), most));
class Dead extends Verdict { constructor(why) { super(why, "DEAD"); } }
class RetryIn extends Verdict { constructor(ms, why) { super(why, "DELAY", time(ms)); } }
class Uncounted extends Verdict { constructor(ms, why) { super(why, "UNCOUNTED", "DELAY", time(ms)); } }
class Snooze extends Uncounted { constructor(ms) { super(ms, `snoozed for ${time(ms)} ms`); } }
class Hold extends Verdict { constructor(ms, why) { super(why, "HOLD", time(ms, 1000, 86_400_000)); } }

module.exports = { errors: { ...errors, Verdict, Dead, RetryIn, Uncounted, Snooze, Hold }, check, whole, cut };
