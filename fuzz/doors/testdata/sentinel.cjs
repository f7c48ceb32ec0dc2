const { createSentinel } = require(process.env.MODULE);

async function main() {
  const [host, port] = process.env.SENTINEL.split(":");
  for (const RESP of [2, 3]) {
    const client = createSentinel({ name: "main", RESP, sentinelRootNodes: [{ host, port: Number(port) }] });
    client.on("error", (error) => console.error(error));
    await client.connect();
    await client.lPush("q", "hello");
    console.log(await client.rPop("q"));
    await client.close();
  }
}

main();
