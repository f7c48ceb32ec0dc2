// A worker of the tests. It says what it begins with; a packet called hang never ends.
import { Client } from "holdfast-queue";

const client = new Client({ url: process.env.HOLDFAST_URL, RESP: Number(process.env.HOLDFAST_RESP) });
await client.work("jobs", async ({ payload, attempt }) => {
  console.log(`${payload} ${attempt}`);
  await new Promise((resolve) => { if (String(payload) !== "hang") setTimeout(resolve, 5); });
}, { concurrency: 4, drain: 100 });
client.close();
