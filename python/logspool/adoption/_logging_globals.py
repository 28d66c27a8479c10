"""The settings of `logging` that apply to all loggers, and whether native code may follow them.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Native code calls `logging_globals` while it makes a
plan, and again after a change of one of the names below.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from types import BuiltinFunctionType, FunctionType

from logspool import _native
from logspool.base import _interpreter
from logspool.base._stock_classes import changed_method, stock_function
from logspool.base._tuples import NamedTuple

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class LoggingGlobals(NamedTuple):
    """Settings of `logging` that apply to all loggers."""

    reason: str
    level_names: list[tuple[int, str]]
    start_time_ns: int
    arithmetic: str
    shows_process: bool
    #: Why only stock logging finds the caller of a call; empty if native code finds it.
    stock_reason: str
    #: Why native code neither initialises a LogRecord nor reads one; empty if it does.
    record_reason: str
    #: Why a record factory makes each LogRecord; empty if none does.
    factory_reason: str
    #: What makes a LogRecord; None if native code makes it.
    record_factory: Any
    shows_thread: bool
    shows_process_name: bool
    shows_task_name: bool
    level_to_name: dict[Any, Any]
    #: `threading.get_ident` and `threading.current_thread` if a library such as gevent has replaced one of them.
    thread_functions: tuple[Any, Any] | None


stock_localtime = time.localtime
stock_gmtime = time.gmtime
stock_getpid = os.getpid

_active = threading._active  # type: ignore[attr-defined]

#: Why only Python makes texts below `python -b`: whether a `str()` of bytes warns or raises, and the line that the
#: warning names, depend on the code that makes the text.
_BYTES_WARNING = "the interpreter's option -b is on"

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
)
TIME_NAMES = ("time", "time_ns", "strftime", "localtime", "gmtime")
THREADING_NAMES = ("get_ident", "current_thread", "_active", "Thread")

#: Methods of a LogRecord that stock logging calls.
RECORD_CALLED = ("__init__", "getMessage", "__getattribute__", "__getattr__", "__setattr__", "__delattr__")


def clock_names() -> list[str]:
    """Return the names of functions of the module `time`; the first one is the clock of a LogRecord."""
    clock = "time_ns" if _arithmetic() == "nanoseconds" else "time"
    return sorted(TIME_NAMES, key=lambda name: name != clock)


def is_real_time(name: str) -> bool:
    """Return whether a function of the module `time` is not patched."""
    function = getattr(time, name, None)
    return (
        type(function) is BuiltinFunctionType
        and function.__module__ == "time"
        and function.__name__ == name
        and _native.has_own_code(function)
    )


def _thread_functions() -> tuple[Any, Any] | None:
    """Return the functions of `threading` that a LogRecord calls, if one of them is patched."""
    get_ident, current_thread = threading.get_ident, threading.current_thread
    is_real = (
        type(get_ident) is BuiltinFunctionType
        and get_ident.__module__ == "_thread"
        and get_ident.__name__ == "get_ident"
        and type(current_thread) is FunctionType
        and current_thread.__code__.co_filename == threading.Thread.run.__code__.co_filename
        and threading._active is _active  # type: ignore[attr-defined]
    )
    return None if is_real else (get_ident, current_thread)


def _is_logging_function(name: str) -> bool:
    function = getattr(logging, name, None)
    return type(function) is FunctionType and function.__code__.co_filename == source_file


#: The source file of `logging`, as `logging._srcfile` names it.
source_file = os.path.normcase(logging.addLevelName.__code__.co_filename)


def logging_globals() -> LoggingGlobals:
    """Read the settings of `logging` that apply to all loggers."""
    level_names = []
    caller_reason, record_reason = _caller_reason(), _record_reason()
    factory_reason = _factory_reason()
    level_reason = ""
    for number, name in list(logging._levelToName.items()):
        # An `IntEnum` member counts as an int too: a lookup by number finds its name.
        if not isinstance(number, int) or not 0 <= number <= 0xFFFF:
            continue
        if type(name) is not str or not encodes(name):
            level_reason = f"the name of level {number} is no plain text"
            continue
        level_names.append((int(number), name))
    start = logging._startTime  # type: ignore[attr-defined]
    path_reason = "" if caller_reason == "logging._srcfile is off" else caller_reason
    return LoggingGlobals(
        reason=record_reason or path_reason or level_reason,
        level_names=sorted(level_names),
        start_time_ns=start if isinstance(start, int) else _nanoseconds(start),
        arithmetic=_arithmetic(),
        shows_process=bool(logging.logProcesses and hasattr(os, "getpid")),
        stock_reason=caller_reason,
        record_reason=record_reason or level_reason,
        factory_reason=factory_reason,
        record_factory=logging._logRecordFactory if factory_reason or record_reason else None,  # type: ignore[attr-defined]
        shows_thread=bool(logging.logThreads),
        shows_process_name=bool(logging.logMultiprocessing),
        shows_task_name=bool(getattr(logging, "logAsyncioTasks", False)),
        level_to_name=logging._levelToName,
        thread_functions=_thread_functions(),
    )


def _caller_reason() -> str:
    """Return why only stock logging finds the caller of a logging call, or an empty string."""
    if not logging._srcfile:  # type: ignore[attr-defined]
        return "logging._srcfile is off"
    # An object with an `__eq__` of its own compares equal to several files, so that their frames are skipped.
    if type(logging._srcfile) is not str or logging._srcfile != source_file:  # type: ignore[attr-defined]
        return "logging._srcfile was changed"
    if not _is_logging_function("currentframe"):
        return "logging.currentframe is patched"
    if hasattr(logging, "_is_internal_frame") and not _is_logging_function("_is_internal_frame"):
        return "logging._is_internal_frame is patched"
    if logging.sys is not sys:  # type: ignore[attr-defined]
        return "logging.sys is patched"
    return ""


def _factory_reason() -> str:
    """Return why a record factory makes the LogRecord of a call, or an empty string."""
    if logging._logRecordFactory is not logging.LogRecord:  # type: ignore[attr-defined]
        return "logging.setLogRecordFactory was called"
    return ""


def only_python() -> str:
    """Return why only Python may make the texts of records in this process, or an empty string."""
    return _BYTES_WARNING if sys.flags.bytes_warning else _interpreter.obstacle()


def _record_reason() -> str:
    """Return why native code neither initialises a LogRecord nor reads one, or an empty string."""
    if reason := only_python():
        return reason
    if type(logging._levelToName) is not dict:
        return "logging._levelToName is no plain dict"
    changed = changed_method(logging.LogRecord, logging.LogRecord, RECORD_CALLED)
    if changed is not None or logging.LogRecord.__module__ != "logging":
        return changed or "logging.LogRecord is replaced"
    if not _is_logging_function("getLevelName"):
        return "logging.getLevelName is patched"
    for name, module in (("time", time), ("os", os), ("threading", threading)):
        if getattr(logging, name) is not module:
            return f"logging.{name} is patched"
    for name in ("time", "time_ns"):
        if not is_real_time(name):
            return f"time.{name} is patched"
    return ""


def _nanoseconds(seconds: float) -> int:
    # The ratio is exact, so dividing it by 1e9 gives the same float again.
    numerator, denominator = seconds.as_integer_ratio()
    return (numerator * 1_000_000_000 * 2 + denominator) // (denominator * 2)


def _arithmetic() -> str:
    """Return which of the three methods of CPython 3.10 to 3.15 computes `LogRecord.msecs`."""
    global _arithmetic_found
    if _arithmetic_found is None:
        code = stock_function(logging.LogRecord, "__init__").__code__
        if "time_ns" in code.co_names:
            _arithmetic_found = "nanoseconds"
        else:
            constants = code.co_consts
            _arithmetic_found = "float whole" if 0.0 in constants and _adds_zero(constants) else "float fraction"
    return _arithmetic_found


def _adds_zero(constants: tuple[Any, ...]) -> bool:
    return any(type(constant) is float and constant == 0.0 for constant in constants)


_arithmetic_found: str | None = None


def encodes(text: str) -> bool:
    """Return whether a text encodes to UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
