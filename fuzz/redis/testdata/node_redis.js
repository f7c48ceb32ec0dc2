// What node-redis does with lists, hashes, transactions and subscriptions: node node_redis.js MODULE PROTOCOL PORT
const assert = require("assert");
const { createClient } = require(process.argv[2]);

async function main() {
  const url = `redis://127.0.0.1:${process.argv[4]}`;
  const client = createClient({ url, name: "outside", RESP: Number(process.argv[3]) });
  client.on("error", (err) => { throw err; });
  await client.connect();
  const waiter = client.duplicate();
  await waiter.connect();

  const done = await client.multi().hSet("msg:1", { v: "1", op: "tile" }).lPush("backlog", "1").exec();
  assert.deepStrictEqual(done, [2, 1]);
  assert.strictEqual(await client.rPopLPush("backlog", "nextlog"), "1");
  assert.deepStrictEqual({ ...(await client.hGetAll("msg:1")) }, { v: "1", op: "tile" });
  assert.strictEqual(await client.lRem("nextlog", 0, "1"), 1);
  assert.strictEqual(await client.del("msg:1"), 1);

  const popped = waiter.brPop(["q", "other"], 0);
  await client.lPush("q", ["a", "b"]);
  assert.deepStrictEqual({ ...(await popped) }, { key: "q", element: "a" });
  assert.deepStrictEqual(await client.lRange("q", 0, -1), ["b"]);

  await client.set("n", "1", { NX: true });
  assert.strictEqual(await client.set("n", "2", { NX: true }), null);
  assert.strictEqual(await client.incrBy("n", 41), 42);

  await waiter.watch("n");
  await client.incr("n");
  await assert.rejects(waiter.multi().get("n").exec(), /watch/i);

  const subscriber = client.duplicate();
  await subscriber.connect();
  const heard = new Promise((resolve) => subscriber.subscribe("news", resolve));
  while ((await client.publish("news", "hello")) === 0);
  assert.strictEqual(await heard, "hello");

  await Promise.all([client, waiter, subscriber].map((c) => c.quit()));
}

main();
