import { clock, exact } from "./text.js";

// el makes an element. Strings among its children become text, so nothing that the server sends
// can be markup. A function as a property listens to that event; null and false leave it out.
export function el(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// setText changes a text only if it differs, so that selections and screen readers stay undisturbed.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// timed is a text with its moments as elements: in the reader's zone, and exact when pointed at.
export function timed(text) {
  return text.split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/).map((part, i) => {
    const at = i % 2 ? Date.parse(part) : NaN;
    return Number.isNaN(at) ? part : el("time", { datetime: part, title: exact(at) }, clock(at));
  });
}

// shown is a text whose escapes stay in one piece, where other letters run from right to left.
export function shown(text) {
  if (!/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text)) return [text];
  return text.split(/(\\x[0-9a-f]{2}|\\u\{[0-9a-f]+\})/).map((part, i) => i % 2 ? el("bdi", { dir: "ltr" }, part) : part);
}

// setTimed is setText of a text with moments.
export function setTimed(e, text) {
  if (e.said !== text) e.replaceChildren(...timed(text));
  e.said = text;
}

// copier is a button that copies what a promise gives, and says so for a moment. Where a browser has no
// clipboard for pages, as without TLS, it copies a selection.
export function copier(words, what) {
  const button = el("button", { type: "button", class: "copy", click: async () => {
    const copied = await what().then(copy).catch((e) => e.message);
    setText(button, copied === true ? "Copied" : "Not copied");
    button.title = copied === true ? "" : copied || "The browser refused.";
    setTimeout(() => setText(button, words), 1500);
  } }, words);
  return button;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true);
  const area = el("textarea", {}, text);
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

// badges shows the states of a queue that apply; states are [name, what it means].
export function badges(e, states) {
  const said = states.map(([name]) => name).join();
  if (e.said !== said) e.replaceChildren(...states.map(([name, meaning]) => el("span", { class: "badge " + name, title: meaning }, name)));
  e.said = said;
}

// figures makes a list of named numbers; items are [name, value or element].
export function figures(items, className = "figures") {
  return el("dl", { class: className }, items.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// problem makes a sentence that says what went wrong.
export function problem(text) {
  return el("p", { class: "problem", role: "alert" }, text);
}
