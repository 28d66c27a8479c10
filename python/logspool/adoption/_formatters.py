"""Describe a `logging.Formatter` that the collector can replace, or give the reason why Python has to run it.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Nothing here changes anything.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from logspool import _native
from logspool.adoption import _logging_globals, _own_classes, _own_texts
from logspool.adoption._descriptions import Formatting
from logspool.base._stock_classes import changed_method, first_in, kept_answer

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

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
        return describe_style(formatter, (None, "", None, False), own_texts)
    utc = zone(formatter)
    if isinstance(utc, str):
        return utc
    if not _logging_globals.is_real_time("strftime"):
        return "time.strftime is patched"
    datefmt, time_format, msec_format = formatter.datefmt, formatter.default_time_format, formatter.default_msec_format
    if datefmt is not None and type(datefmt) is not str:
        return "its datefmt is no plain text"
    if type(time_format) is not str or not (msec_format is None or type(msec_format) is str):
        return "its default time format is no plain text"
    if base is not logging.Formatter:
        return formatter._native_formatting(Formatting, utc)  # type: ignore[no-any-return]
    return describe_style(formatter, (datefmt, time_format, msec_format, utc), own_texts)


@kept_answer
def _formatter_class(cls: type) -> type | str:
    """Return the known class that a formatter's class is or derives from, or a reason."""
    if not issubclass(cls, logging.Formatter):
        return f"{cls.__qualname__} is no logging.Formatter"
    base: type = logging.Formatter
    for own in _own_classes.own_formatters:
        if issubclass(cls, own):
            base = own
    return changed_method(cls, base, _FORMATTER_CALLED) or base


@kept_answer
def _style_class(cls: type) -> str | None:
    return changed_method(cls, cls, _STYLE_CALLED)


def describe_style(
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
    reason = unfilled(template)
    if reason is not None:
        return reason
    if "formatTime" in own_texts and not style.usesTime():
        own_texts = {name: reason for name, reason in own_texts.items() if name != "formatTime"}
    return Formatting(sign, template, *of_time, [], False, own_texts=own_texts)


def unfilled(template: str) -> str | None:
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


def zone(formatter: Any) -> bool | str:
    converter = formatter.converter
    if converter is _logging_globals.stock_localtime or converter is _logging_globals.stock_gmtime:
        if not _native.has_own_code(converter):
            return "time.localtime or time.gmtime is patched"
        return converter is _logging_globals.stock_gmtime  # type: ignore[no-any-return]
    return "its converter is neither time.localtime nor time.gmtime"
