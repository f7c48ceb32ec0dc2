import { el, problem } from "./dom.js";
import { login } from "./server.js";

// The form for a user and a password; then is called when they are right.
export class Login {
  constructor(then) {
    this.title = "Log in";
    this.user = el("input", { name: "user", autocomplete: "username", spellcheck: "false", autocapitalize: "none" });
    this.password = el("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
    this.go = el("button", { type: "submit", class: "primary" }, "Log in");
    this.status = el("div", {});
    this.element = el("section", { class: "login" }, el("h1", { tabindex: "-1" }, "Log in"),
      el("form", { submit: (e) => { e.preventDefault(); this.enter(then); } },
        el("label", {}, "User", this.user), el("label", {}, "Password", this.password), this.status, this.go));
  }

  shown() {
    this.user.focus();
  }

  async enter(then) {
    this.go.disabled = true;
    this.status.replaceChildren(el("p", { class: "muted" }, "One moment…"));
    try {
      await login(this.user.value || "default", this.password.value);
      await then();
    } catch (e) {
      this.status.replaceChildren(problem(e.message));
      this.password.value = "";
      this.password.focus();
    }
    this.go.disabled = false;
  }

  update() {}

  end() {}
}
