// bunyan: its JSON lines over TCP.
const bunyan = require("bunyan");
const common = require("./common.cjs");

const connection = common.connect();
const serializers = bunyan.stdSerializers;
const log = bunyan.createLogger({ name: "shop.cart", level: "trace", serializers, stream: connection });
for (const record of common.records) {
  const level = common.level(record, ["debug", "info", "warn", "error", "fatal"]);
  // Its messages are formats of `util.format`, and a text as their value stays as it is.
  log[level](record.raises ? { err: common.failure() } : record.fields, "%s", record.message);
}
connection.end();
