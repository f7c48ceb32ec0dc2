// A worker: node worker.mjs. It claims packets, does the work, and says how each one ended.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, RESP_TYPES } from "redis";

const queue = "jobs", lease = 30_000; // milliseconds
const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const say = (error) => console.error(error.message);
const connect = () => createClient({ url, disableOfflineQueue: true }).on("error", say).connect();
const server = await connect();
const claims = await connect(); // waits, so it has a connection of its own
const bytes = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };
let stopping = false;
process.on("SIGTERM", () => (stopping = true));

async function work(payload) {
  console.log(payload.toString()); // the work
}

function read(p) { // a map with RESP3, names and values in turn with RESP2
  const packet = p instanceof Map ? Object.fromEntries(p) : Array.isArray(p) ? {} : p;
  if (Array.isArray(p)) for (let i = 0; i < p.length; i += 2) packet[p[i]] = p[i + 1];
  if (packet.payload !== undefined) return packet;
  console.error("this is no packet that the worker can read:", p);
  process.exit(1); // each further claim would use up an attempt
}

while (!stopping) {
  try {
    const packets = await claims.sendCommand(["QCLAIM", queue, "LEASE", `${lease}`, "BLOCK", "2000"], bytes);
    for (const p of packets ?? []) {
      const packet = read(p);
      const claim = [queue, packet.id, `${packet.token}`];
      const extend = () => server.sendCommand(["QEXTEND", ...claim, `${lease}`]).catch(say);
      const timer = setInterval(extend, lease / 3);
      const answer = await work(packet.payload).then(
        () => ["QACK", ...claim],
        (error) => ["QNACK", ...claim, "REASON", String(error.message).slice(0, 1000)],
      );
      clearInterval(timer);
      await server.sendCommand(answer);
    }
  } catch (error) { // the server is away, or the lease was lost
    if (error.message.startsWith("CLOSED")) break;
    say(error);
    await sleep(1000);
  }
}
process.exit();
