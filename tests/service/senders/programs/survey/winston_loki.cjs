// winston-loki: lines with labels.
const winston = require("winston");
const LokiTransport = require("winston-loki");
const common = require("./common.cjs");

const transport = new LokiTransport({
  host: common.url,
  labels: { logger: "shop.cart" },
  json: true,
  format: winston.format.json(),
});
const log = winston.createLogger({
  level: "debug",
  levels: winston.config.syslog.levels,
  transports: [transport],
});
for (const record of common.records) {
  const level = common.level(record, ["debug", "info", "warning", "error", "crit"]);
  const fields = record.raises ? { stack: common.failure().stack } : record.fields;
  log.log({ level, message: record.message, ...fields });
}
transport.flush().then(() => process.exit(0));
