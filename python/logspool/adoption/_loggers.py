"""Decide for a class of loggers whether its calls may take the native path, and describe filters.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Nothing here changes anything. Native code calls the
functions inside logging calls, with the planning lock held, so they take no locks and log nothing.
"""

from __future__ import annotations

import logging

from logspool.adoption import known as known_formatters
from logspool.base._stock_classes import changed_method, defined_on_class, is_stock, kept_answer

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

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
