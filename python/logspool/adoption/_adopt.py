"""Inspect handlers, and decide which of them native code can replace.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Nothing in this module changes anything. Each function
returns a description or a reason. Native code (`crates/logspool-python/src/plans/planning.rs`) keeps the result until
something that it was made from changes. The functions are called inside logging calls, with the planning lock held, so
they take no locks and log nothing.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import stat
import sys
import types

from logspool import _native
from logspool.adoption import _handler_formats, _logging_globals, _own_classes, _queueing, _rotation, _streams
from logspool.adoption._descriptions import Adoption, Format, Refusal
from logspool.base import _locks
from logspool.base._stock_classes import changed_method, defined_on_class, first_in, is_stock, kept_answer

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def changed_handler(handler: Any, called: tuple[str, ...]) -> str | None:
    """Return the method that is replaced on the handler itself, or say that its lock has another type; None if
    neither."""
    own = vars(handler)
    if _is_flush_of_stream(handler, own.get("flush")):
        called = tuple(name for name in called if name != "flush")
    name = first_in(own, called)
    if name is not None:
        return f"{name} is replaced on the handler"
    # A lock of another type may protect the output from other code. Before 3.13 a handler may have no lock.
    if not _locks.is_usual(handler.lock) and not (handler.lock is None and sys.version_info < (3, 13)):
        return f"its lock is a {type(handler.lock).__qualname__}"
    return None


def _is_flush_of_stream(handler: Any, flush: Any) -> bool:
    """Return whether a handler got its stream's own method `flush`, as by transformers and other libraries.

    It does what the handler's method does, and the queue needs neither.
    """
    stream = getattr(handler, "stream", None)
    return (
        type(stream) is io.TextIOWrapper
        and type(flush) is types.BuiltinMethodType
        and flush.__self__ is stream
        and flush.__name__ == "flush"
    )


_HANDLER_CALLED = (
    "handle",
    "emit",
    "format",
    "filter",
    "flush",
    "acquire",
    "release",
    "handleError",
    "createLock",
    "_open",
    "close",
    "setStream",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)

_HANDLER_READ = ("level", "formatter", "filters", "stream", "lock", "baseFilename", "mode", "encoding", "errors")

#: Known classes, most derived first; `_rotation` has the classes of `logging.handlers`.
_KNOWN_HANDLERS: tuple[type, ...] = (logging.FileHandler, logging.StreamHandler)


def describe(handler: Any) -> Adoption | Refusal | None:
    """Describe a handler, or return why stock logging must write its output; None for one that writes nothing."""
    # The state is read first: a later change makes the answer stale, not wrong.
    watched = _streams.watched(getattr(handler, "stream", None))
    answer = _describe(handler, watched)
    if isinstance(answer, str):
        return None if answer == "null" else Refusal("foreign", answer, watched, _may_print(handler))
    return answer


#: Packages whose handlers print nothing: they collect records, or send them somewhere.
_SILENT_PACKAGES = ("_pytest", "azure", "ddtrace", "google", "logging", "logspool", "opentelemetry", "sentry_sdk")


def _may_print(handler: Any) -> bool:
    """Return whether the Python code of a handler may print to the stream of another handler."""
    owner = next((cls for cls in type(handler).__mro__ if "emit" in cls.__dict__), logging.Handler)
    if owner is logging.StreamHandler:
        # A `TextIOWrapper` is compared with the other streams at each record. Other objects may wrap one.
        return not isinstance(handler.stream, (io.StringIO, io.TextIOWrapper, type(None)))
    if isinstance(getattr(handler, "stream", None), io.StringIO):
        return False
    return owner.__module__.partition(".")[0] not in _SILENT_PACKAGES


def _describe(handler: Any, watched: _streams.Watched) -> Adoption | Refusal | str:
    _queueing.replace_listener()
    cls = type(handler)
    of_class = _handler_class(cls)
    if isinstance(of_class, str):
        _queueing.replace(handler)
        return of_class
    known: Any
    known, turning, called = of_class
    if not issubclass(known, logging.StreamHandler):
        return known._described(handler, known)  # type: ignore[no-any-return]
    reason = changed_handler(handler, called)
    if reason is not None:
        return reason
    terminator = handler.terminator
    if type(terminator) is not str or not _logging_globals.encodes(terminator):
        return "its terminator is no plain text"
    if handler.stream is None and issubclass(cls, logging.FileHandler):
        opens = handler.mode != "w" or not handler._closed
        return Refusal("unopened" if opens else "foreign", "its stream is not open yet", ())
    return _describe_stream(handler, cls, known, terminator, turning, watched)


@kept_answer
def _handler_class(cls: type) -> tuple[type, str | None, tuple[str, ...]] | str:
    """Return the known base class of `cls`, its kind of rotation, and the methods that run; or a reason to refuse
    it."""
    if cls is logging.NullHandler and is_stock(cls, "handle"):
        return "null"
    turning = _rotation.known_class(cls)
    called: tuple[str, ...] = _HANDLER_CALLED
    read: tuple[str, ...] = _HANDLER_READ
    if turning is not None:
        known: type | None = turning[0]
        called, read = called + _rotation.CALLED, read + _rotation.READ
    else:
        known = next((base for base in (*_own_classes.own_handlers, *_KNOWN_HANDLERS) if issubclass(cls, base)), None)
    if known is None:
        return f"{cls.__qualname__} is no known handler class"
    if not issubclass(known, logging.StreamHandler):
        return known, None, ()
    reason = changed_method(cls, known, called)
    if reason is not None:
        return reason
    # `FileHandler.emit` calls `StreamHandler.emit` by its class name; `emit` of a subclass ends in one of the two.
    for base in (logging.FileHandler, logging.StreamHandler):
        if issubclass(cls, base) and not is_stock(base, "emit"):
            return f"{base.__qualname__}.emit is patched"
    return defined_on_class(cls, read) or (known, None if turning is None else turning[1], called)


def open_streams(logger: Any, level: int) -> None:
    """Open the files that a record of this level would open: of handlers made with `delay`, or closed before."""
    while logger is not None:
        for handler in list(logger.handlers):
            if level >= handler.level and getattr(describe(handler), "kind", None) == "unopened":
                handler.acquire()
                try:
                    if handler.stream is None:
                        handler.stream = handler._open()
                finally:
                    handler.release()
        logger = logger.parent if logger.propagate else None


def _describe_stream(
    handler: Any, cls: type, known: type, terminator: str, turning: str | None, watched: _streams.Watched
) -> Adoption | str:
    stream = handler.stream
    if type(stream) is not io.TextIOWrapper:
        return f"its stream is a {type(stream).__qualname__}, no file"
    try:
        if stream.closed:
            return "its stream is closed"
        buffer = stream.buffer
        raw = buffer if type(buffer) is io.FileIO else getattr(buffer, "raw", None)
        if type(raw) is not io.FileIO or type(buffer) not in (io.BufferedWriter, io.BufferedRandom, io.FileIO):
            return f"its stream writes to a {type(buffer).__qualname__}"
        if not raw.writable():
            return "its stream is not open for writing"
        if not watched:
            return "its stream cannot be watched on this Python"
        for layer in (stream, buffer, raw):
            replaced = _streams.replaced_attribute(layer)
            if replaced is not None:
                return f"{replaced} is replaced on its stream"
        fd = raw.fileno()
        status = os.fstat(fd)
        encoding = codecs.lookup(stream.encoding).name
        errors = stream.errors
    except (OSError, ValueError, LookupError, AttributeError) as error:
        return f"its stream cannot be asked: {error}"
    if encoding != "utf-8":
        return f"its stream encodes to {encoding}, not UTF-8"
    is_file = issubclass(known, logging.FileHandler)
    if _streams.translates_newlines(stream):
        return "its stream translates newlines"
    kind = "file" if stat.S_ISREG(status.st_mode) else "console"
    path = getattr(handler, "baseFilename", None)
    if kind == "file" and not (type(path) is str and is_file):
        path = _path_of(fd)
        if path is None:
            return "its file has no name"
    if is_file:
        note_truncation(handler)
    interactive = kind == "console" and os.isatty(fd)
    options: dict[str, Any] = {"path": path}
    if turning is not None:
        described = _rotation.describe(handler, turning, errors or "strict")
        if isinstance(described, str):
            return described
        if kind == "file":
            kind, options = turning, {"path": path, **described}
        elif turning != "rotating":
            return "its path is no regular file"
    return Adoption(
        kind=kind,
        options=options,
        path=path or "",
        fd=fd,
        terminator=terminator,
        stream=stream,
        buffer=None if buffer is raw or type(buffer) is not io.BufferedWriter else buffer,
        errors=errors or "strict",
        interactive=interactive,
        is_stream=not is_file,
        format=_describe_format(handler, known),
        watched=watched,
    )


def describe_format(handler: Any) -> Format:
    """Describe how the lines of an adopted handler are made."""
    known: Any = _handler_class(type(handler))[0]
    if not issubclass(known, logging.StreamHandler):
        return known._described_format(handler, known)  # type: ignore[no-any-return]
    return _describe_format(handler, known)


def _describe_format(handler: Any, known: Any) -> Format:
    return _handler_formats.describe_format_of(handler.formatter or _formatter_without_one(handler, known), handler)


def _formatter_without_one(handler: Any, known: Any) -> Any:
    if known in _own_classes.own_handlers and not issubclass(known, logging.FileHandler):
        pretty = known._formatter_without_one(handler.stream)
        if pretty is not None:
            return pretty
    return logging._defaultFormatter  # type: ignore[attr-defined]


def _path_of(fd: int) -> str | None:
    try:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.samestat(os.stat(path), os.fstat(fd)):
            return path
    except OSError:
        pass
    return None


def note_truncation(handler: Any) -> None:
    """Note that a handler has truncated its file, so records that an earlier program left for the file are obsolete."""
    path, mode = getattr(handler, "baseFilename", None), getattr(handler, "mode", None)
    if type(path) is str and type(mode) is str and mode.startswith("w") and getattr(handler, "stream", None):
        _native.opened_anew(path)
