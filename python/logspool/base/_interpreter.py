"""Which fast paths native code has on this interpreter, and why the others are off.

A fast path reads structures of CPython that are not public. `choose()` compares each of them with what public functions
say, and turns on those that agree. A release of CPython that this release of logspool does not know gets none of them,
and Python makes all its lines.
"""

from __future__ import annotations

import contextlib
import sys

from logspool import _native

#: The newest release of CPython that the tests run on.
NEWEST_KNOWN = (3, 15)

#: What each fast path is for, as `stats()` and `doctor` name it, and why it is off; empty if it is on.
_reasons: dict[str, str] = {}


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
    if _reasons:
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
    """Write to standard error that this Python is not known, if it is not."""
    if (found := obstacle()) and sys.stderr is not None:
        # A program without a standard error that works runs on without the message.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"logspool: {found}\n")


def slow_paths() -> dict[str, str]:
    """Return why fast paths are off, by name."""
    choose()
    return {name: reason for name, reason in _reasons.items() if reason}
