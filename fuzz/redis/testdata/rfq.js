// The real client of rfq: node rfq.js publish TOPIC VALUE | consume TOPIC commit|crash
const { Queue } = require("@robofarm/rfq");

const [action, topic, what] = process.argv.slice(2);
const queue = new Queue(); // of RFQ_REDIS_HOST and RFQ_REDIS_PORT

async function main() {
  if (action === "publish") {
    await queue.publish(topic, { tile: what });
  } else {
    const task = await queue.consume(topic);
    console.log(task.value.tile);
    if (what === "crash") return; // the connection keeps the process alive until it is killed
    await task.resolve();
  }
  queue.quit();
}

main();
