import { el, problem, setText } from "./dom.js";

// A dialog that changes something: it first counts what would be changed, asks, and says what was
// done. An action is
//   title, explain   what it is, and what it means
//   fields           [{name, label, type, value, options, required}], as inputs
//   count(values)    promise of a number: a dry run; none if there is nothing to count
//   counted(n), done(reply)  sentences
//   button           the word on the button
//   confirm, risk    a text to type first, and why: for what cannot be undone
//   run(values)      promise of the reply
// It resolves to true if something was changed.
export function act(action) {
  const opener = document.activeElement;
  return new Promise((resolve) => {
    const d = new Dialog(action);
    document.body.append(d.element);
    d.element.addEventListener("close", () => {
      d.element.remove();
      if (opener?.isConnected && !opener.disabled) opener.focus();
      else document.querySelector("h1")?.focus();
      resolve(d.changed);
    });
    d.element.showModal();
    d.recount();
  });
}

class Dialog {
  constructor(action) {
    this.action = action;
    this.changed = false;
    this.round = 0;
    this.inputs = Object.fromEntries((action.fields ?? []).map((f) => [f.name, input(f)]));
    this.fields = (action.fields ?? []).map((f) => el("label", {}, f.label, this.inputs[f.name]));
    this.typed = action.confirm ? el("input", { type: "text", id: "typed", autocomplete: "off", spellcheck: "false", input: () => this.allow() }) : null;
    this.warning = this.typed ? el("label", {}, (action.risk ?? "This cannot be undone.") + " Type ", el("b", { class: "name" }, action.confirm), " to confirm", this.typed) : null;
    this.status = el("p", { class: "counted", role: "status" });
    this.go = el("button", { type: "submit", class: action.confirm ? "danger" : "primary", disabled: true }, action.button);
    this.cancel = el("button", { type: "button", click: () => this.element.close() }, "Cancel");
    this.element = el("dialog", { "aria-labelledby": "dialog-title" },
      el("form", { submit: (e) => { e.preventDefault(); this.run(); }, input: (e) => { if (e.target !== this.typed) this.later(); } },
        el("h2", { id: "dialog-title" }, action.title),
        action.explain ? el("p", {}, action.explain) : null,
        this.fields,
        this.status,
        this.warning,
        el("div", { class: "buttons" }, this.cancel, this.go)));
  }

  values() {
    return Object.fromEntries(Object.entries(this.inputs).map(([name, i]) => [name, i.value]));
  }

  later() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.recount(), 250);
    this.round++; // a count that is under way is of other values
    this.counted = false;
    this.allow();
  }

  async recount() {
    const round = ++this.round;
    this.counted = false;
    const missing = (this.action.fields ?? []).find((f) => f.required && !this.inputs[f.name].value);
    if (missing) {
      this.status.replaceChildren(missing.required);
    } else if (this.action.count) {
      this.status.replaceChildren("Counting…");
      try {
        const n = await this.action.count(this.values());
        if (round !== this.round) return;
        this.status.replaceChildren(this.action.counted(n));
        this.counted = n > 0;
      } catch (e) {
        if (round === this.round) this.status.replaceChildren(problem(e.message));
      }
    } else {
      this.status.replaceChildren();
      this.counted = true;
    }
    this.allow();
  }

  allow() {
    this.go.disabled = this.busy || !this.counted || (this.typed !== null && this.typed.value !== this.action.confirm);
  }

  async run() {
    if (this.go.disabled) return;
    this.busy = true;
    this.allow();
    setText(this.status, "Under way…");
    try {
      const said = this.action.done(await this.action.run(this.values()));
      this.changed = true;
      this.status.replaceChildren(el("strong", {}, said));
      this.go.remove();
      setText(this.cancel, "Close");
      this.cancel.focus();
      for (const asked of [...this.fields, this.warning]) asked?.remove();
    } catch (e) {
      this.changed = true; // it may have done a part
      this.status.replaceChildren(problem(e.message));
    }
    this.busy = false;
    this.allow();
  }
}

function input(f) {
  if (f.options) return el("select", { name: f.name }, f.options.map(([value, words]) => el("option", { value, selected: value === f.value }, words)));
  return el("input", { type: f.type ?? "text", name: f.name, value: f.value ?? "", min: f.min, max: f.max, placeholder: f.placeholder, autocomplete: "off", spellcheck: "false" });
}
