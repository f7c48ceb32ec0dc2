"use strict";
const { check, whole, errors: { InvalidError } } = require("./errors.js");

/** bytes is what node-redis sends of a payload or a word. */
function bytes(value, what) {
  if (typeof value === "string") return value;
  check(ArrayBuffer.isView(value), value, what, "a string, a Buffer or another Uint8Array");
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

/** moment is a Date in Unix milliseconds. */
const moment = (value, what) => whole(Math.max(0, check(value instanceof Date, value, what, "a Date")), what);

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const times = new Set(["lease", "backoff-min", "backoff-max", "retain", "retain-dead", "alert-age"]);

/** setting is the value of a setting. That of a time is a number of milliseconds, or such as 30s. */
function setting(name, value) {
  const [, n, unit] = (times.has(name) && /^([0-9.]+)(ms|s|m|h|d)$/.exec(value)) || [];
  return unit ? whole(Number((n * units[unit]).toFixed(3)), name) : String(value);
}

/** filter reads a filter such as class<=standard, or its three parts. */
function filter(given) {
  const [tag, op, value] = Array.isArray(given) ? given : (/^([^=!<>]+)(!=|<=|>=|=|<|>)(.*)$/s.exec(given) ?? []).slice(1);
  const word = { "=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge" }[op];
  check(word, given, "filters", "such as class<=standard, with one of = != < <= > >=");
  return ["FILTER", bytes(tag, "filters"), word, bytes(value, "filters")];
}

/** options are those of all calls: how each is written, and its words in COMMANDS.md. */
const options = {
  priority: [whole, "PRIO"], ttl: [whole, "TTL"], delay: [whole, "DELAY"], at: [moment, "AT"], lease: [whole, "LEASE"],
  key: [bytes, "KEY"], producer: [bytes, "PRODUCER"], meta: [bytes, "META"],
  unique: [bytes, "UNIQUE"], window: [whole, "WINDOW"], untilClaim: [, "UNTIL", "claim"], replace: [, "REPLACE"], tell: [, "TELL"],
  count: [whole, "COUNT"], fill: [whole, "FILL"], newest: [, "NEWEST"], group: [, "GROUP"], as: [bytes, "CONSUMER"],
  share: [bytes, "SHARE"], matchAny: [whole, "MATCH", "ANY"], state: [bytes, "STATE"], older: [whole, "OLDER"],
  to: [bytes, "TO"], dryRun: [, "DRYRUN"],
  pushes: [, "IN"], weight: [whole, "WEIGHT"], maxClaimed: [whole, "MAX-CLAIMED"], rate: [bytes, "RATE"], rest: [whole, "HOLD"],
};

/** words are those of the options that are given. OR stands behind the name of a queue. */
function words({ or = [], ...given } = {}) {
  return [...or.flatMap((queue) => ["OR", queue]), ...Object.entries(given).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (name === "tags") return Object.entries(value).flatMap(([tag, of]) => ["TAG", tag, bytes(of, `tags.${tag}`)]);
    if (name === "filters") return value.flatMap(filter);
    if (!Object.hasOwn(options, name)) throw new InvalidError(`this call has no option ${name}`);
    const [write, ...all] = options[name];
    return write ? [...all, write(value, name)] : value ? all : [];
  })];
}

const raw = (value) => value;
const text = (value) => (value === null ? undefined : String(value));
const plain = (value) => (typeof value === "number" ? value : text(value));
const texts = (all) => all.map(text);

/** entries are those of a map, an array of names and values. */
function entries(reply) {
  const all = [];
  for (let i = 0; i + 1 < reply.length; i += 2) all.push([String(reply[i]), reply[i + 1]]);
  return all;
}

/** pairs reads a map of texts. A name may be __proto__. */
const pairs = (reply, write = text) => Object.fromEntries(entries(reply).map(([name, value]) => [name, write(value, name)]));

/** fields says how what is neither text nor number is read, and what it is called if not so. */
const dates = [(ms) => new Date(Number(ms))];
const flags = [(n) => Number(n) !== 0];
const fields = {
  payload: [raw], key: [raw], meta: [raw], tags: [pairs], ids: [texts], pushed: [Number], // a text, of producers
  enqueued: dates, expires: dates, seen: dates, since: dates, until: dates,
  "not-before": dates, "lease-end": dates, "first-claim": dates, "last-claim": dates,
  "last-error-class": [plain, "errorClass"], progress: [plain, "percent"], "progress-text": [plain, "percentText"],
  "paused-in": flags, "paused-out": flags, full: flags, closed: flags, overdue: flags, held: flags, "at-limit": flags,
  priorities: [(all) => all.map((band) => read(band)), "bands"], waiting: [(all) => all.map((one) => pairs(one, texts))],
};

const ofPackets = { ...fields, died: dates, cancelled: flags }; // of a queue these are numbers

/** read reads a map into an object. */
function read(reply, into = {}, rows = fields) {
  for (const [name, value] of entries(reply)) {
    const [reader, property] = (rows[name] ??= [plain]);
    if (value !== null) into[property ?? name.replace(/-(.)/g, (_, letter) => letter.toUpperCase())] = reader(value);
  }
  return into;
}

module.exports = { bytes, moment, setting, words, text, texts, pairs, read, ofPackets };
