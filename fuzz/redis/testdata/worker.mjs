// A worker: node worker.mjs. It works on packets until SIGTERM, then ends what it has begun.
import { Client } from "holdfast-queue";

const client = new Client(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");

async function handle({ payload }) {
  console.log(payload.toString()); // the work
}

await client.work("jobs", handle, { concurrency: 1, lease: 30_000 });
client.close();
