// Pushes and pops as a client of Sentinel, node-redis or ioredis, and says so before and behind.
// Nothing is sent twice by itself, so that each packet can be accounted for.
const { createSentinel, Redis } = require(process.env.MODULE);
const { SENTINEL, QUEUE, RESP, DETECTOR, ROUNDS } = process.env;
const say = (line) => process.stdout.write(line + "\n");
console.log = console.error; // of node-redis, too

async function connect() {
  const nodes = SENTINEL.split(",").map((node) => ({ host: node.split(":")[0], port: Number(node.split(":")[1]) }));
  const client = Redis ? new Redis({ name: "main", sentinels: nodes, failoverDetector: Boolean(DETECTOR), maxRetriesPerRequest: 0 })
    : createSentinel({ name: "main", RESP: Number(RESP), sentinelRootNodes: nodes, maxCommandRediscovers: 0,
      nodeClientOptions: { socket: { reconnectStrategy: false } } }); // 5 waits for ever for an owner that is gone
  client.on("error", (error) => console.error(error.message));
  if (!Redis) await client.connect();
  return client;
}

async function main() {
  const client = await connect();
  for (let n = 0; n < Number(ROUNDS); n++) {
    try {
      say("push 0-" + n);
      await (client.lPush ?? client.lpush).call(client, QUEUE, "0-" + n);
      say("pushed 0-" + n + "\npop");
      say("popped " + await (client.rPop ?? client.rpop).call(client, QUEUE));
    } catch (error) {
      console.error(error.message);
      await new Promise((on) => setTimeout(on, 20)); // it may be refused at once
    }
  }
  await (Redis ? client.disconnect() : client.close());
}

main();
