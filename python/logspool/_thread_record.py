"""What of a record goes into the queue, and what it is taken to weigh.

The record that other handlers see is never changed: the queue gets a shallow copy of its fields.
Values that can change after the call are turned into text here, in the caller; values of `extra`
are carried as they are, like the record of any other handler.
"""

from __future__ import annotations

import copy
import logging
from logging import LogRecord
from types import NoneType
from typing import Any

#: Bytes of an ordinary record: object, dictionary and small values (measured with
#: `sys.getsizeof` on CPython 3.10 to 3.13: 1.0 to 1.3 KiB).
RECORD_BYTES = 1200

#: Bytes a kept traceback adds. It holds frames, whose locals nobody can weigh; chosen as the
#: size of the frames alone of a stack of about ten.
TRACEBACK_BYTES = 5000

#: Exact types whose values never change and weigh next to nothing.
FIXED_TYPES = frozenset((int, float, bool, NoneType))

#: A queued record: its fields where it is an exact LogRecord, else a copy of the object.
Entry = dict[str, Any] | LogRecord

_new_record = LogRecord.__new__
_default_formatter = logging.Formatter()


def restored(entry: Entry) -> LogRecord:
    """Return the record that `entry` stands for."""
    if isinstance(entry, LogRecord):
        return entry
    record = _new_record(LogRecord)
    record.__dict__ = entry
    return record


def level_of(entry: Entry) -> int:
    """Return the level number of a queued record."""
    return entry.levelno if isinstance(entry, LogRecord) else entry["levelno"]


def is_plain(value: Any) -> bool:
    """Tell whether `value` cannot change: a builtin value, or a tuple of such."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_plain, value))
    return kind in FIXED_TYPES or kind is str or kind is bytes


def is_plain_template(message: object, args: object) -> bool:
    """Tell whether message and arguments of a record can be formatted later with one result."""
    return type(message) is str and (not args or (type(args) is tuple and is_plain(args)))


def frozen_entry(record: LogRecord) -> Entry:
    """Return a shallow copy of `record` whose message is text and whose arguments are gone.

    Raises:
        Exception: whatever `getMessage()` raised.
    """
    entry = copied(record)
    fields = _fields_of(entry)
    fields["msg"] = record.getMessage()
    fields["args"] = None
    return entry


def copied(record: LogRecord) -> Entry:
    """Return a shallow copy of `record`."""
    if type(record) is LogRecord:
        return record.__dict__.copy()
    # A subclass may keep state where only its own copy protocol finds it.
    return copy.copy(record)


def make_traceback_text(entry: Entry, formatter: logging.Formatter | None) -> None:
    """Replace the exception of a queued record by its text.

    Raises:
        Exception: whatever `formatException()` of `formatter` raised.
    """
    fields = _fields_of(entry)
    if fields["exc_info"] and not fields["exc_text"]:
        formatter = formatter or _default_formatter
        fields["exc_text"] = formatter.formatException(fields["exc_info"])
    fields["exc_info"] = None


def weight(entry: Entry) -> int:
    """Return the bytes `entry` is taken to occupy.

    An estimate: a fixed part, the length of message, text arguments, traceback and stack text,
    and a fixed sum for a kept traceback. What `extra` refers to is not counted.
    """
    fields = _fields_of(entry)
    size = RECORD_BYTES
    for name in ("msg", "args", "exc_text", "stack_info"):
        size += _text_bytes(fields.get(name))
    if fields.get("exc_info"):
        size += TRACEBACK_BYTES
    return size


def _fields_of(entry: Entry) -> dict[str, Any]:
    return entry.__dict__ if isinstance(entry, LogRecord) else entry


def _text_bytes(value: Any) -> int:
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value)
    if kind is tuple:
        return sum(map(_text_bytes, value))
    return 0
