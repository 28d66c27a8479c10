"""Filters that programs add: by name, by message, and with fields of the request."""

import logging
import logging.config
import re
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

from case import LOGGER_NAME, Session
from cases.stock import file_handler, with_handler
from configured.configuration import REQUEST_FORMAT, REQUEST_ID, Configuration

request_id: ContextVar[str] = ContextVar("request_id", default="-")

DEBUG = False


class ContextFilter(logging.Filter):
    """Gives each record the id of the running request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Set the attribute that the format shows."""
        record.request_id = request_id.get()
        return True


class MessageFilter(logging.Filter):
    """Drops the access lines of health checks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Look for a word in the message."""
        return "/health" not in record.getMessage()


class RequireDebugFalse(logging.Filter):
    """Keeps records in production only, like Django's filter of this name."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Look at the setting."""
        return not DEBUG


def _filtered(make: Callable[[], logging.Filter], layout: str | None = None) -> Callable[[Path], Session]:
    def handler_on(path: Path) -> logging.Handler:
        handler = file_handler(path, logging.Formatter(layout) if layout else None)
        handler.addFilter(make())
        return handler

    return with_handler(handler_on)


def _open_context(path: Path) -> Session:
    request_id.set(REQUEST_ID)
    return _filtered(ContextFilter, REQUEST_FORMAT)(path)


def _open_message(path: Path) -> Session:
    session = with_handler(file_handler)(path)
    session.log.addFilter(MessageFilter())
    return session


def _open_correlation(path: Path) -> Session:
    from asgi_correlation_id import CorrelationIdFilter, correlation_id

    correlation_id.set(REQUEST_ID)
    return _filtered(CorrelationIdFilter, REQUEST_FORMAT.replace("request_id", "correlation_id"))(path)


def _open_dict_config(path: Path) -> Session:
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "verbose": {
                    "format": "{levelname} {asctime} {module} process {process:d} thread {thread:d} {message}",
                    "style": "{",
                }
            },
            "filters": {"require_debug_false": {"()": RequireDebugFalse}},
            "handlers": {
                "console": {"class": "logging.StreamHandler", "level": "ERROR"},
                "file": {
                    "class": "logging.FileHandler",
                    "filename": str(path),
                    "formatter": "verbose",
                    "filters": ["require_debug_false"],
                },
            },
            "loggers": {LOGGER_NAME: {"handlers": ["file"], "level": "INFO"}},
            "root": {"handlers": ["console"], "level": "WARNING"},
        }
    )
    return Session(logging.getLogger(LOGGER_NAME), lambda: logging.shutdown())


CONFIGURATIONS = [
    Configuration("context-filter", "filter that sets request_id", _open_context),
    Configuration("message-filter", "filter by message", _open_message),
    Configuration("name-filter", "logging.Filter by name", _filtered(lambda: logging.Filter(LOGGER_NAME))),
    Configuration("correlation-id", "asgi-correlation-id's filter", _open_correlation, needs=("asgi_correlation_id",)),
    Configuration(
        "dict-config",
        "dictConfig as in Django, one filter",
        _open_dict_config,
        moving=(re.compile(rb"(?<= process )\d+(?= )"), re.compile(rb"(?<= thread )\d+(?= )")),
    ),
]
