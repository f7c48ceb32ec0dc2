import { el } from "./dom.js";
import { now } from "./state.js";
import { clock, short } from "./text.js";

// A plot of the last hour. Its lines are [name, style variable of the colour, column of a sample].
export const depth = [["ready", "--ready", 1], ["delayed", "--delayed", 2], ["claimed", "--claimed", 3], ["dead", "--dead", 4]];
export const flow = [["pushed", "--ready", 5], ["popped", "--delayed", 6], ["acknowledged", "--claimed", 7]];
export const oldest = [["ready", "--ready", 8]];

const height = 180;
const color = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

// minutes is the span of a plot: a minute at least, also while there are no samples, or one.
function minutes(u) {
  const at = u.data[0];
  const last = at.at(-1) ?? now() / 1000;
  return [Math.min(at[0] ?? last, last - 60), last];
}

export class Plot {
  // The past is shown as numbers, or as words says them.
  constructor(title, lines, past, words = short) {
    this.lines = lines;
    this.past = past;
    this.words = words;
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
        y: { range: (u, min, max) => [0, Math.max(1, max * 1.1)] },
      },
      axes: [
        { ...axis, space: 90, size: 26, values: (u, all) => all.map((s) => clock(s * 1000)) },
        { ...axis, size: 48, space: 36, values: (u, all) => all.map(this.words) },
      ],
      series: [{}, ...this.lines.map(([, variable]) => ({ stroke: () => color(variable), width: 1.5, points: { show: false } }))],
    }, this.data(), this.host);
  }

  data() {
    const past = this.past.samples;
    return [past.map((s) => s[0] / 1000), ...this.lines.map(([, , column]) => past.map((s) => s[column]))];
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
