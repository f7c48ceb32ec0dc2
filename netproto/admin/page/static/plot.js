import { el } from "./dom.js";
import { now } from "./state.js";
import { brief, clock, short } from "./text.js";

// Plots of the last hour. Lines are [name, style variable of the colour, column of a sample]; steps
// are what may lie between two marks of the axis, which reaches to least at least.
const tens = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((n) => [1, 2, 5].map((d) => d * 10 ** n));
const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
const kinds = [
  { title: "Packets", least: 1, steps: tens, words: short,
    lines: [["ready", "--ready", 1], ["delayed", "--delayed", 2], ["claimed", "--claimed", 3], ["dead", "--dead", 4]] },
  { title: "Packets a second", least: 1, steps: [0.1, 0.2, 0.5, ...tens], words: short,
    lines: [["pushed", "--ready", 5], ["popped", "--delayed", 6], ["acked", "--claimed", 7]] },
  { title: "Age of the oldest", least: minute, words: brief, lines: [["ready", "--ready", 8]],
    steps: [second, 10 * second, minute, 5 * minute, 10 * minute, hour, 6 * hour, ...tens.map((n) => n * day)] },
];

// plots are those of a past.
export const plots = (past) => kinds.map((kind) => new Plot(kind, past));

const height = 180;
const color = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

// minutes is the span of a plot: a minute at least, also while there are no samples, or one.
function minutes(u) {
  const at = u.data[0];
  const last = at.at(-1) ?? now() / 1000;
  return [Math.min(at[0] ?? last, last - 60), last];
}

class Plot {
  constructor(kind, past) {
    this.kind = kind;
    this.past = past;
    const { title, lines } = kind;
    this.host = el("div", { class: "canvas", role: "img", "aria-label": title + " in the last hour" });
    this.element = el("figure", { class: "plot" },
      el("figcaption", {}, title, " ", lines.map(([name, variable]) => el("span", { class: "key " + variable.slice(2) }, name))), this.host);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.host);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.recolor = () => this.chart?.redraw());
  }

  resize() {
    const width = this.host.clientWidth;
    if (!width) return;
    if (this.chart) this.chart.setSize({ width, height });
    else this.draw(width);
  }

  draw(width) {
    const axis = { stroke: () => color("--muted"), font: "11px system-ui", grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
    this.chart = new uPlot({
      width, height,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 26, 0, 0],
      scales: {
        x: { range: minutes },
        y: { range: (u, min, max) => [0, Math.max(this.kind.least, max * 1.1)] },
      },
      axes: [
        { ...axis, space: 90, size: 26, values: (u, all) => all.map((s) => clock(s * 1000)) },
        { ...axis, size: 48, space: 36, incrs: this.kind.steps, values: (u, all) => all.map(this.kind.words) },
      ],
      series: [{}, ...this.kind.lines.map(([, variable]) => ({ stroke: () => color(variable), width: 1.5, points: { show: false } }))],
    }, this.data(), this.host);
  }

  data() {
    const past = this.past.samples;
    return [past.map((s) => s[0] / 1000), ...this.kind.lines.map(([, , column]) => past.map((s) => s[column]))];
  }

  update() {
    this.chart?.setData(this.data());
  }

  end() {
    this.watch.disconnect();
    this.scheme.removeEventListener("change", this.recolor);
    this.chart?.destroy();
  }
}
