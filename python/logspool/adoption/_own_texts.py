"""The methods of a formatter that make one text each, and that a program has replaced.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Native code calls these methods and does everything else
of a record's format itself.
"""

from __future__ import annotations

from logspool.base._stock_classes import changed_method

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: `formatTime` is called for each record whose format shows `asctime`, `formatMessage` for each record, the others for
#: records with an exception or a stack.
METHODS = ("formatTime", "formatMessage", "formatException", "formatStack")

#: The methods that are called for each record. Native code calls one of them; a formatter that replaces both runs in
#: Python.
EACH_RECORD = METHODS[:2]


def replaced(formatter: Any, base: type) -> dict[str, str]:
    """Return why each of `METHODS` is not that of `base`, in words; methods that are the same are missing."""
    attributes = vars(formatter)
    reasons = {}
    for name in METHODS:
        if name in attributes:
            reasons[name] = f"{name} is replaced on the formatter"
        elif reason := changed_method(type(formatter), base, (name,)):
            reasons[name] = reason
    return reasons
