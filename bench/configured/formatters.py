"""Formatters that programs write: another time, colours, JSON."""

import json
import logging
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from case import LINE_FORMAT, Session
from cases.stock import file_handler, with_handler
from configured.configuration import Configuration

COLOURS = {logging.INFO: "\x1b[32m", logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m"}


class IsoTime(logging.Formatter):
    """Shows times as ISO 8601 in UTC."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of the record."""
        return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")


class LocalTime(logging.Formatter):
    """Shows times as ISO 8601 in the local zone, with less code."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of the record."""
        return datetime.fromtimestamp(record.created).isoformat(timespec="microseconds")


class OneLineException(logging.Formatter):
    """Shows exceptions in one line."""

    def formatException(self, exc_info: Any) -> str:
        """Return the text of the exception."""
        return super().formatException(exc_info).replace("\n", "|")


class OwnMessage(logging.Formatter):
    """Puts the level before the rest of the line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without exception and stack."""
        return f"{record.levelname[0]} {super().formatMessage(record)}"


class Coloured(logging.Formatter):
    """Colours the line by its level."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return f"{COLOURS.get(record.levelno, '')}{super().format(record)}\x1b[0m"


class JsonLine(logging.Formatter):
    """Makes a JSON object of five fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "line": record.lineno,
            "message": record.getMessage(),
        }
        return json.dumps(fields)


def _formatted(make: Callable[[], logging.Formatter]) -> Callable[[Path], Session]:
    return with_handler(lambda path: file_handler(path, make()))


CONFIGURATIONS = [
    Configuration("iso-time", "own formatTime, ISO 8601", _formatted(lambda: IsoTime(LINE_FORMAT))),
    Configuration("local-time", "own formatTime, local ISO 8601", _formatted(lambda: LocalTime(LINE_FORMAT))),
    Configuration("own-exception", "own formatException", _formatted(lambda: OneLineException(LINE_FORMAT))),
    Configuration("own-message", "own formatMessage", _formatted(lambda: OwnMessage(LINE_FORMAT))),
    Configuration("colours", "own format, colours", _formatted(lambda: Coloured(LINE_FORMAT))),
    Configuration("json", "own format, json.dumps", _formatted(JsonLine)),
    Configuration("json-deferred", "own format, json.dumps, deferred", _formatted(JsonLine), deferred=True),
]
