"""The form in which the queue of `ThreadHandler` holds a record, and the bytes that it is taken to weigh.

The record that other handlers see is never changed: the queue gets a shallow copy of its fields. Values that can change
after the call are turned into text here, in the caller; values of `extra` are carried as they are, like the record of
any other handler.
"""

from __future__ import annotations

import copy
import logging
from logging import LogRecord
from types import NoneType
from typing import Any

#: Bytes of an ordinary record: object, dictionary and small values (measured with `sys.getsizeof` on CPython 3.10 to
#: 3.13: 1.0 to 1.3 KiB).
RECORD_BYTES = 1200

#: Bytes a kept traceback adds. It holds frames, whose locals nobody can weigh. Chosen: the frames alone of a stack of
#: about ten.
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


def packed(record: LogRecord, formatter: logging.Formatter | None, *, exc_text: bool) -> tuple[Entry, int]:
    """Return a shallow copy of `record` for the queue, and its estimated bytes.

    Message and arguments that could change become the message; with `exc_text` the exception becomes its text. The
    bytes are a fixed part, the length of all texts, and a fixed sum for a kept traceback; `extra` is not counted.

    Raises:
        Exception: an exception of `getMessage()`, or of `formatException()` of `formatter`.
    """
    # A subclass may keep state where only its own copy protocol finds it.
    entry: Entry = record.__dict__.copy() if type(record) is LogRecord else copy.copy(record)
    fields = entry.__dict__ if isinstance(entry, LogRecord) else entry
    args = record.args
    if type(record.msg) is not str or (args and not (type(args) is tuple and is_plain(args))):
        fields["msg"], fields["args"] = record.getMessage(), None
    if exc_text and record.exc_info:
        if not fields["exc_text"]:
            fields["exc_text"] = (formatter or _default_formatter).formatException(fields["exc_info"])
        fields["exc_info"] = None
    texts = sum(_text_bytes(fields.get(name)) for name in ("msg", "args", "exc_text", "stack_info"))
    return entry, RECORD_BYTES + texts + (TRACEBACK_BYTES if fields.get("exc_info") else 0)


def is_plain(value: Any) -> bool:
    """Tell whether `value` cannot change: a builtin value, or a tuple of such."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_plain, value))
    return kind in FIXED_TYPES or kind is str or kind is bytes


def _text_bytes(value: Any) -> int:
    kind = type(value)
    if kind is tuple:
        return sum(map(_text_bytes, value))
    return len(value) if kind is str or kind is bytes else 0
