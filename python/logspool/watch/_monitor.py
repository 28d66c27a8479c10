"""What `/metrics`, `/livez` and `/readyz` answer. The apps in `logspool.asgi` and `logspool.wsgi` serve it."""

from __future__ import annotations

import json
import time

from logspool import _native
from logspool.base import _locks
from logspool.watch import _health, _stats

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from typing import Any

METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
JSON_TYPE = "application/json"

#: Default of `stalled_seconds`. Chosen: a write to a disk that is merely slow returns within a third of it, and an
#: orchestrator that asks every 10 seconds sees three failures before it restarts the process.
STALLED_SECONDS = 30.0

#: Default of `full_percent`. Chosen: a fifth of the overflow is left for the requests that are already here.
FULL_PERCENT = 80.0

_STATUS = {200: "200 OK", 404: "404 Not Found", 405: "405 Method Not Allowed", 503: "503 Service Unavailable"}


class Monitor:
    """Answers the requests of monitoring systems. Thread-safe."""

    def __init__(self, *, stalled_seconds: float, full_percent: float) -> None:
        for name, value, limit in (
            ("stalled_seconds", stalled_seconds, float("inf")),
            ("full_percent", full_percent, 100.0),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name} takes a number, not {value!r}")
            if not 0 < value <= limit:
                raise ValueError(f"{name}: {value!r} is not {'above 0' if limit > 100 else 'above 0 and at most 100'}")
        self._full_percent = full_percent
        self._progress = _Progress(stalled_seconds)

    def answer(self, method: str, path: str) -> tuple[str, str, bytes]:
        """Return status, content type and body for a request. The last part of the path selects the answer."""
        route = path.rstrip("/").rpartition("/")[2]
        if route not in ("metrics", "livez", "readyz"):
            return self._json(404, {"status": "not found", "reasons": ["there are /metrics, /livez and /readyz"]})
        if method not in ("GET", "HEAD"):
            return self._json(405, {"status": "wrong method", "reasons": ["use GET or HEAD"]})
        if route == "metrics":
            return _STATUS[200], METRICS_TYPE, _stats.metrics_text().encode()
        if route == "livez":
            reasons = self._progress.stalled(_native.snapshot())
            return self._json(503 if reasons else 200, {"status": "stalled" if reasons else "ok", "reasons": reasons})
        health = _health.health()
        full = _full(self._full_percent)
        ready = health.status != "failing" and not full
        answer = {"status": health.status, "reasons": full + health.reasons, "notes": health.notes}
        return self._json(200 if ready else 503, {"ready": ready, **answer})

    @staticmethod
    def _json(status: int, answer: Mapping[str, Any]) -> tuple[str, str, bytes]:
        return _STATUS[status], JSON_TYPE, json.dumps(answer).encode() + b"\n"


def _full(limit: float) -> list[str]:
    """Return why the queue counts as too full, if it does."""
    queue = _stats.stats().queue
    percent = 100 * queue.overflow_bytes / queue.overflow_limit_bytes if queue.overflow_limit_bytes else 0.0
    if percent < limit:
        return []
    return [
        f"the queue is {percent:.0f} % full: outputs take records too slowly (fix: see stats().sinks for which and "
        "why; a spool_dir gives the records room on disk)"
    ]


class _Progress:
    """Tells which threads of logspool have done nothing for a while although records wait for them.

    It compares their counters with those of earlier calls. So the first call reports nothing, and
    only a thread that hangs inside the process is reported: a sink with an error is retried, and a service without
    answers is no fault of this process.
    """

    def __init__(self, stalled_seconds: float) -> None:
        self._seconds = stalled_seconds
        self._lock = _locks.guard()
        #: By name of the task: its counters, and the time since when they are unchanged.
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def stalled(self, snapshot: Mapping[str, Any] | None) -> list[str]:
        """Return a line for each stalled thread."""
        if snapshot is None:
            return []
        now = time.monotonic()
        reasons = []
        with self._lock:
            seen, self._seen = self._seen, {}
            for task, done, age, waits in self._tasks(snapshot):
                before = seen.get(task)
                since = before[1] if before is not None and before[0] == done else now
                self._seen[task] = (done, since)
                stalled = min(now - since, age)
                if stalled > self._seconds:
                    reasons.append(
                        f"{task} has done nothing for {stalled:.0f} seconds, and {waits} records wait for it (fix: see "
                        "where its thread hangs, in /proc/PID/task/*/stack or by gdb; a restart repairs it only if the "
                        "disk or the pipe behind it works again)"
                    )
        return reasons

    @staticmethod
    def _tasks(snapshot: Mapping[str, Any]) -> list[tuple[str, Hashable, float, int]]:
        """Return for each thread with waiting records: its task, its counters, the records' age and number."""
        tasks: list[tuple[str, Hashable, float, int]] = []
        in_lanes = sum(snapshot["in_lanes"].values())
        if in_lanes:
            rounds = (snapshot["batches"], snapshot["heartbeat"])
            tasks.append(("the collector", rounds, snapshot["oldest_in_lanes_seconds"], in_lanes))
        for sink in snapshot["sinks"]:
            waits = sum(sink["queued"].values()) + sum(sink["spooled"].values())
            if waits and not sink["closed"] and not sink["error"] and "://" not in sink["name"]:
                dropped = sum(sum(levels.values()) for levels in sink["dropped"].values())
                done = (sink["bytes_written"], sink["errors"], sink["syncs"], dropped)
                tasks.append((f"the writer of {sink['name']}", done, sink["oldest_age_seconds"], waits))
        return tasks
