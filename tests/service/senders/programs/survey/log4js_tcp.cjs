// log4js: its appender `tcp`, with a layout of JSON lines.
const log4js = require("log4js");
const common = require("./common.cjs");

log4js.addLayout("json", () => (event) => {
  const [message, fields] = event.data;
  const { stack } = fields.error || {};
  const named = { timestamp: event.startTime, level: event.level.levelStr, logger: event.categoryName };
  return JSON.stringify({ ...named, message, stack_trace: stack, ...fields });
});
log4js.configure({
  appenders: {
    lines: { type: "tcp", host: common.host, port: common.ports.tcp, endMsg: "\n", layout: { type: "json" } },
  },
  categories: { default: { appenders: ["lines"], level: "trace" } },
});
const log = log4js.getLogger("shop.cart");
for (const record of common.records) {
  const level = common.level(record, ["debug", "info", "warn", "error", "fatal"]);
  log[level](record.message, record.raises ? { error: common.failure() } : record.fields);
}
log4js.shutdown(() => {});
