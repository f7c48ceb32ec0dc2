// What a fresh project does with the package.
import { createRequire } from "node:module";
import * as imported from "holdfast-queue";

const required = createRequire(import.meta.url)("holdfast-queue");
const whole = ["default", "module.exports"]; // which node adds to what is imported
for (const name of new Set([...Object.keys(required), ...Object.keys(imported)])) {
  if (whole.includes(name)) continue;
  if (required[name] !== imported[name]) throw new Error(`${name} is ${required[name]} and ${imported[name]}`);
}
const client = new imported.Client(process.env.HOLDFAST_URL);
await client.push("fresh", "a packet");
const [packet] = await client.claim("fresh");
console.log(String(packet.payload));
await packet.ack();
client.close();
