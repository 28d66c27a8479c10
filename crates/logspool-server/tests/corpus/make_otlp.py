"""Make the OpenTelemetry requests of its Python SDK that the decoder is tested with.

    pip install opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2 && python make_otlp.py

Each line of `otlp-python.txt` holds, between tabs: a name, the body of a request in hex, and in JSON the records as the
service has to understand them. The bodies are those that reached a server.
"""

import http.server
import json
import logging
import pathlib
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

HERE = pathlib.Path(__file__).parent
SECONDS = 1_700_000_000
RESOURCE = Resource(
    {"service.name": "shop", "host.name": "web-1", "process.pid": 4711, "telemetry.sdk.language": "python"}
)
CONTEXT = trace.SpanContext(0x0102030405060708090A0B0C0D0E0F10, 0x1112131415161718, False, trace.TraceFlags(1))


def sent(send):
    """Return the body of the one request that reaches a server while `send` runs with its address."""
    bodies = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        send(f"http://127.0.0.1:{server.server_port}/v1/logs")
        server.shutdown()
    (body,) = bodies
    return body


def handled(*records):
    """Return what `LoggingHandler` and the exporter send for records."""

    def send(endpoint):
        provider = LoggerProvider(RESOURCE, shutdown_on_exit=False)
        provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint)))
        handler = LoggingHandler(logger_provider=provider)
        for record in records:
            handler.handle(record)
        provider.shutdown()

    return sent(send)


def record(level, message, args=(), error=None, **extra):
    """Return a record as a call of a logger makes it."""
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.getLogger("shop").makeRecord(
        "shop.cart", level, "/srv/cart.py", 42, message, args, info, "pay", extra
    )
    made.created = SECONDS + 0.125
    return made


def expected(level, message, exception=None, **fields):
    """Return a record as the service has to understand it."""
    found = {
        # As the SDK reckons it.
        "time_ns": int((SECONDS + 0.125) * 1e9),
        "level": level,
        "logger": "shop.cart",
        "message": message,
        "file": "/srv/cart.py",
        "line": 42,
        "function": "pay",
        "host": "web-1",
        "process": 4711,
        "fields": {**fields, "service.name": "shop"},
    }
    return found | ({"exception": exception} if exception else {})


def raised():
    """Return an error that was raised in the one line of a file."""
    try:
        exec(compile("raise ValueError('no such item: \u20ac')", "/srv/cart.py", "exec"), {})
    except ValueError as error:
        # Without the frame of this function.
        return error.with_traceback(error.__traceback__.tb_next)


def traced():
    """Return a request whose record belongs to a span."""
    with trace.use_span(trace.NonRecordingSpan(CONTEXT)):
        return handled(record(logging.INFO, "in a span"))


LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
EXTRA = {"user": 7, "rate": 0.5, "ok": True, "list": ["a", "b"], "nested": {"a": {"b": [1, -1]}}, "raw": b"xy"}
MEANT = {**EXTRA, "raw": "xy"}
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/srv/cart.py", line 1, in <module>\nValueError: no such item: \u20ac\n'
)
IDS = {"trace_id": "0102030405060708090a0b0c0d0e0f10", "span_id": "1112131415161718"}

CASES = {
    "levels": (
        handled(*(record(level, "took %d ms", (5,)) for level in LEVELS)),
        [expected(level, "took 5 ms") for level in LEVELS],
    ),
    "extras": (handled(record(logging.INFO, "\u20ac", **EXTRA)), [expected(logging.INFO, "\u20ac", **MEANT)]),
    "error": (
        handled(record(logging.ERROR, "failed", error=raised())),
        [expected(logging.ERROR, "failed", TRACEBACK)],
    ),
    "span": (traced(), [expected(logging.INFO, "in a span") | IDS]),
    "no text": (handled(record(logging.INFO, {"a": 1})), [expected(logging.INFO, '{"a":1}')]),
}


def main():
    """Write the file."""
    lines = [f"{name}\t{body.hex()}\t{json.dumps(meant)}\n" for name, (body, meant) in CASES.items()]
    (HERE / "otlp-python.txt").write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
