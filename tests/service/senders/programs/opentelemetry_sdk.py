"""Send records by OpenTelemetry's SDK and its exporter, some of them in a span; print the ids of the span.

opentelemetry_sdk.py RECORDS ENDPOINT gzip|none
"""

import json
import logging
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

file, endpoint, compression = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
resource = Resource.create({"service.name": "shop", "host.name": "web-1"})
provider = LoggerProvider(resource)
exporter = OTLPLogExporter(endpoint, compression=Compression(compression))
provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
logger = logging.getLogger("shop.cart")
logger.setLevel(logging.DEBUG)
logger.addHandler(LoggingHandler(logger_provider=provider))


def fail():
    raise ValueError("no such customer: Zoë")


for record in RECORDS:
    logger.log(getattr(logging, record["level"]), record["message"], extra=record["fields"])
with TracerProvider().get_tracer("shop").start_as_current_span("pay") as span:
    logger.info("in a span of %s", "Zoë")
    try:
        fail()
    except ValueError:
        logger.exception("cannot pay")
assert provider.force_flush()
provider.shutdown()
context = span.get_span_context()
json.dump({"trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}"}, sys.stdout)
