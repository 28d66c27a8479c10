"""The form of a record in the queue of `ThreadHandler`, and the estimate of its bytes.

The record that other handlers get is never changed: the queue gets a shallow copy of its fields. This module turns
values that can change after the call into text, in the caller. Values of `extra` are kept unchanged.
"""

from __future__ import annotations

import copy
import logging
from logging import LogRecord
from types import NoneType
from typing import Any

from logspool._native import UnmadeRecord

#: Estimated bytes of an ordinary record: the object, its dictionary and small values. Measured with `sys.getsizeof` on
#: CPython 3.10 to 3.13: 1.0 to 1.3 KiB.
RECORD_BYTES = 1200

#: Estimated bytes of a kept traceback. It refers to frames, and the size of their local variables cannot be determined.
#: Chosen: the size of about ten frames without their local variables.
TRACEBACK_BYTES = 5000

#: Types whose values never change and need almost no memory. Subclasses are not included.
FIXED_TYPES = frozenset((int, float, bool, NoneType))

#: A queued record: the dict of its fields if its type is exactly LogRecord, otherwise a copy of the object. A native
#: call queues its values.
PackedRecord = dict[str, Any] | LogRecord
Entry = PackedRecord | UnmadeRecord

_new_record = LogRecord.__new__
_default_formatter = logging.Formatter()


def restored(entry: Entry) -> LogRecord:
    """Return the record for `entry`, which `packed` or a native call made."""
    if type(entry) is UnmadeRecord:
        return entry.make()
    if isinstance(entry, LogRecord):
        return entry
    record = _new_record(LogRecord)
    record.__dict__ = entry
    return record


def packed(record: LogRecord, formatter: logging.Formatter | None, *, exc_text: bool) -> tuple[PackedRecord, int]:
    """Return a shallow copy of `record` for the queue, and its estimated bytes.

    If an argument could change later, the copy has the formatted message instead of message and arguments. With
    `exc_text` it has the text of the exception instead of the exception. The bytes are a fixed part, the length of all
    texts, and a fixed sum for a kept traceback; `extra` is not counted.

    Raises:
        Exception: an exception of `getMessage()`, or of `formatException()` of `formatter`.
    """
    # A subclass may keep state outside of its `__dict__`, so it is copied by its own copy protocol.
    entry: PackedRecord = record.__dict__.copy() if type(record) is LogRecord else copy.copy(record)
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
    """Return whether `value` cannot change, because it is an immutable builtin value or a tuple of such values."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_plain, value))
    return kind in FIXED_TYPES or kind is str or kind is bytes


def _text_bytes(value: Any) -> int:
    kind = type(value)
    if kind is tuple:
        return sum(map(_text_bytes, value))
    return len(value) if kind is str or kind is bytes else 0
