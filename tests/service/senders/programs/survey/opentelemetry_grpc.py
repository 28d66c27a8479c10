"""OpenTelemetry's SDK with its exporter over gRPC."""

import common
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

provider = LoggerProvider()
exporter = OTLPLogExporter(f"{common.HOST}:{common.HTTP}", insecure=True)
provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
common.log_all(LoggingHandler(logger_provider=provider))
provider.shutdown()
