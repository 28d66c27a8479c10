// pino: its JSON lines over TCP.
const pino = require("pino");
const common = require("./common.cjs");

const connection = common.connect();
const log = pino({ name: "shop.cart", level: "trace" }, connection);
for (const record of common.records) {
  const level = common.level(record, ["debug", "info", "warn", "error", "fatal"]);
  log[level](record.raises ? { err: common.failure() } : record.fields, record.message);
}
connection.end();
