"""Functions of the native module, for a copy of the package without it.

Nothing is queued in a call, so there is nothing to flush, count or recover, except the records that wait for a service.
Their senders register here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from logspool.pure import _missing, _options

__all__ = [
    "AccessLog",
    "EventRenderer",
    "after_fork_in_child",
    "after_fork_in_parent",
    "before_fork",
    "begin_end",
    "birth_second",
    "bound_logger_method",
    "bump",
    "class_state",
    "configure",
    "drain",
    "end",
    "exception_texts",
    "flush",
    "flush_durable",
    "flush_local",
    "go_on",
    "has_own_code",
    "is_adopted",
    "metrics_text",
    "missing_calls",
    "native_methods",
    "note_bound_fields",
    "note_once",
    "orphans",
    "paths",
    "plans_made",
    "recover",
    "recovery_counts",
    "register_exit_drain",
    "rule_counts",
    "running",
    "segment_counters",
    "senders",
    "set_own_classes",
    "set_thread_handler",
    "sidecars",
    "snapshot",
    "start",
    "stop",
    "stop_logging_threads",
    "unwatch",
    "zone_changed",
]

#: The senders of records to services: each has `flush(timeout)` and `counts()`.
senders: weakref.WeakSet[Any] = weakref.WeakSet()

_once = 0


def _nothing(*_arguments: Any, **_options: Any) -> None:
    """Do nothing: this is for native code."""


after_fork_in_child = after_fork_in_parent = before_fork = bump = configure = end = go_on = _nothing
note_bound_fields = register_exit_drain = set_own_classes = set_thread_handler = start = stop = _nothing
stop_logging_threads = unwatch = zone_changed = _nothing


def begin_end() -> int:
    """Return the number of threads that make a plan."""
    return 0


def birth_second(path: str | os.PathLike[str]) -> int | None:
    """Return that the second in which a file was created is not known."""
    return None


def bound_logger_method(class_: type, name: str, function: Any, drop_event: type, /) -> Any:
    """Return the method of structlog."""
    return function


def class_state(class_: type) -> int:
    """Return that the state of a class is not known, so that no answer about it is kept."""
    return 0


def has_own_code(function: object) -> bool:
    """Return that it is not known whether a builtin function is unchanged."""
    return False


def is_adopted(handler: object, /) -> bool:
    """Return whether `handle` of a handler queues a record."""
    return False


def native_methods() -> list[tuple[str, str]]:
    """Return the methods of logging that have a native form."""
    return []


class AccessLog:
    """Leaves the access lines of gunicorn's loggers to gunicorn."""

    def __init__(self, describe: Callable[[Any], tuple[Any, ...]], /) -> None:
        """Ignore the function that native code would call."""

    def write(self, logger: Any, resp: Any, req: Any, environ: Any, request_time: Any, /) -> bool:
        """Return that the line was not queued."""
        return False


class EventRenderer:
    """Lets structlog render its events."""

    def __init__(self, layout: str, options: dict[str, Any], own: Callable[..., Any], /) -> None:
        self.render = own


# Flushes.


def flush(timeout: float | None = None) -> bool:
    """Wait until every service has acknowledged all earlier records."""
    done = [sender.flush(timeout) for sender in list(senders)]
    return all(done)


def flush_local(timeout: float) -> bool:
    """Return that everything was handed to the system in its call."""
    return True


def flush_durable(timeout: float | None = None) -> bool:
    """Refuse: stock handlers do not sync their files."""
    raise _missing.refusal("flush(level='durable')", "level='written', or ")


def drain(timeout: float) -> int:
    """Send the waiting records. Return the number of records that were not sent."""
    flush(timeout)
    return sum(sender.waiting() for sender in list(senders))


# Counters.


def snapshot() -> dict[str, Any] | None:
    """Return the counters of the senders, or None without a sender."""
    names = _options.counter_names()["levels"]
    zero = dict.fromkeys(names, 0)
    sinks = [sender.counts(zero) for sender in list(senders)]
    if not sinks:
        return None
    refused: dict[str, dict[str, int]] = {}
    offered, accepted = dict(zero), dict(zero)
    for sink in sinks:
        for level in names:
            accepted[level] += sink["accepted"][level]
            offered[level] += sink["accepted"][level]
        for reason, levels in sink.pop("refused").items():
            counted = refused.setdefault(reason, dict(zero))
            for level, count in levels.items():
                counted[level] += count
                offered[level] += count
    return {
        "offered": offered,
        "accepted": accepted,
        "refused": refused,
        "not_durable": zero,
        "sinks": sinks,
        "lanes": 0,
        "in_lanes": zero,
        "lane_bytes": 0,
        "oldest_in_lanes_seconds": 0.0,
        "ring_bytes": 0,
        "ring_limit_bytes": 0,
        "overflow_bytes": 0,
        "overflow_limit_bytes": 0,
        "blocked_calls": 0,
        "blocked_seconds": 0.0,
        "survives": False,
        "place": "memory",
        "place_reason": "",
        "late_records": 0,
    }


def metrics_text(python: str, pools: list[Any], deferred: list[tuple[str, int]]) -> str:
    """Return the versions, as OpenMetrics."""
    labels = f'version="{_options.__version__}",python="{python}",native="no"'
    head = "# TYPE logspool_build info\n# HELP logspool_build What is running.\n"
    return f"{head}logspool_build_info{{{labels}}} 1\n# EOF\n"


def paths() -> dict[str, tuple[int, int, int, str]]:
    """Return the calls of each logger. Stock logging does not count them."""
    return {}


def plans_made() -> int:
    """Return the number of plans."""
    return 0


def exception_texts() -> tuple[int, int]:
    """Return the texts of exceptions by who made them. Stock logging does not count them."""
    return 0, 0


def note_once() -> None:
    """Count a call of a `..._once` function that logged nothing."""
    global _once
    _once += 1


def rule_counts() -> dict[str, int]:
    """Return how many records the rules of `install()` have changed or left out."""
    return {"rewritten": 0, "sampled": 0, "repeated": 0, "over_rate": 0, "once": _once}


# Other processes and earlier ones: their queues are read by native code.


def missing_calls(*, forks: bool = False) -> list[dict[str, Any]]:
    """Return the system calls that the core would need and that do not work."""
    return []


def recovery_counts() -> tuple[int, int]:
    """Return the records of dead processes that were written, and the dropped ones."""
    return 0, 0


def recover(folder: Any = None, paths: list[str] | None = None) -> dict[str, Any]:
    """Return a report that says why the queues in a folder stay."""
    kept: dict[str, list[str]] = {}
    if folder is not None:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".seg"))
        kept = {name.removesuffix(".seg"): [_missing.told()] for name in names}
    return {"delivered": {}, "kept": kept, "removed": [], "discarded": 0, "torn_lines": 0, "refused": 0}


def orphans(folder: Any = None) -> list[dict[str, Any]]:
    """Return the queues of dead processes. Only native code reads them."""
    return []


def sidecars(folder: Any = None) -> list[dict[str, Any]]:
    """Return the files beside log files. Only native code reads them."""
    return []


def running(folder: Any = None) -> list[dict[str, Any]]:
    """Refuse to read the queues of other processes."""
    raise OSError(_missing.told())


def segment_counters(path: Any) -> dict[str, Any] | None:
    """Refuse to read the queue of another process."""
    raise OSError(_missing.told())
