"""The entry of a record: the bytes that a service receives, with all parts of the record.

The module documentation of `crates/logspool-record/src/format/entry.rs` has the rules. If only Python can read a
record, `entry` lists its parts and the core writes them. This concerns records that pass a filter, have lists or dicts
in `extra`, or come from a record factory.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from logspool import _native
from logspool.adoption import _adopt, _bound_fields, _descriptions, _formatters
from logspool.base import _options, _stock_classes

#: Methods of a handler that take part in making the line or entry of a record.
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

#: Methods of a formatter that take part in making an entry.
_FORMATTER_CALLED = ("formatException", "formatStack", "__getattribute__", "__getattr__")


def file(name: str, path: Any) -> str | None:
    """Return the absolute path of a readable file. Its content is checked only when a connection is made."""
    if path is None:
        return None
    absolute = _options.absolute(name, path)
    with open(absolute, "rb"):
        return absolute


def describe_format(handler: Any, known: type) -> _descriptions.Format:
    """Describe how the entries of a handler are made."""
    formatter = handler.formatter or logging._defaultFormatter  # type: ignore[attr-defined]
    types = ((type(formatter), _native.class_state(type(formatter))),)
    parts = ((formatter, _native.watch_part(formatter)),)
    form: _descriptions.Formatting | str | None = _reason(handler, known, formatter)
    if form is None:
        form = _descriptions.Formatting("entry", "", None, "", None, False, [], True)
    return _descriptions.Format(form, types, parts)


def _reason(handler: Any, known: type, formatter: Any) -> str | None:
    """Return why only Python can make the entries of this handler, or None if the collector can make them."""
    reason = customised(handler, known, (*CALLED, "_entry"))
    if reason is not None:
        return reason
    if not isinstance(formatter, logging.Formatter):
        return f"{type(formatter).__qualname__} is no logging.Formatter"
    reason = _stock_classes.changed_method(type(formatter), logging.Formatter, _FORMATTER_CALLED)
    if reason is not None:
        return reason
    for name in _FORMATTER_CALLED:
        if name in vars(formatter):
            return f"{name} is replaced on the formatter"
    return _formatters.unfilled("lineno thread processName process taskName")


def customised(handler: Any, known: type, called: tuple[str, ...]) -> str | None:
    """Return the method or attribute of a handler that keeps the collector from making its lines, or None."""
    cls = type(handler)
    changed = _stock_classes.changed_method(cls, known, called) or _stock_classes.defined_on_class(cls, _READ)
    return changed or _adopt.changed_handler(handler, called)


def _host() -> str:
    """Return the name of this machine, also on a system without `os.uname`."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform

    return platform.node()


def entry(record: logging.LogRecord, formatter: Any) -> bytes:
    """Return the entry of a record."""
    default = logging._defaultFormatter  # type: ignore[attr-defined]
    own = _bound_fields.reserved_names()
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
        ("host", _host()),
        ("message", record.getMessage()),
        ("process_name", record.processName),
        ("thread", record.thread),
        ("thread_name", record.threadName),
        ("task", getattr(record, "taskName", None) if "taskName" in own else None),
        ("exception", record.exc_text or None),
        ("stack", stack or None),
    ]
    parts = [(name, value) for name, value in parts if value is not None]
    parts += [(name, value) for name, value in record.__dict__.items() if name not in own]
    return _native.entry(record.created, parts)
