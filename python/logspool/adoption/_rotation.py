"""Describe handlers that switch to another file, and return them to stock logging.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). The sink of an adopted `RotatingFileHandler`,
`TimedRotatingFileHandler` or `WatchedFileHandler` switches to the next file by itself. The handler's own `stream` then
still refers to the old file. The next call runs `follow`, which points the stream to the new file, and the sink keeps
writing. Before stock code uses that stream again, all queued records are written, the sink is closed, and `catch_up`
reopens the stream. The methods of `logging.handlers` that need this are replaced when the first such handler is found,
because programs import that module late or never.
"""

from __future__ import annotations

import os
import re
import sys
import time

from logspool import _native
from logspool.adoption import _logging_globals, _own_classes
from logspool.base import _stock_classes

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Methods that stock code calls on such handlers in addition to the methods of `FileHandler`.
CALLED = (
    "shouldRollover",
    "doRollover",
    "rotation_filename",
    "rotate",
    "computeRollover",
    "getFilesToDelete",
    "reopenIfNeeded",
    "_statstream",
)

#: Plain instance attributes that stock code reads from such handlers.
READ = (
    "maxBytes",
    "backupCount",
    "when",
    "interval",
    "utc",
    "atTime",
    "rolloverAt",
    "suffix",
    "extMatch",
    "dev",
    "ino",
)

_KINDS = {"WatchedFileHandler": "watched", "RotatingFileHandler": "rotating", "TimedRotatingFileHandler": "timed"}

_REPLACED = (
    ("BaseRotatingHandler", "emit"),
    ("WatchedFileHandler", "emit"),
    ("RotatingFileHandler", "doRollover"),
    ("TimedRotatingFileHandler", "doRollover"),
    ("RotatingFileHandler", "shouldRollover"),
    ("TimedRotatingFileHandler", "shouldRollover"),
)

#: Maps `when` to the seconds of its unit and the suffix of backups.
_UNITS = {
    "S": (1, "%Y-%m-%d_%H-%M-%S"),
    "M": (60, "%Y-%m-%d_%H-%M"),
    "H": (3600, "%Y-%m-%d_%H"),
    "D": (86400, "%Y-%m-%d"),
    "MIDNIGHT": (86400, "%Y-%m-%d"),
    **{f"W{day}": (604800, "%Y-%m-%d") for day in range(7)},
}


def known_class(cls: type) -> tuple[type, str] | None:
    """Return the class of `logging.handlers` or logspool that `cls` is or derives from, and the kind of its sink."""
    handlers = sys.modules.get("logging.handlers")
    if handlers is not None:
        for name, kind in _KINDS.items():
            base = getattr(handlers, name, None)
            if isinstance(base, type) and issubclass(cls, base):
                own = (ours for ours in _own_classes.own_handlers if issubclass(cls, ours) and issubclass(ours, base))
                return next(own, base), kind
    return None


def describe(handler: Any, kind: str, errors: str) -> dict[str, Any] | str:
    """Return the options of the sink except its path, or the reason why stock logging must write.

    Also replace the methods of `logging.handlers` that must not run while the sink writes.
    """
    if handler.mode not in ("a", "at"):
        return f"it is opened with mode {handler.mode!r}, and would be again"
    if kind == "watched":
        options: dict[str, Any] | str = {}
    elif handler.namer is not None or handler.rotator is not None:
        return "it has a namer or rotator"
    elif errors != "strict":
        return f"it encodes with errors={errors!r}"
    else:
        options = _rotating(handler) if kind == "rotating" else _timed(handler)
    if not isinstance(options, str):
        reason = _replace()
        if reason is not None:
            return reason
    return options


def _count(value: Any, most: int) -> int | None:
    return min(max(value, 0), most) if type(value) is int else None


def _rotating(handler: Any) -> dict[str, Any] | str:
    max_bytes, backup_count = _count(handler.maxBytes, 2**62), _count(handler.backupCount, 2**31)
    if max_bytes is None or backup_count is None:
        return "maxBytes or backupCount is no int"
    early = "seek" in _stock_code("RotatingFileHandler", "shouldRollover").co_names
    return {
        "max_bytes": max_bytes,
        "backup_count": backup_count,
        "terminator_chars": len(handler.terminator),
        "rules": _rules(handler, early),
    }


def _rules(handler: Any, early: bool) -> str:
    """Return the name of the rotation rules: this Python's rules, or logspool's own rules for several processes."""
    if isinstance(handler, _own_classes.SharedRotation):
        return "together" if handler.compress is None else f"together.{handler.compress}"
    return "early" if early else "current"


def _timed(handler: Any) -> dict[str, Any] | str:
    unit, suffix = _UNITS.get(handler.when, (0, None))
    if not unit or type(handler.interval) is not int or handler.interval <= 0 or handler.interval % unit:
        return "its times of rotation are not those of `when` and `interval`"
    patterns = _stock_code("TimedRotatingFileHandler", "__init__").co_consts
    pattern = getattr(handler.extMatch, "pattern", None)
    if handler.suffix != suffix or pattern not in patterns or not handler.extMatch.flags & re.ASCII:
        return "its suffix is not the one of `when`"
    if not all(_logging_globals.is_real_time(name) for name in ("time", "localtime", "gmtime", "strftime")):
        return "the clock is patched"
    at_time = handler.atTime
    datetime = sys.modules.get("datetime")
    if at_time is not None and (datetime is None or type(at_time) is not datetime.time):
        return "its atTime is no datetime.time"
    if type(handler.rolloverAt) is not int:
        return "its rolloverAt is no int"
    backup_count = _count(handler.backupCount, 2**31)
    if backup_count is None:
        return "its backupCount is no int"
    seconds = None if at_time is None else (at_time.hour * 60 + at_time.minute) * 60 + at_time.second
    return {
        "when": handler.when,
        "interval": handler.interval // unit,
        "backup_count": backup_count,
        "zone": "utc" if handler.utc else "local",
        "at_time_seconds": seconds,
        "rollover_at": handler.rolloverAt,
        "rules": _rules(handler, _early_times()),
    }


def _early_times() -> bool:
    return "newRolloverAt" in _stock_code("TimedRotatingFileHandler", "doRollover").co_varnames


def _stock_code(owner: str, name: str) -> Any:
    cls = getattr(sys.modules["logging.handlers"], owner)
    function = cls.__dict__[name]
    made = _stock_classes.native_methods.get((cls, name))
    return (made[1] if made is not None and function is made[0] else function).__code__


def _replace() -> str | None:
    """Put native methods into `logging.handlers`, once per `install()`. `uninstall()` finds them in `replaced`."""
    handlers = sys.modules["logging.handlers"]
    for owner, name in _REPLACED:
        cls = getattr(handlers, owner)
        if (cls, name) in _stock_classes.replaced:
            continue
        made = _stock_classes.native_method(cls, owner, name)
        if made is None:
            return f"{owner}.{name} is patched"
        _stock_classes.replaced[cls, name] = made
        setattr(cls, name, made[0])
    _native.set_catch_up(catch_up)
    _native.set_follow(follow)
    return None


def catch_up(handler: Any) -> None:
    """Reopen the handler's stream if the sink has switched to another file. The sink must be closed or idle.

    The sink has switched if the file at the handler's path is no longer the stream's own file.
    """
    stream = handler.stream
    if stream is None or stream.closed:
        return
    known = known_class(type(handler))
    if known is None:
        return
    try:
        there, here = os.stat(handler.baseFilename), os.fstat(stream.fileno())
    except (OSError, ValueError):
        return
    if os.path.samestat(there, here):
        return
    handler.stream = None
    stream.close()
    handler.stream = handler._open()
    if known[1] == "watched":
        handler._statstream()
    elif known[1] == "timed":
        handler.rolloverAt = _next_rollover(handler, _native.birth_second(handler.baseFilename) or int(time.time()))


def follow(handler: Any) -> bool:
    """Point the handler's stream to the file that its sink has switched to; the sink keeps writing. Return success.

    The stream is set without `__setattr__`, which would treat this as a new stream and close the sink. Nothing waits
    here. If a step fails, the stream stays as it is until the next call.
    """
    known, stream, lock = known_class(type(handler)), handler.stream, handler.lock
    if known is None or stream is None or lock is None or not lock.acquire(blocking=False):
        return False
    try:
        if os.path.samestat(os.stat(handler.baseFilename), os.fstat(stream.fileno())):
            return False
        following = handler._open()
        attributes = vars(handler)
        attributes["stream"] = following
        if known[1] == "watched":
            status = os.fstat(following.fileno())
            attributes.update(dev=status.st_dev, ino=status.st_ino)
        elif known[1] == "timed":
            born = _native.birth_second(handler.baseFilename) or int(time.time())
            attributes["rolloverAt"] = _next_rollover(handler, born)
        stream.close()
    except (OSError, ValueError):
        return False
    finally:
        lock.release()
    return True


def _next_rollover(handler: Any, now: int) -> int:
    """Compute the value that `doRollover` stores in `rolloverAt` when it runs at `now`."""
    due: int = handler.computeRollover(now)
    if _early_times():
        while due <= now:
            due += handler.interval
        if handler.when in ("MIDNIGHT", *(f"W{day}" for day in range(7))) and not handler.utc:
            before, after = time.localtime(now)[-1], time.localtime(due)[-1]
            if before != after:
                due += 3600 if before else -3600
    return due
