"""Facts about the standard library's `QueueHandler`, for the native methods `prepare` and `handle`.

Programs that log through `QueueHandler` and `QueueListener` spend most of their logging time in these classes. The
native methods are used only for objects of the standard library, and only if the result is the same. To check this,
`prepare` is called once with a sample record.
"""

from __future__ import annotations

import copy
import copyreg
import logging
import sys
from types import SimpleNamespace

from logspool import _native
from logspool.adoption import _formatters, _logging_globals
from logspool.base import _locks, _stock_classes

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Methods that would change how `copy.copy` copies a record.
_COPYING = (
    "__copy__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__slots__",
)

_FORMAT = "%(message)s"

_NAME = "prepare"

#: Methods that `Handler.handle` runs on a `QueueHandler`.
_HANDLER_CALLED = ("handle", "filter", "acquire", "release", "__getattribute__")
_QUEUE_HANDLER_CALLED = ("emit", "enqueue", "prepare")


def replace(handler: Any) -> None:
    """Put the native `prepare` into `QueueHandler` if `handler` is one, once per `install()`."""
    handlers: Any = sys.modules.get("logging.handlers")
    cls: Any = getattr(handlers, "QueueHandler", None)
    if not isinstance(cls, type) or not isinstance(handler, cls):
        return
    # This function also runs without `install()`, when a handler is described. Then nothing is replaced.
    if (
        not _stock_classes.replaced
        or (cls, _NAME) in _stock_classes.replaced
        or not _stock_classes.is_stock(cls, _NAME)
    ):
        return
    known = _stock_classes.native_methods.get((cls, _NAME))
    cleared = _cleared(cls.__dict__[_NAME] if known is None else known[1])
    if cleared is None:
        return
    made = _stock_classes.native_method(cls, "QueueHandler", _NAME)
    if made is None:
        return
    lock, queues = _locks.RLOCK, [handlers.queue.Queue, handlers.queue.SimpleQueue]
    _native.set_queue_prepare(_describe, cls, cleared, copyreg.dispatch_table, lock, queues)
    _stock_classes.replaced[cls, _NAME] = made
    setattr(cls, _NAME, made[0])


def replace_listener() -> None:
    """Put the native `handle` and `dequeue` into `QueueListener` if the program has imported it."""
    cls: Any = getattr(sys.modules.get("logging.handlers"), "QueueListener", None)
    # This function also runs without `install()`, when a handler is described. Then nothing is replaced.
    if not isinstance(cls, type) or not _stock_classes.replaced:
        return
    for name in ("handle", "dequeue"):
        if (cls, name) not in _stock_classes.replaced:
            made = _stock_classes.native_method(cls, "QueueListener", name)
            if made is not None:
                _stock_classes.replaced[cls, name] = made
                setattr(cls, name, made[0])


def _cleared(prepare: Any) -> list[str] | None:
    """Return the attributes that `prepare` sets to None, or None if `prepare` does anything unexpected."""
    record = logging.LogRecord("name", logging.INFO, "path", 1, "%s", ("text",), None, "function", "stack")
    record.exc_text, record.exc_info = "exception", (None, None, None)
    before = dict(vars(record))
    try:
        prepared = prepare(SimpleNamespace(format=lambda record: "text"), record)
    except Exception:
        return None
    if type(prepared) is not logging.LogRecord or prepared is record or vars(record) != before:
        return None
    after = dict(vars(prepared))
    cleared = [name for name, value in before.items() if value is not None and after[name] is None]
    expected = {**before, "msg": "text", "message": "text", **dict.fromkeys(cleared)}
    return cleared if after == expected and "args" in cleared else None


def _describe() -> tuple[bool, bool, list[Any], list[Any]]:
    """Return whether records are formatted and copied, and whether they are passed on, as in the standard library.

    The other two values are the classes on which these answers depend, and the objects on whose attributes they depend.
    """
    handlers = sys.modules["logging.handlers"]
    formatter: Any = logging._defaultFormatter  # type: ignore[attr-defined]
    style = getattr(formatter, "_style", None)
    classes = [handlers.QueueHandler, logging.LogRecord, type(formatter), type(style)]
    form = _formatters.describe_formatter(formatter)
    is_plain = (
        not isinstance(form, str)
        and (form.style, form.template, dict(form.own_texts)) == ("%", _FORMAT, {})
        and _stock_classes.changed_method(handlers.QueueHandler, logging.Handler, ("format",)) is None
        and _stock_classes.changed_method(logging.LogRecord, logging.LogRecord, _logging_globals.RECORD_CALLED) is None
        and logging.LogRecord.__new__ is object.__new__
        and not any(name in logging.LogRecord.__dict__ for name in _COPYING)
        and logging.LogRecord not in getattr(copy, "_copy_dispatch", {})
    )
    hands_on = (
        is_plain
        and _stock_classes.changed_method(handlers.QueueHandler, logging.Handler, _HANDLER_CALLED) is None
        and _stock_classes.changed_method(handlers.QueueHandler, handlers.QueueHandler, _QUEUE_HANDLER_CALLED) is None
    )
    return is_plain, hands_on, classes, [formatter, style]
