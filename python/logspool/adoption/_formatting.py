"""The stock functions that format a record, which native code tells apart from those of a program.

Pipeline stage: *capture* (see ARCHITECTURE.md).
"""

from __future__ import annotations

import logging
import time

from logspool import _native
from logspool.adoption import _logging_globals
from logspool.base import _stock_classes

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: The name of each function in native code, with its class and its name there.
_FUNCTIONS: dict[str, tuple[type, str]] = {
    "handler_format": (logging.Handler, "format"),
    "format": (logging.Formatter, "format"),
    "uses_time": (logging.Formatter, "usesTime"),
    "format_time": (logging.Formatter, "formatTime"),
    "format_message": (logging.Formatter, "formatMessage"),
    "format_stack": (logging.Formatter, "formatStack"),
    "style_uses_time": (logging.PercentStyle, "usesTime"),
    "style_format": (logging.PercentStyle, "format"),
    "percent_format": (logging.PercentStyle, "_format"),
    "get_message": (logging.LogRecord, "getMessage"),
}


#: The functions that a native method replaces.
_REPLACED = ("format", "format_time", "format_message", "get_message")


def connect() -> None:
    """Give native code the stock functions; None in place of one that is patched."""
    is_native = not _logging_globals.only_python()
    functions: dict[str, Any] = {
        role: cls.__dict__[name] if is_native and _stock_classes.is_stock(cls, name) else None
        for role, (cls, name) in _FUNCTIONS.items()
    }
    for role in _REPLACED:
        cls, name = _FUNCTIONS[role]
        native = _stock_classes.native_method(cls, cls.__name__, name)
        functions[f"native_{role}"] = None if native is None else native[0]
    functions["localtime"] = _logging_globals.stock_localtime
    functions["gmtime"] = _logging_globals.stock_gmtime
    functions["strftime"] = time.strftime if _logging_globals.is_real_time("strftime") else None
    _native.set_stock_formatting(functions, time, vars(logging))
