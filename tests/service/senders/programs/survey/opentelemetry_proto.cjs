// OpenTelemetry: protobuf over HTTP.
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-proto");
const common = require("./common.cjs");

require("./opentelemetry.cjs").send(new OTLPLogExporter({ url: `${common.url}/v1/logs` }));
