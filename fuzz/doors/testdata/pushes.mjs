// Pushes, or works on one packet, for the tests in which Python does the other part.
import { Client } from "holdfast-queue";

const client = new Client(process.env.HOLDFAST_URL);
if (process.argv[2] === "push") await client.push("jobs", Buffer.from([0, 255, 13, 10]), { tags: { from: "node" } });
else {
  const end = new AbortController();
  await client.consume("jobs", ({ payload, tags }) => {
    console.log(payload.toString("hex"), tags.from);
    end.abort();
  }, { signal: end.signal });
}
client.close();
