const Redis = require(process.env.MODULE);

async function main() {
  const [host, port] = process.env.SENTINEL.split(":");
  const client = new Redis({ name: "main", sentinels: [{ host, port: Number(port) }], failoverDetector: true });
  client.on("error", (error) => console.error(error));
  await client.lpush("q", "hello");
  console.log(await client.rpop("q"));
  client.disconnect();
}

main();
