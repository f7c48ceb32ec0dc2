// What ioredis does with lists, hashes, transactions and subscriptions: node ioredis.js MODULE PROTOCOL PORT
const assert = require("assert");
const Redis = require(process.argv[2]);

async function main() {
  const [protocol, port] = process.argv.slice(3).map(Number);
  const options = { host: "127.0.0.1", port, protocol, connectionName: "outside", retryStrategy: null };
  const client = new Redis(options);
  const waiter = new Redis(options);

  const done = await client.multi().hset("msg:1", { v: "1", op: "tile" }).lpush("backlog", "1").exec();
  assert.deepStrictEqual(done, [[null, 2], [null, 1]]);
  assert.strictEqual(await client.brpoplpush("backlog", "nextlog", 0), "1");
  assert.deepStrictEqual(await client.hgetall("msg:1"), { v: "1", op: "tile" });
  assert.strictEqual(await client.lrem("nextlog", 0, "1"), 1);
  assert.strictEqual(await client.del("msg:1"), 1);

  const popped = waiter.brpop("q", "other", 0);
  const later = waiter.llen("q"); // behind the pop on the same connection
  await client.lpush("q", "a", "b");
  assert.deepStrictEqual(await popped, ["q", "a"]);
  assert.strictEqual(await later, 1);

  assert.strictEqual(await client.set("n", "1", "NX"), "OK");
  assert.strictEqual(await client.set("n", "2", "EX", 100, "NX"), null);
  assert.strictEqual(await client.incrby("n", 41), 42);
  await assert.rejects(client.lpush("n", "x"), /WRONGTYPE/);
  const replies = await client.pipeline().get("n").lrange("q", 0, -1).exists("n", "q", "none").exec();
  assert.deepStrictEqual(replies, [[null, "42"], [null, ["b"]], [null, 2]]);

  const names = [];
  for await (const page of client.scanStream({ match: "*", count: 10 })) names.push(...page);
  assert.deepStrictEqual(names.sort(), ["n", "q"]);

  const subscriber = new Redis(options);
  await subscriber.subscribe("news");
  const heard = new Promise((resolve) => subscriber.on("message", (channel, text) => resolve(text)));
  assert.strictEqual(await client.publish("news", "hello"), 1);
  assert.strictEqual(await heard, "hello");

  await Promise.all([client, waiter, subscriber].map((c) => c.quit()));
}

main();
