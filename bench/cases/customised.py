"""Programs that customise logging: each as it is and with logspool installed.

These are the honest rows: the customised parts still run in the caller, so the gain is smaller.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from case import JSON_LAYOUT, LATENCY, LINE_FORMAT, STOCK_LAYOUT, THROUGHPUT, Case, Session
from cases.installed import installed
from cases.stock import file_handler, with_handler


class CustomFormatter(logging.Formatter):
    """A formatter as programs write them: the stock line, with secrets masked."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return super().format(record).replace("password=", "password=***")


class OneFilter(logging.Filter):
    """A filter as programs write them: it keeps all and looks at one attribute."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is kept."""
        return record.levelno >= logging.INFO


def _custom_formatter(path: Path) -> logging.Handler:
    return file_handler(path, CustomFormatter(LINE_FORMAT))


def _json_logger(path: Path) -> logging.Handler:
    from pythonjsonlogger.json import JsonFormatter

    return file_handler(path, JsonFormatter("%(asctime)s %(levelname)s %(name)s %(lineno)d %(message)s"))


def _filtered(path: Path) -> logging.Handler:
    handler = file_handler(path)
    handler.addFilter(OneFilter())
    return handler


def _sentry(path: Path) -> logging.Handler:
    import sentry_sdk

    sentry_sdk.init()
    return file_handler(path)


def _opentelemetry(path: Path) -> logging.Handler:
    from opentelemetry.instrumentation.logging import LoggingInstrumentor

    LoggingInstrumentor().instrument(set_logging_format=False)
    return file_handler(path)


KINDS: list[tuple[str, str, Callable[[Path], logging.Handler], tuple[str, ...]]] = [
    ("formatter", "custom Formatter", _custom_formatter, ()),
    ("json-logger", "python-json-logger", _json_logger, ("pythonjsonlogger",)),
    ("filter", "one Python filter", _filtered, ()),
    ("sentry", "sentry-sdk initialised", _sentry, ("sentry_sdk",)),
    ("opentelemetry", "OpenTelemetry logging", _opentelemetry, ("opentelemetry.instrumentation.logging",)),
]


def _cases() -> Iterator[Case]:
    sides: list[tuple[str, Callable[[Callable[[Path], logging.Handler]], Callable[[Path], Session]], tuple[str, ...]]]
    sides = [("stdlib", with_handler, ()), ("logspool", installed, ("logspool",))]
    for name, title, make, needs in KINDS:
        for side, opener, side_needs in sides:
            yield Case(
                name=f"{side}-{name}",
                title=f"{side}{', installed' if side == 'logspool' else ''}, {title}",
                group="customised",
                open=opener(make),
                needs=side_needs + needs,
                layout=JSON_LAYOUT if name == "json-logger" else STOCK_LAYOUT,
                modes=(THROUGHPUT, LATENCY),
            )


CASES = list(_cases())
