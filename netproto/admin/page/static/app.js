import { parse } from "./address.js";
import { el, setText } from "./dom.js";
import { Host } from "./host.js";
import { Live, logout, session } from "./server.js";
import { Log } from "./log.js";
import { Login } from "./login.js";
import { Overview } from "./overview.js";
import { Packet } from "./packet.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { forget, hearQueues, hearServer, hearTold, state } from "./state.js";
import { clock, zone } from "./text.js";

// The page: which view is shown, who is logged in, and whether the server is heard.

const views = { "": Overview, queues: Queues, queue: Queue, packet: Packet, log: Log, server: Host };
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const who = document.querySelector(".who");

let view = null;
let live = null;

function show(next, focus) {
  view?.end();
  view = next;
  main.replaceChildren(view.element);
  document.title = [view.title, state.session.host, "Holdfast"].filter(Boolean).join(" · ");
  scrollTo(0, 0);
  if (focus) main.querySelector("h1").focus();
  view.shown();
}

function route(focus) {
  if (!live) return;
  const place = parse(location.hash);
  if (place.view === "queue" && view instanceof Queue && view.goes(place)) return;
  const View = place.view === "server" && !state.session.operate ? Overview : views[place.view] ?? Overview;
  for (const a of document.querySelectorAll("header nav a")) {
    const here = parse(a.hash).view === { queue: "queues", packet: "queues" }[place.view] || parse(a.hash).view === place.view;
    if (here) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  show(new View(place), focus);
}

function say(words) {
  banner.hidden = !words;
  setText(banner, words);
  document.body.classList.toggle("stale", Boolean(words));
}

// The server may say many things at once, and a few pictures of them a second are enough.
let drawn = 0;
let drawing = 0;
function draw() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    drawn = performance.now();
    view?.update();
  }, Math.max(0, drawn + 300 - performance.now()));
}

function listen() {
  live = new Live({
    server: (m) => { say(""); hearServer(m); draw(); },
    queues: (m) => { hearQueues(m); draw(); },
    told: (m, raw) => { hearTold(m, raw); draw(); },
  }, (why) => say("Connection lost" + (state.server ? "; what you see is of " + clock(state.server.at) : "") + ". Trying again… " + why));
}

async function start() {
  live?.end();
  live = null;
  let s;
  try {
    s = await session();
  } catch (e) {
    say(e.message);
    setTimeout(start, 2000);
    return;
  }
  say("");
  state.session = s;
  setText(document.querySelector("footer"), "Holdfast " + (s.version ?? "") + " · Times are in " + zone());
  setText(document.querySelector(".host"), s.host ?? "");
  document.querySelector('nav [href="#/server"]').hidden = !s.operate;
  who.replaceChildren();
  document.body.classList.toggle("outside", s.login);
  if (s.login) {
    forget();
    show(new Login(start));
    return;
  }
  if (s.user) {
    who.append(el("bdi", { class: "name" }, s.user), " ", el("button", { type: "button", click: async () => {
      await logout().catch(() => {});
      start();
    } }, "Log out"));
  }
  listen();
  route(false);
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") main.focus();
  else route(true);
});
document.addEventListener("login", () => { if (!(view instanceof Login)) start(); });
start();
