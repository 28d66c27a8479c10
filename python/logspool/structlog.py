"""structlog through logspool's queue: loggers that queue each line, and renderers whose text native code makes.

    import structlog
    import logspool.structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            logspool.structlog.TimeStamper(),
            logspool.structlog.JSONRenderer(),
        ],
        wrapper_class=logspool.structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=logspool.structlog.LoggerFactory("app.log"),
    )

The file has the bytes that `structlog.WriteLoggerFactory` and structlog's own processors of these names write. Events
with values of other types than str, int, float, bool, None, dict, list and tuple are rendered by structlog itself.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import structlog

from logspool import _native
from logspool.handlers import _line_output

__all__ = [
    "ConsoleRenderer",
    "JSONRenderer",
    "KeyValueRenderer",
    "LoggerFactory",
    "TimeStamper",
    "make_filtering_bound_logger",
]

#: What `structlog.configure(processors=...)` takes.
Processor: TypeAlias = Callable[[Any, str, Any], Any]


class LoggerFactory:
    """Make the loggers for `structlog.configure(logger_factory=...)`; each call of theirs queues one line.

    Any renderer of structlog that returns text fits; the name of the method is the level of the line.

    Args:
        output: path of a file, which `logspool.FileHandler` opens, or a handler without formatter, level and filters:
            `logspool.RotatingFileHandler(...)`, or one of `logging` after `logspool.install()`.
        options: of `logspool.FileHandler`, for a path.

    Raises:
        TypeError, ValueError: the output is neither, or an option does not fit; the text says what to change.
    """

    def __init__(self, output: str | os.PathLike[str] | logging.Handler, **options: Any) -> None:
        handler = _line_output.open_handler("LoggerFactory", output, options, filtering=_FILTERING)
        #: The handler that writes the lines. Close it to close the file.
        self.handler = handler
        self._logger = _line_output.line_logger("structlog", handler, _RENDERER)

    def __call__(self, *args: Any) -> _native.LineLogger:
        """Return the logger. The arguments of `structlog.get_logger` are ignored, as by structlog's own factories."""
        return self._logger


_FILTERING = "wrapper_class=structlog.make_filtering_bound_logger(level) and structlog's processors"
_RENDERER = "the last processor must be a renderer such as logspool.structlog.JSONRenderer()"


def make_filtering_bound_logger(min_level: int | str) -> type[Any]:
    """Return the class of `structlog.make_filtering_bound_logger`, whose calls run the processors natively."""
    base: Any = structlog.make_filtering_bound_logger(min_level)  # type: ignore[arg-type]
    plain: Any = structlog.BoundLoggerBase
    if base._proxy_to_logger is not plain._proxy_to_logger or base._process_event is not plain._process_event:
        return base  # type: ignore[no-any-return]
    methods = {"__doc__": base.__doc__}
    for name in ("_proxy_to_logger", "debug", "info", "warning", "error", "critical"):
        function = getattr(base, name)
        # A method of a level that is not enabled has another name, and does nothing.
        if getattr(function, "__name__", "") == name:
            methods[name] = _native.bound_logger_method(plain, name, function, structlog.DropEvent)
    for alias, name in (("warn", "warning"), ("fatal", "critical"), ("msg", "info")):
        if name in methods and getattr(base, alias, None) is getattr(base, name):
            methods[alias] = methods[name]
    return type(base.__name__, (base,), methods)


def JSONRenderer(
    serializer: Callable[..., str | bytes] = json.dumps,
    *,
    default: Callable[[Any], Any] | None = None,
    **dumps_kw: Any,
) -> Processor:
    """Make a processor that renders as `structlog.processors.JSONRenderer()`.

    Args:
        default: as of `json.dumps`, for values of types that it does not know; None is structlog's own.

    Raises:
        TypeError: other options of `json.dumps` are given, or another serializer.
    """
    if serializer is not json.dumps or dumps_kw:
        given = ", ".join(dumps_kw) or "a serializer"
        raise TypeError(
            f"JSONRenderer: renders as json.dumps without options does; for {given} use "
            "structlog.processors.JSONRenderer, whose lines LoggerFactory's loggers take too"
        )
    own = structlog.processors.JSONRenderer(**({} if default is None else {"default": default}))
    return _renderer("json", {}, own)


def KeyValueRenderer(
    sort_keys: bool = False,
    key_order: Sequence[str] | None = None,
    drop_missing: bool = False,
    repr_native_str: bool = True,
) -> Processor:
    """Make a processor that renders as `structlog.processors.KeyValueRenderer`, with its arguments."""
    own = structlog.processors.KeyValueRenderer(sort_keys, key_order, drop_missing, repr_native_str)
    options = {
        "sort_keys": bool(sort_keys),
        "key_order": list(key_order or ()),
        "drop_missing": bool(drop_missing),
        "repr_native_str": repr_native_str is True,
    }
    return _renderer("key_values", options, own)


def ConsoleRenderer(*, colors: bool = False, **options: Any) -> Processor:
    """Make a processor that renders as `structlog.dev.ConsoleRenderer(colors=False)`, with its arguments but `columns`.

    Events with exceptions, and all events if `level_styles` is given, are rendered by structlog itself.

    Raises:
        TypeError: `columns` is given.
        ValueError: `colors` is true.
    """
    for name, wrong, error in (("colors", colors, ValueError), ("columns", "columns" in options, TypeError)):
        if wrong:
            raise error(
                f"ConsoleRenderer: renders without {name}; for {name} use structlog.dev.ConsoleRenderer, "
                "whose lines LoggerFactory's loggers take too"
            )
    own = structlog.dev.ConsoleRenderer(colors=False, **options)
    levels = structlog.dev.ConsoleRenderer.get_default_level_styles(colors=False)
    width = options.get("pad_event")
    layout = {
        "event_width": options.get("pad_event_to", _EVENT_WIDTH) if width is None else width,
        "level_width": max(map(len, levels)) if options.get("pad_level", True) else 0,
        "repr_native_str": options.get("repr_native_str", False) is True,
        "sort_keys": bool(options.get("sort_keys", True)),
        "event_key": options.get("event_key", "event"),
        "timestamp_key": options.get("timestamp_key", "timestamp"),
    }
    return _renderer("own" if "level_styles" in options else "console", layout, own)


#: The width of the event in structlog's `ConsoleRenderer`; `_renderer` finds out if a release has another one.
_EVENT_WIDTH = 30


def TimeStamper(fmt: str = "iso", utc: bool = True, key: str = "timestamp") -> Processor:
    """Make a processor that adds the time as `structlog.processors.TimeStamper(fmt="iso")`.

    Args:
        key: key of the time in the event.

    Raises:
        ValueError: another format, or local time.
    """
    if str(fmt).upper() != "ISO" or not utc:
        raise ValueError(
            'TimeStamper: adds fmt="iso" in UTC; for other formats and local time use structlog.processors.TimeStamper'
        )
    own = structlog.processors.TimeStamper(fmt, utc, key)
    is_builtin = type(datetime.datetime).__module__ == "builtins" and datetime.datetime.__module__ == "datetime"
    if not is_builtin or not _native.has_own_code(datetime.datetime.now):
        return own  # the clock is replaced, for example by freezegun
    return _native.IsoStamper(key, own).stamp


#: Events on which structlog's own renderer and native code have to agree.
_SAMPLES: tuple[dict[str, Any], ...] = (
    {},
    {"event": "plain", "level": "info", "timestamp": "2026-01-02T03:04:05.000006Z", "logger": "a.b", "b": 1, "a": 2.5},
    {"event": "longer than any event is padded to be", "level": "exception", "logger_name": "a", "z": None, "y": True},
    {
        "z": "two words",
        "k": "quote'",
        "q": "both \"'",
        "u": "\u00e9\u2028\U0001f600",
        "t": "tab\t\n",
        "e": "",
        "s": "=x",
    },
    {"event": "\u00e9", "level": "warning", "big": -(2**63), "exponent": 1e100, "small": 5e-324, "name": "n"},
    {"event": None, "timestamp": 17.5, "level": "debug"},
    {"event": 7, "nan": float("nan"), "inf": -float("inf")},
)


def _renderer(name: str, options: dict[str, Any], own: Processor) -> Processor:
    """Return the processor with the native layout `name`; `own` if this release of structlog writes other text."""
    if name == "own":
        return own
    native = _native.EventRenderer(name, options, _other_text)
    for sample in _SAMPLES:
        if native.render(None, "info", dict(sample)) != own(None, "info", dict(sample)):
            return own
    # A method of a native object is called without a frame and without a tuple of its arguments.
    return _native.EventRenderer(name, options, own).render


def _other_text(*_: Any) -> None:
    """Stand in for structlog's renderer where native code has to render."""
