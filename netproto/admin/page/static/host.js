import { to } from "./address.js";
import { el, figures, problem, setTimed, timed } from "./dom.js";
import { audit, cluster, command, settings } from "./server.js";
import { now, state } from "./state.js";
import { count, label, size, span, stamp } from "./text.js";

// The server itself, for those who operate it: the process, who is connected, and what was
// managed. What it asks for is not audited itself.

const mostConnections = 200;

// Facts are [title, text of the lines of INFO and of the figures that the server tells].
const facts = [
  ["Name", () => state.session.host],
  ["Version", (i) => i.holdfast_version],
  ["Up since", (i) => stamp(now() - i.uptime_in_seconds * 1000) + ", " + span(i.uptime_in_seconds * 1000)],
  ["Process", (i) => i.process_id],
  ["Processor time", (i) => span((Number(i.used_cpu_user) + Number(i.used_cpu_sys)) * 1000)],
  ["Memory", (i, s) => size(s.memory.rss || s.memory.heap)],
  ["Disk", (i, s) => size(s.disk.free) + " free of " + size(s.disk.total)],
  ["Data", (i, s) => size(s.journal.bytes) + " in the journal, " + size(s.tables) + " in tables"],
  ["Syncs of the disk", (i, s) => count(s.journal.syncs) + (s.journal.syncs ? ", " + milliseconds(s.journal.sync_us / s.journal.syncs) + " each" : "")],
  ["Background work that failed", (i) => count(i.storage_failures)],
  ["Commands of Redis clients", (i) => count(i.total_commands_processed)],
];

// Columns of connections are [title, class, text of the fields of CLIENT LIST].
const columns = [
  ["Address", "", (c) => c.addr],
  ["Name", "middle", (c) => c.name || "–"],
  ["User", "", (c) => c.user],
  ["Library", "wide", (c) => [c["lib-name"], c["lib-ver"]].filter(Boolean).join(" ") || "–"],
  ["Connected since", "narrow", (c) => stamp(now() - c.age * 1000)],
  ["Idle", "narrow", (c) => Number(c.idle) ? span(c.idle * 1000) : "now"],
  ["Database", "wide", (c) => c.db],
  ["Last command", "", (c) => c.cmd.replace("|", " ")],
];

// Columns of the audit are [title, class, text of a line].
const actions = [
  ["At", "", (l) => stamp(l.at)],
  ["User", "", (l) => l.user],
  ["From", "wide", (l) => l.remote],
  ["Command", "", (l) => l.command.replace("|", " ") + (l.times > 1 ? ", " + count(l.times) + " times" : "")],
  ["Queue", "", (l) => l.queue === "" ? "–" : el("a", { href: to("queue", l.database, l.queue) }, label(l.queue, 60))],
  ["Packets", "middle", (l) => l.packets || "–"],
  ["Set", "middle", (l) => l.set || "–"],
  ["Changed", "narrow", (l) => l.count < 0 ? "–" : count(l.count)],
];

// Columns of nodes are [title, class, text of one].
const nodes = [
  ["Node", "", (n) => n.node || "–"],
  ["Role", "", (n) => n.heard ? n.role : "silent"],
  ["Votes", "narrow", (n) => n.voter ? "yes" : "no"],
  ["Behind", "", (n) => n.heard ? count(n.lag) + (n.lag ? ", " + span(n.lag_ms) : "") : "–"],
  ["Disk free", "middle", (n) => n.heard ? size(n.disk_free) : "–"],
  ["Version", "wide", (n) => n.version || "–"],
  ["Address", "middle", (n) => n.address],
];

// clocks says which clocks are more than a second off that of the node that answers.
const clocks = (c) => [["the cell", c.clock_ms], ...c.nodes.map((n) => ["node " + label(n.node, 60), n.clock_ms])].filter(([, ms]) => Math.abs(ms) > 1000)
  .map(([whose, ms]) => el("p", {}, "The clock of " + whose + " is " + span(Math.abs(ms)) + (ms < 0 ? " behind" : " ahead of") + " that of node " + label(c.by, 60) + "."));

// Columns of settings are [title, class, text of one].
const inForce = [["Setting", "", (s) => s.name], ["Value", "", (s) => s.value || "–"], ["From", "", (s) => s.from]];

const milliseconds = (us) => (us / 1000).toFixed(1) + " ms";

export class Host {
  constructor() {
    this.title = "Server";
    this.content = el("div", {}, el("p", { class: "muted" }, "Loading…"));
    this.note = el("p", { class: "muted", role: "status" });
    this.element = el("section", {}, el("h1", { tabindex: "-1" }, "Server"), this.content,
      this.note, el("button", { type: "button", click: () => this.load() }, "Refresh"));
  }

  shown() {
    this.load();
  }

  async load() {
    try {
      const [info, connections, done, set, cell] = await Promise.all([command(0, "INFO"), command(0, "CLIENT", "LIST"), audit(), settings(), cluster().catch((e) => ({ nodes: [], wrong: e.message }))]);
      this.info = pairs(info, "\r\n", ":");
      this.content.replaceChildren(this.figures = this.facts(),
        ...(cell.wrong ? [problem(cell.wrong)] : []),
        ...(cell.nodes.length ? [el("h2", {}, "Nodes: " + (cell.majority ? count(cell.spare) + " may be lost now" : "no majority answers")), table(nodes, cell.nodes, 0), clocks(cell)].flat() : []), el("h2", {}, "Connections of Redis clients"), this.connections(connections),
        el("h2", {}, "Audit"), done.length ? table(actions, done, 0) : el("p", { class: "muted" }, "Nobody has managed anything since the start."),
        ...(set.length ? [el("h2", {}, "Settings in force"), table(inForce, set, 0)] : []));
      setTimed(this.note, "As of " + stamp(now()) + ".");
    } catch (e) {
      this.content.replaceChildren(problem(e.message));
    }
  }

  // facts has what is known: the server may not have told its figures yet.
  facts() {
    this.lacks = !state.server;
    return figures(facts.map(([title, words]) => [title, timed(label(this.lacks && words.length > 1 ? "–" : words(this.info, state.server), 300))]));
  }

  connections(lines) {
    const all = lines.split("\n").filter(Boolean).map((line) => pairs(line, " ", "="));
    if (!all.length) return el("p", { class: "muted" }, "No Redis client is connected.");
    return table(columns, all.slice(0, mostConnections), all.length - mostConnections);
  }

  update() {
    if (!this.lacks || !state.server) return;
    const all = this.facts();
    this.figures.replaceWith(all);
    this.figures = all;
  }

  end() {}
}

function table(columns, all, more) {
  return el("div", {}, el("table", {}, el("thead", {}, el("tr", {}, columns.map(([title, className]) => el("th", { scope: "col", class: className }, title)))),
    el("tbody", {}, all.map((one) => el("tr", {}, columns.map(([, className, words]) => el("td", { class: className }, el("bdi", { class: "name" }, cell(words(one))))))))),
  more > 0 ? el("p", { class: "muted" }, count(more) + " more.") : null);
}

const cell = (words) => words instanceof Element ? words : timed(label(words, 120));

// pairs reads lines of a name and a value.
function pairs(text, between, is) {
  return Object.fromEntries(text.split(between).filter((line) => line.includes(is)).map((line) => [line.slice(0, line.indexOf(is)), line.slice(line.indexOf(is) + 1)]));
}
