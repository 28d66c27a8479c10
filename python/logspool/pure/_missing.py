"""Why this copy of the package has no native module, and which promises need one."""

from __future__ import annotations

import os
import sys

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_MEND = (
    "install a wheel for this system and this Python, which `python scripts/wheels.py` makes in the sources of logspool"
    if sys.platform == "linux"
    else "run the program on Linux"
)


def why() -> str:
    """Return why nothing is accelerated."""
    if sys.platform != "linux":
        return f"logspool has a native module for Linux only, and this is {sys.platform}"
    import sysconfig

    build = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    folder = os.path.dirname(os.path.dirname(__file__))
    others = sorted(name.split(".")[1] for name in os.listdir(folder) if name.startswith("_native.cpython-"))
    found = f"this copy has it for {', '.join(others)}" if others else "this copy has none"
    return f"logspool._native was not built for this Python ({build}); {found}"


def told() -> str:
    """Return the line for standard error, `stats()`, `health()` and `doctor`."""
    return f"native: no: {why()}: calls are those of stock logging (fix: {_MEND})"


#: Options that promise something only the core can keep, each with a value that promises nothing.
_PROMISES: dict[str, Any] = {
    "durability": "memory",
    "durable_levels": (),
    "spool_dir": None,
    "keeper": False,
    "redact_keys": (),
    "redact_patterns": (),
    "escape_control": False,
    "deduplicate": 0,
    "rate_limit": 0,
    "sample": (),
    "compress": None,
}

#: For each kind of sink that only the core has, what to use instead; the others are sent by a service.
_INSTEAD = {
    "console": "logspool.StreamHandler",
    "file": "logspool.FileHandler",
    "null": "logging.NullHandler",
    "rotating": "logspool.RotatingFileHandler",
    "timed": "logspool.TimedRotatingFileHandler",
    "watched": "logging.handlers.WatchedFileHandler",
    "syslog": "logging.handlers.SysLogHandler",
}


def check_promises(options: dict[str, Any]) -> None:
    """Refuse options that promise what only the core can keep.

    Raises:
        ValueError: such an option has another value than the one that promises nothing.
    """
    for name, nothing in _PROMISES.items():
        value = options.get(name, nothing)
        if value != nothing and (value or nothing is None or name == "durability"):
            raise refusal(f"{name}={value!r}", f"{name}={nothing!r}, or ")


def refusal(what: str, mend: str = "") -> ValueError:
    """Return the error for something that needs the core."""
    return ValueError(f"{what} needs the native core: {why()} (fix: {mend}{_MEND})")


def sink_refusal(kind: str) -> ValueError:
    """Return the error for a sink that only the core has."""
    instead = _INSTEAD.get(kind, "logspool.ServiceHandler")
    return refusal(f"the sink {kind!r}", f"use {instead}, or ")
