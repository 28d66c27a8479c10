// What the programs with OpenTelemetry's SDK for Node.js share: all records by one exporter.
const { SeverityNumber } = require("@opentelemetry/api-logs");
const { BatchLogRecordProcessor, LoggerProvider } = require("@opentelemetry/sdk-logs");
const common = require("./common.cjs");

const { DEBUG, INFO, WARN, ERROR, FATAL } = SeverityNumber;

exports.send = async (exporter) => {
  const provider = new LoggerProvider({ processors: [new BatchLogRecordProcessor({ exporter })] });
  const log = provider.getLogger("shop.cart");
  for (const record of common.records) {
    const severityNumber = common.level(record, [DEBUG, INFO, WARN, ERROR, FATAL]);
    const { message, stack } = common.failure();
    const thrown = { "exception.type": "Error", "exception.message": message, "exception.stacktrace": stack };
    log.emit({ severityNumber, body: record.message, attributes: record.raises ? thrown : record.fields });
  }
  await provider.forceFlush();
  await provider.shutdown();
};
