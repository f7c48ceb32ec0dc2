// Compares a worker of 64 at once with bare commands on 64 connections of node-redis:
// HOLDFAST_URL=redis://127.0.0.1:6379 NODE_PATH=… node bench.mjs [packets]
import { createRequire } from "node:module";
import { Client } from "holdfast-queue";

const { createClient } = createRequire(import.meta.url)("redis");
const url = process.env.HOLDFAST_URL, RESP = Number(process.env.HOLDFAST_RESP ?? 3);
const packets = Number(process.argv[2] ?? 20_000), workers = 64;
const client = new Client({ url, RESP });
const redis = await Promise.all(Array.from({ length: workers }, () => createClient({ url, RESP }).connect()));
const field = (packet, name) => (Array.isArray(packet) ? packet[packet.indexOf(name) + 1] : packet[name]);

async function bare(connection) {
  for (;;) {
    const [packet] = await connection.sendCommand(["QCLAIM", "bench", "BLOCK", "1000"]);
    await connection.sendCommand(["QACK", "bench", field(packet, "id"), String(field(packet, "token"))]);
  }
}

async function rate(run) {
  await client.command("DEL", "bench");
  for (let i = 0; i < packets; i += 1000) await client.pushBatch("bench", Array(1000).fill("x".repeat(100)));
  await client.closeQueue("bench");
  const begin = performance.now();
  await run();
  return Math.round((packets * 1000) / (performance.now() - begin));
}

for (let round = 1; round <= 5; round++) {
  const a = await rate(() => Promise.allSettled(redis.map(bare))); // each ends with CLOSED
  const b = await rate(() => client.consume("bench", async () => {}, { concurrency: workers }));
  console.log(`bare ${a}/s  package ${b}/s  ${(b / a).toFixed(2)}`);
}
process.exit();
