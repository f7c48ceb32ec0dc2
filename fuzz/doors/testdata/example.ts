// What the types of the package must take, and what they must refuse.
import { Client, Dead, FullError, Snooze, StaleError, type Packet } from "holdfast-queue";

const client = new Client({ url: "redis://127.0.0.1:6379", RESP: 3, socket: { connectTimeout: 1000 }, log: () => {} });

export async function main(signal: AbortSignal): Promise<void> {
  const id: string = await client.push("mails", "to ann", { priority: 10, tags: { class: "low" }, unique: "w-17", at: new Date() });
  const { told } = await client.pushTold("mails", Buffer.from("x"), { unique: "w-17", replace: true });
  if (told === "new") await client.cancel("mails", id);
  await client.consume("mails", async ({ payload, tags, leaseEnd }, { signal }) => {
    const bytes: Buffer = payload;
    if (tags?.class === "low" && leaseEnd && leaseEnd < new Date()) throw new Snooze(1000);
    if (bytes.length === 0) throw new Dead(new TypeError("empty"));
    await fetch("http://127.0.0.1/", { signal });
  }, { concurrency: 8, lease: 60_000, signal, filters: ["class<=low", ["size", ">", "5"]] });
  for await (const packet of client.claims("mails", { signal })) await settle(packet);
  await client.pause("mails", { until: new Date(), pushes: true });
  await client.resume("mails");
  await client.work("mails", () => {}, { burst: true, or: ["sms"] });
  const stats = await client.stats("mails");
  console.log(stats.ready + stats.bands.length, stats.pausedOut === true, (await client.shares("mails"))[0].until?.getTime());
  // @ts-expect-error: no call has this option
  await client.push("mails", "x", { dealy: 5 });
  // @ts-expect-error: an object is no payload
  await client.push("mails", { a: 1 });
  // @ts-expect-error: the size of a batch comes first
  await client.consumeBatch("mails", () => {});
}

async function settle(packet: Packet): Promise<string> {
  try {
    await packet.ack();
    return "done";
  } catch (error) {
    if (error instanceof StaleError) return error.code;
    if (error instanceof FullError) return error.code;
    throw error;
  }
}
