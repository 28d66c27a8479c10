"""Send records by OpenTelemetry's SDK and its exporter over gRPC.

opentelemetry_grpc.py RECORDS ADDRESS gzip|none [TOKEN]
"""

import json
import logging
import sys

import grpc
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

file, address, compression, *token = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
provider = LoggerProvider(Resource.create({"service.name": "shop", "host.name": "web-1"}))
exporter = OTLPLogExporter(
    endpoint=address,
    insecure=True,
    headers=[("authorization", f"Bearer {one}") for one in token],
    compression=grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression,
)
provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
logger = logging.getLogger("shop.cart")
logger.setLevel(logging.DEBUG)
logger.addHandler(LoggingHandler(logger_provider=provider))
for record in RECORDS:
    logger.log(getattr(logging, record["level"]), record["message"], extra=record["fields"])
provider.force_flush()
provider.shutdown()
