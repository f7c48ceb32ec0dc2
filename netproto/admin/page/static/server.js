// The server, by HTTP: who is logged in, commands, and what it tells without being asked.

let token = "";

// A page of another site cannot send this header, nor read the token.
async function ask(path, body) {
  let answer;
  try {
    answer = await fetch("page/" + path, body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Holdfast-Token": token },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The server does not answer. Is it running, and is the network up?");
  }
  const data = (answer.headers.get("Content-Type") ?? "").includes("json") ? await answer.json() : { error: await answer.text() };
  if (answer.ok) return data;
  const [, code, words] = /^([A-Z]{3,}) (.+)$/s.exec(data.error) ?? [null, "", data.error || "The server answered with status " + answer.status + "."];
  const failure = Object.assign(new Error(words[0].toUpperCase() + words.slice(1)), { code }); // which is for programs
  if (answer.status === 401 && path !== "login") document.dispatchEvent(new Event("login"));
  throw failure;
}

export async function session() {
  const s = await ask("session");
  token = s.token ?? "";
  return s;
}

export const login = (user, password) => ask("login", { user, password });
export const logout = () => ask("logout", {});

// history is the last hour of a queue, or of all that the user may look at.
export const history = (place) => ask("history", place ? { database: place.database, queue: place.name } : {});

// command runs a command of the Redis door, and returns its reply.
export const command = (database, ...words) => commandCut(0, database, ...words);

// commandCut is command, with texts of more than so many bytes cut: {cut, bytes}.
export async function commandCut(cut, database, ...words) {
  const { reply } = await ask("command", { database, cut, command: words.map((w) => typeof w === "number" ? String(w) : w) });
  return reply;
}

export const settings = () => ask("settings").then((s) => s.settings);
export const cluster = () => ask("cluster");
export const audit = () => ask("audit").then(({ lines }) => lines);

// Live listens to the server's events, and listens anew after each failure. A page that nobody
// sees lets go after a while, since a browser opens only six connections to one server.
export class Live {
  constructor(handlers, lost) {
    this.handlers = handlers;
    this.lost = lost;
    this.open();
    addEventListener("pagehide", this.left = () => this.shut()); // a browser may keep the page, and its connection
    addEventListener("pageshow", this.back = () => { if (!this.source) this.open(); });
    document.addEventListener("visibilitychange", this.seen = () => {
      clearTimeout(this.hiding);
      if (document.hidden) this.hiding = setTimeout(() => this.shut(), 10_000);
      else if (!this.source) this.open();
    });
  }

  open() {
    this.shut();
    this.source = new EventSource("page/live");
    for (const [name, handle] of Object.entries(this.handlers)) {
      this.source.addEventListener(name, (e) => {
        this.hear();
        handle(JSON.parse(e.data), e.data);
      });
    }
    this.source.addEventListener("error", () => this.fail());
    this.hear();
  }

  // A connection can be dead without an error.
  hear() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.fail(), 10_000);
  }

  // A server that recovers or stops says so to commands.
  fail(why = "") {
    this.shut();
    this.lost(why);
    this.again = setTimeout(async () => {
      try {
        if ((await session()).login) return document.dispatchEvent(new Event("login"));
        await command(0, "TIME");
        this.open();
      } catch (e) {
        this.fail(e.message);
      }
    }, 2000);
  }

  shut() {
    clearTimeout(this.silence);
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  end() {
    this.shut();
    clearTimeout(this.hiding);
    removeEventListener("pagehide", this.left);
    removeEventListener("pageshow", this.back);
    document.removeEventListener("visibilitychange", this.seen);
  }
}
