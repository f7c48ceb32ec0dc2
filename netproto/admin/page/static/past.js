import { history } from "./server.js";

// What plots show: the last hour of a queue, or of the whole server.

const span = 3_600_000; // milliseconds
const grain = 10_000; // between two samples, as the server has them

export class Past {
  // Samples are [at, ready, delayed, claimed, dead, pushed, popped and acknowledged a second,
  // milliseconds since the oldest ready packet was pushed]. They begin with what the server
  // remembers; changed is called once that is here.
  constructor(changed, place) {
    this.samples = [];
    history(place).then(({ samples }) => {
      const first = this.samples[0]?.[0] ?? Infinity;
      this.samples.unshift(...samples.filter((s) => s[0] < first));
      changed();
    }, () => {}); // the plots begin now
  }

  // add adds figures of a moment. The last sample moves with them until it stays.
  add(at, q, totals, since) {
    const base = this.base;
    if (at <= base?.at) return;
    if (this.moves) this.samples.pop();
    const rate = (name) => base?.totals && totals ? Math.max(0, totals[name] - base.totals[name]) * 1000 / (at - base.at) : null;
    this.samples.push([at, q.ready, q.delayed, q.claimed, q.dead, rate("pushed"), rate("popped"), rate("acked"), since ? Math.max(0, at - since) : 0]);
    this.moves = base && at - base.at < grain;
    if (!this.moves) this.base = { at, totals: totals && { ...totals } };
    while (this.samples[0][0] < at - span) this.samples.shift();
  }
}
