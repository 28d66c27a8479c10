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
import types
from collections.abc import Mapping
from types import MappingProxyType

from logspool import _imports, _locks, _logging_globals
from logspool._stock_classes import changed_method, defined_on_class, first_in, is_stock, kept_answer
from logspool._tuples import NamedTuple

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Guards planning. The lock is reentrant, because a signal handler may log while a plan is made. A forked child makes a
#: new lock.
lock = _locks.guard()

#: Held while logspool is installed or uninstalled, and taken before `lock`. It is a separate lock, because
#: `uninstall()` waits for the lock of a handler, whose holder may wait for a plan.
installing = _locks.guard()


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
    #: What the style needs more: a description of `logspool.known`.
    known: Any = None
    #: Names and reasons of methods that native code calls for single texts, see `_own_texts`.
    own_texts: Mapping[str, str] = MappingProxyType({})


class Format(NamedTuple):
    """How the lines of a handler are formatted, and the objects that determine this."""

    #: The formatting, or the reason why only Python can format the lines.
    form: Formatting | str
    #: Classes of formatter and style, each with the result of `_native.class_state` from before the class was
    #: inspected.
    types: tuple[tuple[type, int], ...]
    #: Formatter and style, each with the result of `_native.watch_part` from before the object was inspected.
    parts: tuple[tuple[Any, int], ...]
    #: Words of dicts that the formatter reads; see `_streams`.
    watched: _streams.Watched = ()
    #: The `_deferring.Deferral` that formats the records later; None if they are formatted at once.
    deferral: Any = None


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
    #: Whether the program may print to the same stream: the handler is no `FileHandler`.
    is_stream: bool
    format: Format
    watched: _streams.Watched


class Refusal(NamedTuple):
    """A handler whose output must be written by stock logging."""

    #: "foreign", or "unopened" if the refusal ends when the handler's first record opens its file.
    kind: str
    reason: str
    watched: _streams.Watched
    #: Whether its Python code may print to the stream of another handler.
    may_print: bool = False


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


# ---------------------------------------------------------------------------------------------------------------
# Loggers
# ---------------------------------------------------------------------------------------------------------------

#: Methods that the stock path of a logging call runs on the logger before it has a record. `isEnabledFor` must be
#: first: native code learns from the method whether it may check the level itself.
_LOGGER_CALLED = (
    "isEnabledFor",
    "_log",
    "findCaller",
    "makeRecord",
    "getEffectiveLevel",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)

#: Methods of the logger that stock logging calls with the record.
_RECORD_STEPS = ("handle", "filter", "callHandlers")

#: Plain instance attributes that the stock path reads; a property of such a name could return any value.
_LOGGER_READ = ("name", "level", "parent", "propagate", "handlers", "disabled", "filters", "_cache")

#: Names of methods that a logger instance can override with attributes of its own.
logger_methods = ["_log", "findCaller", "makeRecord", *_RECORD_STEPS, "isEnabledFor"]


def name_of_filter(candidate: Any) -> str | tuple[Any, ...] | None:
    """Return the name that an exact, unchanged `logging.Filter` compares with the names of loggers, or the description
    of a filter of a known package; None for any other filter.
    """
    if type(candidate) is not logging.Filter:
        return known_formatters.describe_filter(candidate)
    if not is_stock(logging.Filter, "filter") or "filter" in vars(candidate):
        return None
    name, length = vars(candidate).get("name"), vars(candidate).get("nlen")
    return name if type(name) is str and length == len(name) else None


@kept_answer
def classify_logger(cls: type) -> tuple[str, str]:
    """Return why calls of loggers of this class leave the native path: a method that is not the stock one, or an empty
    string if there is another reason, and the reason in words. Without a reason calls may take the native path; the
    method is then "makeRecord" if a known package has wrapped it, and empty otherwise.
    """
    base = logging.RootLogger if issubclass(cls, logging.RootLogger) else logging.Logger
    wrapped = ""
    for method in _LOGGER_CALLED:
        reason = changed_method(cls, base, (method,))
        if reason is not None and method == "makeRecord" and known_formatters.record_maker(cls) is not None:
            wrapped = method
        elif reason is not None:
            return method, reason
    reason = defined_on_class(cls, _LOGGER_READ)
    if reason is not None:
        return "", reason
    for method in _RECORD_STEPS:
        reason = changed_method(cls, base, (method,))
        if reason is not None:
            return method, reason
    return wrapped, ""


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
    known, turning, called = of_class
    if not issubclass(known, logging.StreamHandler):
        return sys.modules["logspool._sinks"].describe(handler, known)  # type: ignore[no-any-return]
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
        return sys.modules["logspool._sinks"].describe_format(handler, known)  # type: ignore[no-any-return]
    return _describe_format(handler, known)


def _describe_format(handler: Any, known: Any) -> Format:
    return describe_format_of(handler.formatter or _formatter_without_one(handler, known), handler)


def describe_format_of(formatter: Any, handler: Any) -> Format:
    """Describe how the lines of a handler with this formatter are made."""
    try:
        return _described_format(formatter, handler)
    except Exception as error:
        # A formatter whose attributes raise, or an attribute that a release of its package does not have.
        import traceback

        parts = ((formatter, _native.watch_part(formatter)),)
        types = ((type(formatter), _native.class_state(type(formatter))),)
        raised = "".join(traceback.format_exception_only(type(error), error)).strip()
        form = f"{type(formatter).__qualname__} cannot be described, so it runs in Python: {raised}"
        return Format(form, types, parts)._replace(**_deferral(form, handler, asked=False))


def _described_format(formatter: Any, handler: Any) -> Format:
    described = known_formatters.describe(formatter)
    if described is not None:
        return described._replace(**_deferral(described.form, handler, asked=False))
    # Each part is watched before it is inspected: a later change makes the answer stale, not wrong.
    parts: tuple[tuple[Any, int], ...] = ((formatter, _native.watch_part(formatter)),)
    types: tuple[tuple[type, int], ...] = ((type(formatter), _native.class_state(type(formatter))),)
    deferring = sys.modules.get("logspool._deferring")
    asked = deferring is not None and type(formatter) is deferring.DeferredFormatter
    if asked:
        inner = describe_format_of(formatter.formatter, None)
        later = _deferral(inner.form, handler, asked)
        return inner._replace(types=types + inner.types, parts=parts + inner.parts, **later)
    style = getattr(formatter, "_style", None)
    if style is not None:
        parts += ((style, _native.watch_part(style)),)
        types += ((type(style), _native.class_state(type(style))),)
    form = describe_formatter(formatter)
    return Format(form, types, parts)._replace(**_deferral(form, handler, asked))


def _deferral(form: Formatting | str, handler: Any, asked: bool) -> dict[str, Any]:
    """Return what a description says if the records are formatted later; nothing if they are formatted at once.

    They are if the program has asked for it and a formatter has to run, or if earlier records of the handler still
    wait: the order of the lines stays that of the calls.
    """
    if handler is None:
        return {}
    options = _install._in_force or _install._alone or {}
    reasons = [] if isinstance(form, str) else [form.own_texts.get(name) for name in _own_texts.EACH_RECORD]
    reason = form if isinstance(form, str) else next(filter(None, reasons), None)
    deferring = sys.modules.get("logspool._deferring")
    is_asked = reason is not None and (asked or options.get("defer_formatting", False))
    if not is_asked and not (deferring is not None and deferring.has_waiting(handler)):
        return {}
    deferral = _imports.part("_deferring").deferral()
    deferral.handlers[id(handler)] = handler
    if not is_asked:
        deferral.writer.stays_for_order = True
        reason = reason or "earlier records wait for their formatter"
    return {"form": f"{reason}; a thread of logspool formats the records", "deferral": deferral}


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
    if reason := _logging_globals.only_python():
        return reason
    base = _formatter_class(type(formatter))
    if isinstance(base, str):
        return base
    name = first_in(vars(formatter), _FORMATTER_CALLED)
    if name is not None:
        return f"{name} is replaced on the formatter"
    own_texts = _own_texts.replaced(formatter, base)
    if own_texts and (base is not logging.Formatter or own_texts.keys() >= set(_own_texts.EACH_RECORD)):
        return next(iter(own_texts.values()))
    if "formatTime" in own_texts:
        return _describe_style(formatter, (None, "", None, False), own_texts)
    zone = _zone(formatter)
    if isinstance(zone, str):
        return zone
    if not _logging_globals.is_real_time("strftime"):
        return "time.strftime is patched"
    datefmt, time_format, msec_format = formatter.datefmt, formatter.default_time_format, formatter.default_msec_format
    if datefmt is not None and type(datefmt) is not str:
        return "its datefmt is no plain text"
    if type(time_format) is not str or not (msec_format is None or type(msec_format) is str):
        return "its default time format is no plain text"
    if base is not logging.Formatter:
        return formatter._native_formatting(Formatting, zone)  # type: ignore[no-any-return]
    return _describe_style(formatter, (datefmt, time_format, msec_format, zone), own_texts)


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
    formatter: Any, of_time: tuple[str | None, str, str | None, bool], own_texts: Mapping[str, str]
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
    if type(template) is not str or not _logging_globals.encodes(template):
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
    if "formatTime" in own_texts and not style.usesTime():
        own_texts = {name: reason for name, reason in own_texts.items() if name != "formatTime"}
    return Formatting(sign, template, *of_time, [], False, own_texts=own_texts)


def _shown(template: str) -> str | None:
    """Return why only Python can fill in this template, or None. In doubt, the check chooses Python."""
    if any(word in template for word in ("lineno", "funcName", "filename", "pathname", "module")):
        if not logging._srcfile:
            return "logging._srcfile is off"
    if "thread" in template and not logging.logThreads:
        return "logging.logThreads is off"
    if "processName" in template and not logging.logMultiprocessing:
        return "logging.logMultiprocessing is off"
    if "process" in template and os.getpid is not _logging_globals.stock_getpid:
        return "os.getpid is patched"
    if "taskName" in template and not getattr(logging, "logAsyncioTasks", True):
        return "logging.logAsyncioTasks is off"
    return None


def _zone(formatter: Any) -> bool | str:
    converter = formatter.converter
    if converter is _logging_globals.stock_localtime or converter is _logging_globals.stock_gmtime:
        if not _native.has_own_code(converter):
            return "time.localtime or time.gmtime is patched"
        return converter is _logging_globals.stock_gmtime  # type: ignore[no-any-return]
    return "its converter is neither time.localtime nor time.gmtime"


def note_truncation(handler: Any) -> None:
    """Note that a handler has truncated its file, so records that an earlier program left for the file are obsolete."""
    path, mode = getattr(handler, "baseFilename", None), getattr(handler, "mode", None)
    if type(path) is str and type(mode) is str and mode.startswith("w") and getattr(handler, "stream", None):
        _native.opened_anew(path)


# These imports are last, because the modules import this module in turn.
from logspool import _install, _native, _own_texts, _queueing, _rotation, _streams  # noqa: E402
from logspool import known as known_formatters  # noqa: E402
