// Bytes that are UTF-8 come as a string, others as {base64}, and long ones may come as {cut, bytes}:
// their beginning and their number.

// Characters that are not seen, or that change the direction of others.
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufe00-\ufe0f\ufeff\u{e0000}-\u{e007f}]/gu;
const unseenInText = new RegExp(unseen.source.replace("\\u0000-\\u001f", "\\u0000-\\u0008\\u000b-\\u001f"), "gu");

function escaped(c) {
  const code = c.codePointAt(0);
  return code < 0x100 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u{" + code.toString(16) + "}";
}

export function bytesOf(value) {
  if (value.cut !== undefined) return bytesOf(value.cut);
  if (typeof value === "string") return new TextEncoder().encode(value);
  return Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0));
}

// text is a value as a reader sees it, at most so many characters of it; lines stay lines.
export function text(value, most) {
  if (value.cut !== undefined) return text(value.cut, most);
  if (typeof value === "string") return cut(value, most).replace(unseenInText, escaped);
  return cut(atob(value.base64.slice(0, Math.ceil(most / 3) * 4 + 4)), most).replace(/[^\x20-\x7e\n\t]/g, escaped);
}

// label is a value in one line.
export function label(value, most = 120) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return cut(value, most).replace(unseen, escaped);
  if (value.cut !== undefined) return label(value.cut, most).replace(/…?$/, "…");
  return text(value, most).replace(/[\n\t]/g, escaped);
}

// line is a text of several lines in one.
export const line = (value, most) => label(value, most).replace(/(\\x0d)?\\x0a/g, " ↵ ");

// yes reads a setting that is on or off.
export const yes = (v) => v === "yes" || v === true || v === 1 || v === "1";

// A surrogate is not left without its other half.
function cut(s, most) {
  if (s.length <= most) return s;
  return s.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…";
}

export function count(n) {
  return Number(n ?? 0).toLocaleString("en");
}

// short is a number that fits beside an axis or into a narrow column.
export function short(n) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(n) >= size) return trim(n / size) + " " + unit;
  }
  return trim(n);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  for (const [unit, n] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= n) return trim(bytes / n) + " " + unit;
  }
  return bytes + " B";
}

function trim(n) {
  return Math.abs(n) >= 100 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
}

// span is a time in milliseconds, in its two largest units.
// clockwards says how far an event tells that a clock was put, and where.
export const clockwards = (e) => (e.ahead_ms > 0 ? "forward by " : "back by ") + span(Math.abs(e.ahead_ms));

export function span(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

// ahead is how far ahead a moment is, in so many milliseconds.
export const ahead = (ms) => ms < 1000 ? "now" : "in " + span(ms);

// brief is a time in its largest unit, for narrow columns.
export function brief(ms) {
  return span(ms).split(" ").slice(0, 2).join(" ");
}

const two = (n) => String(n).padStart(2, "0");
const day = (d) => d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
const timeOf = (d) => two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());

// clock is a moment in Unix milliseconds in the reader's zone, with the day unless it is today.
export function clock(at) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return String(at);
  return (day(d) === day(new Date()) ? "" : day(d) + " ") + timeOf(d);
}

// offset is how far the reader's zone is from UTC at a moment.
function offset(at) {
  const minutes = -new Date(at).getTimezoneOffset();
  return "UTC" + (minutes < 0 ? "−" : "+") + two(Math.floor(Math.abs(minutes) / 60)) + ":" + two(Math.abs(minutes) % 60);
}

// zone is the reader's zone.
export function zone() {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === "UTC" ? name : name + ", " + offset(Date.now());
}

// exact is a moment with all that is known of it.
export function exact(at) {
  const d = new Date(at);
  return day(d) + " " + timeOf(d) + "." + String(d.getMilliseconds()).padStart(3, "0") + " " + offset(at);
}

// stamp is a moment as it stands in the server's sentences. What timed of dom.js shows is clock.
export function stamp(at) {
  const d = new Date(at);
  return Number.isNaN(d.getTime()) ? String(at) : d.toISOString();
}

export function packets(n) {
  return count(n) + (Number(n) === 1 ? " packet" : " packets");
}
