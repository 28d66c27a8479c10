"""Inspect loggers, handlers and formatters, and decide which of them native code can replace.

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
import threading
import time
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, TypeVar

Answer = TypeVar("Answer")

#: Guards planning. The lock is reentrant, because a signal handler may log while a plan is made. A forked child makes a
#: new lock.
lock = threading.RLock()

#: Held while logspool is installed or uninstalled, and taken before `lock`. It is a separate lock, because
#: `uninstall()` waits for the lock of a handler, whose holder may wait for a plan.
installing = threading.RLock()

#: (class, name) -> (native replacement, stock function), filled by `_install`.
replaced: dict[tuple[type, str], tuple[Any, Any]] = {}

#: All native methods ever made, in the form of `replaced`. A program may patch a class while logspool is installed and
#: restore the class after `uninstall()`. It then restores a native method. That method does the same as its stock
#: function, so it is treated as the stock function.
made: dict[tuple[type, str], tuple[Any, Any]] = {}

#: The native methods of logspool's own classes, in the form of `replaced`. They are never removed; filled by
#: `_handlers`.
own: dict[tuple[type, str], tuple[Any, Any]] = {}


class Formatting(NamedTuple):
    """A formatter whose format the collector can apply."""

    style: str
    template: str
    datefmt: str | None
    default_time_format: str
    default_msec_format: str | None
    utc: bool
    fields: list[tuple[str, str]]
    extras: bool
    #: Level names of this formatter; None means the names of `logging`.
    level_names: list[tuple[int, str]] | None = None


class Format(NamedTuple):
    """How the lines of a handler are formatted, and the objects that determine this."""

    #: The formatting, or the reason why only Python can format the lines.
    form: Formatting | str
    #: Classes of formatter and style, each with the result of `_native.class_state` from before the class was
    #: inspected.
    types: tuple[tuple[type, int], ...]
    #: Formatter and style, each with the result of `_native.watch_part` from before the object was inspected.
    parts: tuple[tuple[Any, int], ...]


class Adoption(NamedTuple):
    """A handler whose output can go through the queue."""

    #: Name of the sink in the core's table of sinks.
    kind: str
    #: Options of the sink. The options of "console" follow from `path` and `fd`.
    options: dict[str, Any]
    path: str
    fd: int
    terminator: str
    stream: Any
    buffer: Any
    errors: str
    interactive: bool
    format: Format
    watched: _streams.Watched


class Refusal(NamedTuple):
    """A handler whose output must be written by stock logging."""

    #: "foreign", or "unopened" if the refusal ends when the handler's first record opens its file.
    kind: str
    reason: str
    watched: _streams.Watched


class LoggingGlobals(NamedTuple):
    """Settings of `logging` that apply to all loggers."""

    reason: str
    level_names: list[tuple[int, str]]
    start_time_ns: int
    arithmetic: str
    shows_process: bool


# ---------------------------------------------------------------------------------------------------------------
# Checks that a class is unchanged since the standard library defined it.
# ---------------------------------------------------------------------------------------------------------------


def is_stock(cls: type, name: str) -> bool:
    """Return whether `cls.__dict__[name]` is the standard library's function or logspool's replacement for it."""
    value = cls.__dict__.get(name)
    for ours in (replaced, own, made):
        known = ours.get((cls, name))
        if known is not None and value is known[0]:
            return True
    if isinstance(value, FunctionType):
        code = value.__code__
        home = sys.modules.get(cls.__module__)
        return code.co_filename == getattr(home, "__file__", None) and value.__qualname__.endswith("." + name)
    return False


def native_method(cls: type, owner: str, name: str) -> tuple[Any, Any] | None:
    """Return the native method for `cls.name` and the stock function it replaces; None if the stock one is patched."""
    if not is_stock(cls, name):
        return None
    value = cls.__dict__[name]
    known = made.get((cls, name))
    if known is None or value not in known:
        known = made[cls, name] = (_native.native_method(cls, owner, name, value), value)
    return known


def kept_answer(ask: Callable[[type], Answer]) -> Callable[[type], Answer]:
    """Keep the answer of `ask` about a class until the class, its bases or logspool's methods change."""
    answers: dict[int, tuple[int, Answer]] = {}

    def answer(cls: type, /) -> Answer:
        # The state is read first: a later change makes the answer stale, not wrong. No two classes have the same state.
        state = _native.class_state(cls)
        kept = answers.get(id(cls))
        if kept is not None and kept[0] == state != 0:
            return kept[1]
        if len(answers) >= _MOST_CLASSES:
            answers.clear()
        found = ask(cls)
        answers[id(cls)] = state, found
        return found

    return answer


#: Maximum number of classes whose answers are kept.
#:
#: Chosen: programs have a dozen such classes. A program that keeps making classes must not fill the memory.
_MOST_CLASSES = 256


def changed_method(cls: type, base: type, names: tuple[str, ...]) -> str | None:
    """Return the first of `names` that `cls` overrides instead of inheriting it from `base` or its bases."""
    for name in names:
        for owner in cls.__mro__:
            if name in owner.__dict__:
                break
        else:
            continue
        if owner not in base.__mro__:
            return f"{owner.__qualname__}.{name} is overridden"
        if not is_stock(owner, name) and not _is_plain_slot(owner, name):
            return f"{owner.__qualname__}.{name} is patched"
    return None


def first_in(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` in an object's own attributes. Other threads may change them during the search."""
    return next(filter(attributes.__contains__, names), None)


def defined_on_class(cls: type, names: tuple[str, ...]) -> str | None:
    """Return the first attribute that only an instance should have but that is defined on a class; None if there is
    none."""
    for owner in cls.__mro__:
        for name in names:
            if name in owner.__dict__:
                return f"{owner.__qualname__}.{name} is defined on the class"
    return None


def changed_handler(handler: Any, called: tuple[str, ...]) -> str | None:
    """Return the method that is replaced on the handler itself, or say that its lock has another type; None if
    neither."""
    name = first_in(vars(handler), called)
    if name is not None:
        return f"{name} is replaced on the handler"
    # A lock of another type may protect the output from other code. Before 3.13 a handler may have no lock.
    if type(handler.lock) is not _Lock and not (handler.lock is None and sys.version_info < (3, 13)):
        return f"its lock is a {type(handler.lock).__qualname__}"
    return None


def _is_plain_slot(owner: type, name: str) -> bool:
    # Methods such as `object.__setattr__` are slot wrappers of the type `object`.
    return owner is object and name.startswith("__")


# ---------------------------------------------------------------------------------------------------------------
# Loggers
# ---------------------------------------------------------------------------------------------------------------

#: Methods that the stock path of a logging call runs on the logger. `isEnabledFor` must be first, also in the list of
#: reasons: native code learns from the reasons whether it may check the level itself.
_LOGGER_CALLED = (
    "isEnabledFor",
    "_log",
    "findCaller",
    "makeRecord",
    "handle",
    "filter",
    "callHandlers",
    "getEffectiveLevel",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)

#: Plain instance attributes that the stock path reads; a property of such a name could return any value.
_LOGGER_READ = ("name", "level", "parent", "propagate", "handlers", "disabled", "filters", "_cache")

#: Names of methods that a logger instance can override with attributes of its own.
logger_methods = ["_log", "findCaller", "makeRecord", "handle", "filter", "callHandlers", "isEnabledFor"]


@kept_answer
def classify_logger(cls: type) -> str:
    """Return why calls of loggers of this class must stay on the stock path, or an empty string."""
    reason = changed_method(cls, logging.RootLogger, _LOGGER_CALLED)
    if reason is None:
        reason = changed_method(cls, logging.Logger, _LOGGER_CALLED) if cls is not logging.RootLogger else None
    return reason or defined_on_class(cls, _LOGGER_READ) or ""


# ---------------------------------------------------------------------------------------------------------------
# Handlers
# ---------------------------------------------------------------------------------------------------------------

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

#: The type of the lock that `createLock` makes.
_Lock = type(threading.RLock())

#: Known classes, most derived first; `_rotation` has the classes of `logging.handlers`.
_KNOWN_HANDLERS: tuple[type, ...] = (logging.FileHandler, logging.StreamHandler)

#: logspool's own handler classes, filled by `_handlers`.
own_handlers: list[type] = []


class SharedRotation:
    """Base of logspool's own rotating handlers. Several processes rotate the file of such a handler."""

    _compress: str | None = None

    @property
    def compress(self) -> str | None:
        """Return the compression of backups: "gzip", "zstd", or None."""
        return self._compress


def describe(handler: Any) -> Adoption | Refusal | str:
    """Describe a handler, or return why stock logging must write its output."""
    # The state is read first: a later change makes the answer stale, not wrong.
    watched = _streams.watched(getattr(handler, "stream", None))
    answer = _describe(handler, watched)
    if isinstance(answer, str) and watched:
        return Refusal("foreign", answer, watched)
    return answer


def _describe(handler: Any, watched: _streams.Watched) -> Adoption | Refusal | str:
    cls = type(handler)
    of_class = _handler_class(cls)
    if isinstance(of_class, str):
        _queueing.replace(handler)
        return of_class
    known, turning, called = of_class
    if not issubclass(known, logging.StreamHandler):
        return sys.modules["logspool._sinks"].describe(handler, known)  # type: ignore[no-any-return]
    reason = changed_handler(handler, called)
    if reason is not None:
        return reason
    terminator = handler.terminator
    if type(terminator) is not str or not _encodes(terminator):
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
        known = next((base for base in (*own_handlers, *_KNOWN_HANDLERS) if issubclass(cls, base)), None)
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


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


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
        format=_describe_format(handler, known),
        watched=watched,
    )


def describe_format(handler: Any) -> Format:
    """Describe how the lines of an adopted handler are made."""
    known: Any = _handler_class(type(handler))[0]
    if not issubclass(known, logging.StreamHandler):
        return sys.modules["logspool._sinks"].describe_format(handler, known)  # type: ignore[no-any-return]
    return _describe_format(handler, known)


def _describe_format(handler: Any, known: Any) -> Format:
    return describe_format_of(handler.formatter or _formatter_without_one(handler, known))


def describe_format_of(formatter: Any) -> Format:
    """Describe how the lines of a formatter are made."""
    # Each part is watched before it is inspected: a later change makes the answer stale, not wrong.
    parts: tuple[tuple[Any, int], ...] = ((formatter, _native.watch_part(formatter)),)
    types: tuple[tuple[type, int], ...] = ((type(formatter), _native.class_state(type(formatter))),)
    style = getattr(formatter, "_style", None)
    if style is not None:
        parts += ((style, _native.watch_part(style)),)
        types += ((type(style), _native.class_state(type(style))),)
    return Format(describe_formatter(formatter), types, parts)


def _formatter_without_one(handler: Any, known: type) -> Any:
    if known in own_handlers and not issubclass(known, logging.FileHandler):
        pretty = sys.modules["logspool._pretty"].formatter_for(handler.stream)
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


# ---------------------------------------------------------------------------------------------------------------
# Formatters
# ---------------------------------------------------------------------------------------------------------------

_FORMATTER_CALLED = (
    "format",
    "formatTime",
    "formatException",
    "formatMessage",
    "formatStack",
    "usesTime",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)

_STYLE_CALLED = ("usesTime", "_format", "format", "__getattribute__", "__getattr__", "__setattr__", "__delattr__")

#: Attributes that an instance of a known style must not have of its own.
_STYLE_OWN = (*_STYLE_CALLED, "asctime_format", "asctime_search")

_STYLES = {
    logging.PercentStyle: ("%", "%(asctime)s", "%(asctime)"),
    logging.StrFormatStyle: ("{", "{asctime}", "{asctime"),
    logging.StringTemplateStyle: ("$", "${asctime}", "${asctime}"),
}


def describe_formatter(formatter: Any) -> Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    base = _formatter_class(type(formatter))
    if isinstance(base, str):
        return base
    name = first_in(vars(formatter), _FORMATTER_CALLED)
    if name is not None:
        return f"{name} is replaced on the formatter"
    zone = _zone(formatter)
    if isinstance(zone, str):
        return zone
    if not _is_real_time("strftime"):
        return "time.strftime is patched"
    datefmt, time_format, msec_format = formatter.datefmt, formatter.default_time_format, formatter.default_msec_format
    if datefmt is not None and type(datefmt) is not str:
        return "its datefmt is no plain text"
    if type(time_format) is not str or not (msec_format is None or type(msec_format) is str):
        return "its default time format is no plain text"
    if base is not logging.Formatter:
        return formatter._native_formatting(Formatting, zone)  # type: ignore[no-any-return]
    return _describe_style(formatter, datefmt, time_format, msec_format, zone)


@kept_answer
def _formatter_class(cls: type) -> type | str:
    """Return the known class that a formatter's class is or derives from, or a reason."""
    if not issubclass(cls, logging.Formatter):
        return f"{cls.__qualname__} is no logging.Formatter"
    base: type = logging.Formatter
    for module, name in (("logspool._json", "JSONFormatter"), ("logspool._pretty", "TerminalFormatter")):
        if module in sys.modules and issubclass(cls, getattr(sys.modules[module], name)):
            base = getattr(sys.modules[module], name)
    return changed_method(cls, base, _FORMATTER_CALLED) or base


@kept_answer
def _style_class(cls: type) -> str | None:
    return changed_method(cls, cls, _STYLE_CALLED)


def _describe_style(
    formatter: Any, datefmt: str | None, time_format: str, msec_format: str | None, utc: bool
) -> Formatting | str:
    style = formatter._style
    cls = type(style)
    known = _STYLES.get(cls)
    if known is None:
        return f"{cls.__qualname__} is no known style"
    reason = _style_class(cls)
    if reason is not None:
        return reason
    sign, asctime_format, asctime_search = known
    if first_in(vars(style), _STYLE_OWN) is not None:
        return "a method of its style is replaced"
    if style.asctime_format != asctime_format or style.asctime_search != asctime_search:
        return "the way its style finds asctime is patched"
    template = style._fmt
    if type(template) is not str or not _encodes(template):
        return "its format is no plain text"
    if getattr(style, "_defaults", None):
        return "its format has defaults"
    if sign == "$":
        from string import Template

        held = style._tpl
        if type(held) is not Template or held.template != template:
            return "its template is not the one of its format"
    reason = _shown(template)
    if reason is not None:
        return reason
    return Formatting(sign, template, datefmt, time_format, msec_format, utc, [], False)


def _shown(template: str) -> str | None:
    """Return why only Python can fill in this template, or None. In doubt, the check chooses Python."""
    if any(word in template for word in ("lineno", "funcName", "filename", "pathname", "module")):
        if not logging._srcfile:
            return "logging._srcfile is off"
    if "thread" in template and not logging.logThreads:
        return "logging.logThreads is off"
    if "processName" in template and not logging.logMultiprocessing:
        return "logging.logMultiprocessing is off"
    if "process" in template and os.getpid is not _getpid:
        return "os.getpid is patched"
    if "thread" in template and (
        threading.get_ident is not _get_ident or threading.current_thread is not _current_thread
    ):
        return "threading.get_ident or current_thread is patched"
    if "taskName" in template and not getattr(logging, "logAsyncioTasks", True):
        return "logging.logAsyncioTasks is off"
    return None


def _zone(formatter: Any) -> bool | str:
    converter = formatter.converter
    if converter is _localtime:
        return False
    if converter is _gmtime:
        return True
    return "its converter is neither time.localtime nor time.gmtime"


# ---------------------------------------------------------------------------------------------------------------
# The globals of `logging`
# ---------------------------------------------------------------------------------------------------------------

_localtime = time.localtime
_gmtime = time.gmtime
_getpid = os.getpid
_get_ident = threading.get_ident
_current_thread = threading.current_thread

#: Names in `logging` that a stock call reads.
LOGGING_NAMES = (
    "_logRecordFactory",
    "LogRecord",
    "_srcfile",
    "time",
    "os",
    "sys",
    "threading",
    "collections",
    "logThreads",
    "logProcesses",
    "logMultiprocessing",
    "logAsyncioTasks",
    "getLevelName",
    "_levelToName",
    "_defaultFormatter",
    "_startTime",
    "currentframe",
    "_is_internal_frame",
    "raiseExceptions",
    "lastResort",
    "_lock",
)
TIME_NAMES = ("time", "time_ns", "strftime", "localtime", "gmtime")
THREADING_NAMES = ("get_ident", "current_thread", "_active", "Thread")

RECORD_CALLED = ("__init__", "getMessage", "__getattribute__", "__getattr__", "__setattr__", "__delattr__")


def _is_real_time(name: str) -> bool:
    function = getattr(time, name, None)
    return type(function) is BuiltinFunctionType and function.__module__ == "time" and function.__name__ == name


def _is_logging_function(name: str) -> bool:
    function = getattr(logging, name, None)
    return isinstance(function, FunctionType) and function.__code__.co_filename == _source_file


_source_file = os.path.normcase(logging.addLevelName.__code__.co_filename)


def logging_globals() -> LoggingGlobals:
    """Read the settings of `logging` that apply to all loggers."""
    level_names = []
    reason = _globals_reason()
    for number, name in list(logging._levelToName.items()):
        # An `IntEnum` member counts as an int too: a lookup by number finds its name.
        if not isinstance(number, int) or not 0 <= number <= 0xFFFF:
            continue
        if type(name) is not str or not _encodes(name):
            reason = reason or f"the name of level {number} is no plain text"
            continue
        level_names.append((int(number), name))
    start = logging._startTime  # type: ignore[attr-defined]
    return LoggingGlobals(
        reason=reason,
        level_names=sorted(level_names),
        start_time_ns=start if isinstance(start, int) else _nanoseconds(start),
        arithmetic=_arithmetic(),
        shows_process=bool(logging.logProcesses),
    )


def _nanoseconds(seconds: float) -> int:
    # The ratio is exact, so dividing it by 1e9 gives the same float again.
    numerator, denominator = seconds.as_integer_ratio()
    return (numerator * 1_000_000_000 * 2 + denominator) // (denominator * 2)


def _globals_reason() -> str:
    if logging._logRecordFactory is not logging.LogRecord:  # type: ignore[attr-defined]
        return "logging.setLogRecordFactory was called"
    if type(logging._levelToName) is not dict:
        return "logging._levelToName is no plain dict"
    changed = changed_method(logging.LogRecord, logging.LogRecord, RECORD_CALLED)
    if changed is not None or logging.LogRecord.__module__ != "logging":
        return changed or "logging.LogRecord is replaced"
    for name in ("getLevelName", "currentframe"):
        if not _is_logging_function(name):
            return f"logging.{name} is patched"
    if hasattr(logging, "_is_internal_frame") and not _is_logging_function("_is_internal_frame"):
        return "logging._is_internal_frame is patched"
    for name, module in (("time", time), ("os", os), ("sys", sys), ("threading", threading)):
        if getattr(logging, name) is not module:
            return f"logging.{name} is patched"
    for name in ("time", "time_ns"):
        if not _is_real_time(name):
            return f"time.{name} is patched"
    if logging._srcfile and logging._srcfile != _source_file:
        return "logging._srcfile was changed"
    return ""


def _arithmetic() -> str:
    """Return which of the three methods of CPython 3.10 to 3.14 computes `LogRecord.msecs`."""
    global _arithmetic_found
    if _arithmetic_found is None:
        names = logging.LogRecord.__init__.__code__.co_names
        if "time_ns" in names:
            _arithmetic_found = "nanoseconds"
        else:
            constants = logging.LogRecord.__init__.__code__.co_consts
            _arithmetic_found = "float whole" if 0.0 in constants and _adds_zero(constants) else "float fraction"
    return _arithmetic_found


def _adds_zero(constants: tuple[Any, ...]) -> bool:
    return any(type(constant) is float and constant == 0.0 for constant in constants)


_arithmetic_found: str | None = None

# These imports are last, because the modules import this module in turn.
from logspool import _native, _queueing, _rotation, _streams  # noqa: E402

__all__ = [
    "LOGGING_NAMES",
    "THREADING_NAMES",
    "TIME_NAMES",
    "classify_logger",
    "describe",
    "lock",
    "logger_methods",
    "logging_globals",
    "open_streams",
    "replaced",
]


def note_truncation(handler: Any) -> None:
    """Note that a handler has truncated its file, so records that an earlier program left for the file are obsolete."""
    path, mode = getattr(handler, "baseFilename", None), getattr(handler, "mode", None)
    if type(path) is str and type(mode) is str and mode.startswith("w") and getattr(handler, "stream", None):
        _native.opened_anew(path)
