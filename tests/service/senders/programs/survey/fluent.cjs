// @fluent-org/logger: Forward over TCP with acks.
const { EventTime, FluentClient } = require("@fluent-org/logger");
const common = require("./common.cjs");

const socket = { host: common.host, port: common.ports.tcp };
const client = new FluentClient("shop", { socket, ack: { ackTimeout: 30_000 } });
const sent = common.records.map((record) => {
  const level = record.level.toLowerCase();
  const fields = record.raises ? { stack_trace: common.failure().stack } : record.fields;
  const data = { message: record.message, level, logger: "shop.cart", ...fields };
  return client.emit("cart", data, EventTime.now());
});
Promise.all(sent).then(() => client.shutdown());
