// winston: JSON lines over TCP, with the levels of syslog.
const winston = require("winston");
const common = require("./common.cjs");

const { combine, errors, json, timestamp } = winston.format;
const connection = common.connect();
const log = winston.createLogger({
  level: "debug",
  levels: winston.config.syslog.levels,
  defaultMeta: { logger: "shop.cart" },
  format: combine(errors({ stack: true }), timestamp(), json()),
  transports: [new winston.transports.Stream({ stream: connection })],
});
for (const record of common.records) {
  const level = common.level(record, ["debug", "info", "warning", "error", "crit"]);
  const fields = record.raises ? { stack: common.failure().stack } : record.fields;
  log.log({ level, message: record.message, ...fields });
}
log.on("finish", () => connection.end());
log.end();
