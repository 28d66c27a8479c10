"""OpenTelemetry's SDK with its exporter over HTTP."""

import common
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

provider = LoggerProvider()
provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{common.URL}/v1/logs")))
common.log_all(LoggingHandler(logger_provider=provider))
provider.shutdown()
