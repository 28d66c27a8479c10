"""The entry of a record: the bytes that a service receives, with all parts of the record.

The head of `crates/logspool-record/src/format/entry.rs` has the rules. `entry` follows the same rules for records that
only Python can read: records that pass a filter, have lists or dicts in `extra`, or come from a factory.
"""

from __future__ import annotations

import logging
import os
import struct
import sys
from typing import Any

from logspool import _adopt, _native

#: Deepest nesting and most values of all fields that are taken apart; beyond, the text of a field is sent.
#:
#: Chosen: more than programs log; a list that holds itself, or one list a million times, ends there.
_MAX_DEPTH = 16
_MAX_VALUES = 2000

#: As in the core: bytes that the texts of an entry may take, bytes of a name, and most parts of a record.
_MAX_BYTES = 6 * 1024 * 1024
_MAX_NAME_BYTES = 250
_MAX_PARTS = 1000

#: Methods by which a record comes to its line or entry.
CALLED = (
    "handle",
    "emit",
    "filter",
    "acquire",
    "release",
    "createLock",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)

_READ = ("level", "formatter", "filters", "lock")

#: Methods of a formatter that have a part in it.
_FORMATTER_CALLED = ("formatException", "formatStack", "__getattribute__", "__getattr__")


def file(name: str, path: Any) -> str | None:
    """Return the absolute path of a file that can be read; what is in it shows when a connection is made."""
    if path is None:
        return None
    try:
        absolute = os.path.abspath(os.fsdecode(path))
    except TypeError:
        raise TypeError(f"{name} must be a path, not {path!r}") from None
    with open(absolute, "rb"):
        return absolute


def describe_format(handler: Any, known: type) -> _adopt.Format:
    """Describe how the entries of a handler are made."""
    formatter = handler.formatter or logging._defaultFormatter  # type: ignore[attr-defined]
    types = ((type(formatter), _native.class_state(type(formatter))),)
    parts = ((formatter, _native.watch_part(formatter)),)
    form: _adopt.Formatting | str | None = _reason(handler, known, formatter)
    if form is None:
        form = _adopt.Formatting("entry", "", None, "", None, False, [], True)
    return _adopt.Format(form, types, parts)


def _reason(handler: Any, known: type, formatter: Any) -> str | None:
    """Say why only Python can make the entries of this handler; None where the collector can."""
    reason = customised(handler, known, (*CALLED, "_entry"))
    if reason is not None:
        return reason
    if not isinstance(formatter, logging.Formatter):
        return f"{type(formatter).__qualname__} is no logging.Formatter"
    reason = _adopt.changed_method(type(formatter), logging.Formatter, _FORMATTER_CALLED)
    if reason is not None:
        return reason
    for name in _FORMATTER_CALLED:
        if name in vars(formatter):
            return f"{name} is replaced on the formatter"
    return _adopt._shown("lineno thread processName process taskName")


def customised(handler: Any, known: type, called: tuple[str, ...]) -> str | None:
    """Say which method or attribute of a handler keeps the collector from making its lines or entries, if one does."""
    cls = type(handler)
    reason = _adopt.changed_method(cls, known, called)
    if reason is not None:
        return reason
    for owner in cls.__mro__:
        for name in _READ:
            if name in owner.__dict__:
                return f"{owner.__qualname__}.{name} is defined on the class"
    for name in called:
        if name in vars(handler):
            return f"{name} is replaced on the handler"
    # Another lock may guard the handler against somebody else. Before 3.13 a handler may have none.
    if type(handler.lock) is not _adopt._Lock and not (handler.lock is None and sys.version_info < (3, 13)):
        return f"its lock is a {type(handler.lock).__qualname__}"
    return None


def entry(record: logging.LogRecord, formatter: Any) -> bytes:
    """Return the entry of a record."""
    default = logging._defaultFormatter  # type: ignore[attr-defined]
    if record.exc_info and not record.exc_text:
        record.exc_text = getattr(formatter, "formatException", default.formatException)(record.exc_info)
    stack = record.stack_info
    if stack:
        stack = getattr(formatter, "formatStack", default.formatStack)(stack)
    parts: list[tuple[Any, Any]] = [
        ("level", min(max(int(record.levelno), 0), 0xFFFF)),
        ("logger", str(record.name)),
        ("file", record.pathname),
        ("line", record.lineno),
        ("function", record.funcName),
        ("process", record.process),
        ("host", os.uname().nodename),
        ("message", record.getMessage()),
        ("process_name", record.processName),
        ("thread", record.thread),
        ("thread_name", record.threadName),
        ("task", getattr(record, "taskName", None) if "taskName" in _own_names() else None),
        ("exception", record.exc_text or None),
        ("stack", stack or None),
    ]
    parts = [(name, value) for name, value in parts if value is not None]
    own = _own_names()
    parts += [(name, value) for name, value in record.__dict__.items() if name not in own]
    if len(parts) > _MAX_PARTS:
        parts[_MAX_PARTS:] = [("fields_left_out", len(parts) - _MAX_PARTS)]
    packed = _Packed(_time(record.created), struct.pack(">BH", 0xDE, len(parts)))
    for name, value in parts:
        packed.name(name)
        packed.field(value)
    return bytes(packed.bytes)


def _time(created: float) -> bytes:
    """Open the entry with its time."""
    whole = round(created * 1e9) if created >= 0 else 0
    seconds, nanoseconds = divmod(whole, 1_000_000_000)
    return struct.pack(">BBBII", 0x92, 0xD7, 0, min(seconds, 0xFFFF_FFFF), nanoseconds)


def _own_names() -> frozenset[str]:
    global _names
    if _names is None:
        record = logging.LogRecord("", 0, "", 0, "", (), None)
        _names = frozenset({*vars(record), "message", "asctime"})
    return _names


_names: frozenset[str] | None = None


class _TooLarge(Exception):
    """A field nests too deep, or holds too much."""


class _Packed:
    """MessagePack, every value in its shortest form."""

    def __init__(self, *start: bytes) -> None:
        self.bytes = bytearray().join(start)
        self._left = _MAX_VALUES

    def field(self, value: Any) -> None:
        """Append the value of a field, or its text where it is too large."""
        start, left = len(self.bytes), self._left
        try:
            self._value(value, 0)
        except _TooLarge:
            del self.bytes[start:]
            self._left = left
            self.text(str(value))

    def _value(self, value: Any, depth: int) -> None:
        if depth > 0:
            self._left -= 1
            if depth > _MAX_DEPTH or self._left < 0:
                raise _TooLarge
        if value is None:
            self.bytes.append(0xC0)
        elif type(value) is str:
            self.text(value)
        elif value is True or value is False:
            self.bytes.append(0xC3 if value else 0xC2)
        elif type(value) is int:
            self._int(value)
        elif type(value) is float:
            self.bytes += struct.pack(">Bd", 0xCB, value)
        elif isinstance(value, dict):
            items = list(value.items())
            self._head(len(items), 0x80, 0xDE)
            for key, item in items:
                self.name(key)
                self._value(item, depth + 1)
        elif isinstance(value, (list, tuple)):
            items = list(value)
            self._head(len(items), 0x90, 0xDC)
            for item in items:
                self._value(item, depth + 1)
        else:
            self.text(str(value))

    def name(self, value: Any) -> None:
        """Append the name of a part."""
        self._cut(str(value), _MAX_NAME_BYTES)

    def text(self, value: str) -> None:
        """Append text; what is no Unicode in it is escaped."""
        self._cut(value, max(_MAX_BYTES - len(self.bytes), 0) // 2)

    def _cut(self, value: str, room: int) -> None:
        encoded = str.encode(value, "utf-8", "backslashreplace")
        if len(encoded) > room:
            while room > 0 and encoded[room] & 0xC0 == 0x80:
                room -= 1
            encoded = encoded[:room] + b"..."
        length = len(encoded)
        if length < 32:
            self.bytes.append(0xA0 | length)
        elif length <= 0xFF:
            self.bytes += bytes((0xD9, length))
        elif length <= 0xFFFF:
            self.bytes += struct.pack(">BH", 0xDA, length)
        else:
            self.bytes += struct.pack(">BI", 0xDB, length)
        self.bytes += encoded

    def _head(self, length: int, short: int, long: int) -> None:
        if length < 16:
            self.bytes.append(short | length)
        elif length <= 0xFFFF:
            self.bytes += struct.pack(">BH", long, length)
        else:
            self.bytes += struct.pack(">BI", long + 1, length)

    def _int(self, value: int) -> None:
        if not -(1 << 63) <= value < 1 << 63:
            self.text(str(value))
        elif -32 <= value < 128:
            self.bytes.append(value & 0xFF)
        elif value >= 0:
            size = next(size for size in (0, 1, 2, 3) if value < 1 << (8 << size))
            self.bytes.append(0xCC + size)
            self.bytes += value.to_bytes(1 << size, "big")
        else:
            size = next(size for size in (0, 1, 2, 3) if value >= -(1 << (8 << size) - 1))
            self.bytes.append(0xD0 + size)
            self.bytes += value.to_bytes(1 << size, "big", signed=True)
