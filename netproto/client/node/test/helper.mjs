// What the tests share. They need a server at HOLDFAST_URL, and run with RESP HOLDFAST_RESP.
import { createServer, connect as dial } from "node:net";
import { once } from "node:events";
import { Client } from "holdfast-queue";

export const url = process.env.HOLDFAST_URL;
const RESP = Number(process.env.HOLDFAST_RESP ?? 3);

/** client makes a client for a test, and a queue of its own. */
export function client(t, options) {
  const made = new Client({ url, RESP, log: () => {}, ...options });
  t.after(() => made.close());
  return made;
}

let queues = 0;
export const queue = () => `node-${process.pid}-${++queues}`;

/** rejected resolves with the error of a promise, which must have one. */
export const rejected = (promise) => promise.then((value) => { throw new Error(`it resolves with ${value}`); }, (error) => error);

/**
 * until calls a function until it gives something that is true. The test's own time limit ends it.
 */
export async function until(look) {
  for (;;) {
    const got = await look();
    if (got) return got;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** waits resolves when somebody waits for a packet of a queue. */
export const waits = (c, q) => until(async () => (await c.consumers(q).catch(() => []))[0]?.waiting?.length > 0);

/** network is a way to the server that can be cut, and whose answers can be kept back. */
export async function network(t) {
  const { hostname, port } = new URL(url);
  const open = new Set();
  const held = [];
  const net = { stalls: false, sees: () => {}, requests: "", dials: 0 };
  const server = createServer((inside) => {
    net.dials++;
    if (net.down) return inside.destroy();
    const outside = dial(Number(port), hostname);
    for (const socket of [inside, outside]) {
      open.add(socket.on("error", () => {}));
      socket.on("close", () => { inside.destroy(); outside.destroy(); open.delete(socket); });
    }
    inside.on("data", (data) => {
      net.requests += data.toString("latin1");
      net.sees(data.toString("latin1"));
      outside.write(data);
    });
    outside.on("data", (data) => (net.stalls ? held.push([inside, data]) : inside.write(data)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  net.cut = () => { for (const socket of open) socket.destroy(); };
  net.resume = () => {
    net.stalls = false;
    for (const [socket, data] of held.splice(0)) socket.write(data);
  };
  net.kept = () => held.reduce((sum, [, data]) => sum + data.length, 0);
  net.drip = async (size, pause) => {
    for (const [socket, data] of held.splice(0)) {
      for (let i = 0; i < data.length; i += size) {
        socket.write(data.subarray(i, i + size));
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  };
  net.url = `redis://127.0.0.1:${server.address().port}`;
  t.after(() => { net.cut(); server.close(); });
  return net;
}
