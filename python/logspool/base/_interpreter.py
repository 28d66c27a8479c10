"""Which fast paths native code has on this interpreter, and why the others are off.

A fast path reads structures of CPython that are not public. `choose()` compares each of them with what public functions
say, and turns on those that agree. A release of CPython that this release of logspool does not know gets none of them,
and Python makes all its lines.
"""

from __future__ import annotations

import contextlib
import sys

from logspool import _native
from logspool.pure import _missing

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Why nothing is accelerated; empty where the package has its native module.
without_core: str = getattr(_native, "without_core", "")

#: The newest release of CPython that the tests run on.
NEWEST_KNOWN = (3, 15)

#: What each fast path is for, as `stats()` and `doctor` name it, and why it is off; empty if it is on.
_reasons: dict[str, str] = {}


def native_no() -> str:
    """Return `native: no` with the reason and the mend; empty where the package has its native module."""
    return _missing.told() if without_core else ""


def check_promises(options: dict[str, Any]) -> None:
    """Refuse options that promise what only the native core can keep, where there is none.

    Raises:
        ValueError: an option has such a value.
    """
    if without_core:
        _missing.check_promises(options)


def refusal(what: str) -> ValueError:
    """Return the error for something that needs the native core."""
    return _missing.refusal(what)


def newer() -> str:
    """Return that this Python is newer than this release knows, or an empty string."""
    if sys.version_info[:2] <= NEWEST_KNOWN:
        return ""
    major, minor = sys.version_info[:2]
    return f"Python {major}.{minor} is newer than this release knows: calls are slower"


def obstacle() -> str:
    """Return why only Python may make the texts of records on this interpreter, or an empty string."""
    return newer() or _reasons.get("classes", "")


def choose() -> None:
    """Turn on the fast paths that work on this interpreter. Later calls change nothing."""
    if _reasons or without_core:
        return
    unknown = newer()
    # The check compares the instruction that calls it, so each call is in a line of its own.
    frames = unknown or _native.frame_self_check()
    frames = frames or _native.frame_self_check()
    frames = frames or _native.frame_self_check()
    _native.use_direct_frames(not frames)
    # Dict watchers and the version tags of classes are the same in each release, so an unknown one is checked, too.
    _reasons.update(
        {
            "classes": _native.class_self_check(type("Checked", (), {})),
            "dicts": _native.dict_self_check(),
            "frames": frames,
            "locks": unknown or _native.lock_self_check(),
            "lines": unknown,
        }
    )


def report() -> None:
    """Write to standard error that there is no native module, or that this Python is not known."""
    if (found := native_no() or obstacle()) and sys.stderr is not None:
        # A program without a standard error that works runs on without the message.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"logspool: {found}\n")


def slow_paths() -> dict[str, str]:
    """Return why fast paths are off, by name."""
    choose()
    return {name: reason for name, reason in _reasons.items() if reason}
