"""Libraries that make the records or the messages of a program: factories, tracing, structlog, Sentry."""

import logging
import os
from pathlib import Path
from typing import Any

from case import LINE_FORMAT, LOGGER_NAME, Session
from cases.stock import file_handler, with_handler
from configured.configuration import REQUEST_FORMAT, REQUEST_ID, Configuration

TRACE_FORMAT = LINE_FORMAT.replace(
    "%(message)s", "[trace_id=%(otelTraceID)s span_id=%(otelSpanID)s service=%(otelServiceName)s] %(message)s"
)
DATADOG_FORMAT = LINE_FORMAT.replace(
    "%(message)s", "[service=%(dd.service)s env=%(dd.env)s trace_id=%(dd.trace_id)s span_id=%(dd.span_id)s] %(message)s"
)
STRUCTLOG_CALL = 'log.info("user did", user=name, number=i, ms=ms)'


def _factory(path: Path) -> logging.Handler:
    make = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        record.request_id = REQUEST_ID
        return record

    logging.setLogRecordFactory(factory)
    return file_handler(path, logging.Formatter(REQUEST_FORMAT))


def _opentelemetry(path: Path) -> logging.Handler:
    from opentelemetry.instrumentation.logging import LoggingInstrumentor

    LoggingInstrumentor().instrument(inject_trace_context=True, enable_log_auto_instrumentation=False)
    return file_handler(path, logging.Formatter(TRACE_FORMAT))


def _ddtrace(path: Path) -> logging.Handler:
    # Nothing is sent: there is no agent.
    os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false")
    from ddtrace.contrib.internal.logging.patch import patch

    logging.getLogger("ddtrace").disabled = True
    patch()
    return file_handler(path, logging.Formatter(DATADOG_FORMAT))


def _open_structlog(path: Path) -> Session:
    import structlog

    session = with_handler(lambda path: file_handler(path, logging.Formatter("%(message)s")))(path)
    _configure_structlog([structlog.processors.JSONRenderer()])
    return Session(structlog.get_logger(LOGGER_NAME), session.finish)


def _open_processor_formatter(path: Path) -> Session:
    import structlog

    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ]
    )
    session = with_handler(lambda path: file_handler(path, formatter))(path)
    _configure_structlog([structlog.stdlib.ProcessorFormatter.wrap_for_formatter])
    return Session(structlog.get_logger(LOGGER_NAME), session.finish)


def _configure_structlog(last: list[Any]) -> None:
    import structlog

    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            # As "iso", which leaves out the fraction of one second in a million.
            structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ"),
            *last,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _sentry(path: Path) -> logging.Handler:
    import sentry_sdk
    from sentry_sdk.transport import Transport

    class Discard(Transport):
        """Takes the place of the connection to the server."""

        def capture_envelope(self, envelope: object) -> None:
            """Drop an event."""

    sentry_sdk.init(dsn="http://key@localhost/1", transport=Discard, auto_enabling_integrations=False)
    return file_handler(path)


CONFIGURATIONS = [
    Configuration("factory", "setLogRecordFactory", with_handler(_factory)),
    Configuration(
        "opentelemetry",
        "OpenTelemetry's record factory",
        with_handler(_opentelemetry),
        needs=("opentelemetry.instrumentation.logging",),
    ),
    Configuration("ddtrace", "ddtrace's log injection", with_handler(_ddtrace), needs=("ddtrace",)),
    Configuration(
        "structlog", "structlog to a stock logger", _open_structlog, call=STRUCTLOG_CALL, needs=("structlog",)
    ),
    Configuration(
        "structlog-formatter",
        "structlog's ProcessorFormatter",
        _open_processor_formatter,
        call=STRUCTLOG_CALL,
        needs=("structlog",),
    ),
    Configuration("sentry", "sentry-sdk with a DSN", with_handler(_sentry), needs=("sentry_sdk",)),
]
