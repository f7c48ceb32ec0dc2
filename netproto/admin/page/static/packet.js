import * as actions from "./actions.js";
import { to } from "./address.js";
import { copier, el, figures, problem, shown, timed } from "./dom.js";
import { command, commandCut } from "./server.js";
import { keyOf, mayManage, now } from "./state.js";
import { ahead, bytesOf, count, label, line, size, span, stamp, text } from "./text.js";

// One packet: what it holds, what became of it, and why it is not delivered.

const most = 65_536; // bytes of a payload that are shown
const moments = ["enqueued", "expires", "not-before", "lease-end", "died", "first-claim", "last-claim"];
const shownElsewhere = ["id", "queue", "payload", "why", "tags"];
const names = { attempt: "attempts", enqueued: "pushed at", "not-before": "ready at", "lease-end": "lease ends", "first-claim": "first claimed", "last-claim": "last claimed", died: "died at", expires: "expires at", "last-error-class": "kind of error" };

export class Packet {
  constructor(place) {
    this.place = place;
    this.q = { database: place.database, name: place.name };
    this.key = keyOf(place.database, place.name);
    this.title = "Packet " + place.id;
    this.content = el("div", {}, el("p", { class: "muted" }, "Loading…"));
    this.element = el("section", {},
      el("p", { class: "path" }, el("a", { href: "#/queues" }, "Queues"), " › ", el("a", { href: to("queue", place.database, place.name) }, el("bdi", { class: "name" }, label(place.name, 80) || "(empty name)"))),
      el("div", { class: "head" }, el("h1", { tabindex: "-1" }, "Packet ", place.id), copier("Copy id", async () => place.id), el("button", { type: "button", click: () => this.load() }, "Refresh")), this.content);
  }

  shown() {
    this.load();
  }

  update() {
    if (this.actions) this.actions.hidden = !mayManage(this.key);
  }

  async load() {
    try {
      const p = await commandCut(most, this.q.database, "QSHOW", this.q.name, this.place.id);
      if (p === null) this.content.replaceChildren(el("p", {}, "The queue has no packet of this id any more: it was taken, acknowledged, deleted or moved, or it expired."));
      else this.content.replaceChildren(...this.show(p));
    } catch (e) {
      this.content.replaceChildren(problem(e.message));
    }
  }

  show(p) {
    const tags = Array.isArray(p.tags) ? p.tags : Object.entries(p.tags ?? {});
    this.actions = this.buttons(p);
    this.update();
    const items = Object.entries(p).filter(([name]) => !shownElsewhere.includes(name)).map(([name, v]) => [names[name] ?? name, value(name, v)]);
    return [
      el("p", { class: "why" }, timed(sentence(p.why))),
      this.actions,
      figures([...items, ...tags.map(([k, v]) => ["tag " + label(k, 60), el("bdi", {}, label(v, 300))])]),
      p.payload === undefined ? problem("The payload cannot be read from the disk.") : this.payload(p.payload),
    ];
  }

  buttons(p) {
    const button = (words, action, className) => el("button", { type: "button", class: className, click: async () => { if (await action()) this.load(); } }, words);
    return el("div", { class: "actions", role: "group", "aria-label": "Actions on this packet" },
      p.state === "dead" || p.origin !== undefined ? button("Retry…", () => actions.redrivePackets(this.q, [p.id]), "primary") : null,
      p.state === "delayed" ? button("Run now…", () => actions.run(this.q, p.id)) : null,
      ["ready", "delayed", "claimed"].includes(p.state) && !p.cancelled ? button("Cancel packet…", () => actions.cancelPackets(this.q, [p.id]), "danger") : null,
      button("Change priority…", () => actions.prioritize(this.q, p.id, p.priority)),
      button("Move…", () => actions.movePackets(this.q, [p.id])),
      button("Delete…", () => actions.deletePackets(this.q, [p.id]), "danger"));
  }

  // payload shows bytes as text, JSON or hex.
  payload(v) {
    const bytes = bytesOf(v);
    const all = v.bytes ?? bytes.length;
    const forms = { text: () => text(v, most), hex: () => hex(bytes.subarray(0, most / 8)) };
    const json = pretty(v);
    if (json !== null) forms.JSON = () => json;
    const pre = el("pre", { tabindex: "0", "aria-label": "Payload" });
    const note = el("p", { class: "muted", role: "status" });
    const choose = (form) => {
      pre.replaceChildren(...shown(forms[form]()));
      const part = form === "hex" ? most / 8 : most;
      note.textContent = size(all) + (all > part ? "; the first " + size(part) + " are shown" : "");
    };
    const first = json !== null ? "JSON" : typeof (v.cut ?? v) === "string" ? "text" : "hex";
    const radios = ["text", "JSON", "hex"].map((form) => el("label", { class: "choice" },
      el("input", { type: "radio", name: "form", value: form, checked: form === first, disabled: !forms[form], change: () => choose(form) }), form));
    choose(first);
    const save = el("button", { type: "button", click: () => this.save().catch((e) => note.replaceChildren(problem(e.message))) }, "Save");
    return el("section", {}, el("h2", {}, "Payload"), el("div", { class: "bar", role: "radiogroup", "aria-label": "Show the payload as" }, radios, copier("Copy payload", async () => plain((await this.whole()).payload)), save), pre, note);
  }

  async whole() {
    const p = await command(this.q.database, "QSHOW", this.q.name, this.place.id);
    if (p === null) throw new Error("The packet is gone.");
    return p;
  }

  // save asks for the whole payload, and gives it to the browser as a file.
  async save() {
    const p = await this.whole();
    const url = URL.createObjectURL(new Blob([bytesOf(p.payload)], { type: "application/octet-stream" }));
    el("a", { href: url, download: "packet-" + this.place.id }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  end() {}
}

function value(name, v) {
  if (moments.includes(name)) return timed(stamp(v) + (v > now() ? ", " + ahead(v - now()) : ", " + span(now() - v) + " ago"));
  if (name === "lease") return span(v);
  if (name === "progress") return v + " %";
  if (name === "cancelled") return "yes";
  if (name === "state") return el("span", { class: "state " + v }, v);
  return el("bdi", { class: "lines" }, typeof v === "number" ? count(v) : text(v, 5000));
}

// plain is a payload as a text: that of other bytes is their base64.
const plain = (payload) => typeof payload === "string" ? payload : payload.base64;

// sentence begins what the server says in capitals, as other sentences do.
function sentence(why) {
  const said = line(why, 5000);
  return said.slice(0, 1).toUpperCase() + said.slice(1);
}

// Only objects and arrays that are shown whole count as JSON.
function pretty(v) {
  if (typeof v !== "string" || v.length > most || !/^\s*[[{]/.test(v)) return null;
  try {
    JSON.parse(v);
  } catch {
    return null;
  }
  return text(indented(v), 4 * most);
}

// unescaped is a string of JSON with its letters as they are: \u00e4 is ä. What is not seen is escaped again.
function unescaped(string) {
  return string.replace(/\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)/gi, (all, high, low, one) => {
    if (high) return String.fromCharCode(parseInt(high, 16), parseInt(low, 16));
    const code = parseInt(one, 16);
    return code > 0xa0 && (code < 0xd800 || code > 0xdfff) ? String.fromCharCode(code) : all;
  });
}

// indented changes nothing but white space and escapes of letters: numbers too long for a browser, names that come twice
// and the order are as they were pushed.
function indented(json) {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/g);
  let depth = 0;
  const line = () => "\n" + "  ".repeat(Math.min(depth, 40));
  return tokens.map((t, at) => {
    switch (t) {
      case "{": case "[":
        depth++;
        return /[\]}]/.test(tokens[at + 1][0]) ? t : t + line();
      case "}": case "]":
        depth--;
        return /[[{]/.test(tokens[at - 1][0]) ? t : line() + t;
      case ",": return t + line();
      case ":": return ": ";
    }
    return unescaped(t);
  }).join("");
}

function hex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    lines.push(at.toString(16).padStart(6, "0") + "  " + row.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47) + "  " + row.map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : ".").join(""));
  }
  return lines.join("\n");
}
