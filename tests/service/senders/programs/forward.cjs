// Send records by @fluent-org/logger with acks, and print how many were acknowledged.
//
//     node forward.cjs modes RECORDS PORT
//     node forward.cjs stream COUNT PORT
//
// `modes` sends the records in each mode of the protocol. `stream` sends numbered records one after the other, and
// sends again what is not acknowledged; it prints a line for each tenth record that is.

const { readFileSync } = require("node:fs");
const { EventTime, FluentClient } = require("@fluent-org/logger");

const [what, argument, port] = process.argv.slice(2);
const LEVELS = { DEBUG: 10, INFO: 20, WARNING: 30, ERROR: 40, CRITICAL: 50 };
const socket = { host: "127.0.0.1", port: Number(port), reconnect: { delay: 20, maxDelay: 100 } };

async function modes() {
  const records = JSON.parse(readFileSync(argument, "utf8"));
  for (const eventMode of ["Message", "Forward", "PackedForward", "CompressedPackedForward"]) {
    const client = new FluentClient("app", { socket, eventMode, ack: { ackTimeout: 20_000 }, milliseconds: true });
    const acks = records.map(({ message, level, fields }) => {
      const record = { message, level: LEVELS[level], host: "web-1", logger: "shop.cart", ...fields };
      return client.emit(eventMode, record, EventTime.fromTimestamp(Date.now()));
    });
    console.log(eventMode, (await Promise.all(acks)).length);
    await client.shutdown();
  }
}

async function stream() {
  const count = Number(argument);
  const retry = { attempts: 1000, delay: 20, maxDelay: 100 };
  const client = new FluentClient("app", { socket, ack: { ackTimeout: 300 }, eventRetry: retry });
  let acknowledged = 0;
  let next = 0;
  // Eight records are on their way at a time.
  const send = async () => {
    while (next < count) {
      const number = next++;
      await client.emit("stream", { message: `r${number}` });
      acknowledged += 1;
      if (acknowledged % 10 === 0) console.log(acknowledged);
    }
  };
  await Promise.all(Array.from({ length: 8 }, send));
  await client.shutdown();
}

// The logger does not look at the outcome of its own tries to connect again.
process.on("unhandledRejection", (error) => {
  if (error.code !== "ECONNREFUSED" && error.code !== "ECONNRESET") throw error;
});

({ modes, stream })[what]();
