// OpenTelemetry: gRPC.
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-grpc");
const common = require("./common.cjs");

require("./opentelemetry.cjs").send(new OTLPLogExporter({ url: common.url }));
