"""Report in words whether logspool works as it should in this process."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from logspool import _native
from logspool.base import _interpreter, _locks
from logspool.watch import _stats

#: Seconds for which lost records are reported after they were noticed. Chosen: a monitor that asks every half minute
#: sees them twice. The counters in `stats()` keep them until the process ends.
LOSS_SHOWN_SECONDS = 60.0

_lock = _locks.guard()


class _Notice:
    """Reports for a while that a counter has grown."""

    def __init__(self) -> None:
        self._count = 0
        self._at: float | None = None

    def are_new(self, count: int) -> bool:
        now = time.monotonic()
        with _lock:
            if count != self._count:
                # A smaller count means that this is a forked child, which counts from zero.
                self._at = now if count > self._count else None
                self._count = count
            return self._at is not None and now - self._at <= LOSS_SHOWN_SECONDS


_losses = _Notice()
_syncs = _Notice()


@dataclass(frozen=True)
class Health:
    """The state of logspool in this process.

    Attributes:
        status: "ok"; "degraded": works, but records were dropped or are less safe than requested; "failing": an output
            accepts no records.
        reasons: the problems, each with its fix; empty if there are none.
        notes: guarantees that are weaker on this system but cost no record, each with its fix.
    """

    status: str
    reasons: list[str]
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.status == "ok"


def health() -> Health:
    """Return whether records reach their outputs at the moment. Thread-safe.

    Dropped records are reported for 60 seconds after the call of `health()` that noticed them; `stats()` has the total.
    """
    stats = _stats.stats()
    failing, degraded = [], []
    for name, sink in stats.sinks.items():
        if sink.closed:
            continue
        if "://" in name and (sink.error or sink.stuck):
            # The text of a TLS error contains its fix.
            fix = "look whether the service runs and can be reached, they are sent then"
            why = sink.error or "it does not answer"
            waiting = f"{_waiting(sink)} records wait"
            told = f"{why}; {waiting}" if "(fix: " in why else f"{why}; {waiting} (fix: {fix})"
            failing.append(f"{name} takes no records: {told}")
        elif sink.error:
            failing.append(
                f"{name} cannot be written: {sink.error}; {_waiting(sink)} records wait "
                "(fix: make it writable again, they are written then)"
            )
        elif sink.stuck:
            failing.append(
                f"{name} is stuck in a write; {_waiting(sink)} records wait "
                "(fix: look what its disk, pipe or terminal waits for)"
            )
        if sink.spool_error:
            degraded.append(
                f"the spool of {name} takes no records: {sink.spool_error}; they wait on tmpfs, while that has room "
                "(fix: make room in spool_dir, or give a larger spool_bytes)"
            )
    # A missing call is the cause of a queue in memory, so only one of them is reported.
    degraded += missing_calls(costs_records=True) or _memory(stats)
    degraded += _dropped(stats)
    degraded += _not_durable(stats)
    degraded += _left_by_others()
    status = "failing" if failing else "degraded" if degraded else "ok"
    notes = [note for note in [_interpreter.native_no()] if note] + missing_calls(costs_records=False)
    return Health(status, failing + degraded, notes)


def missing_calls(*, costs_records: bool) -> list[str]:
    """Return a line for each system call that does not work here: those that cost records, or the other ones."""
    options = _stats.options_of_queue()
    if costs_records and options is not None and options["durability"] == "memory":
        return []
    return [
        f"{call['name']} is refused here ({os.strerror(call['errno'])}): {call['weaker']} (fix: {call['fix']})"
        for call in _native.missing_calls()
        if call["costs_records"] == costs_records
    ]


def _waiting(sink: _stats.SinkStats) -> int:
    return sink.total("queued") + sink.total("spooled")


def _memory(stats: _stats.Stats) -> list[str]:
    options = _stats.options_of_queue()
    if _interpreter.without_core or stats.queue.survives or (options is not None and options["durability"] == "memory"):
        return []
    if stats.queue.place == "memory" and not stats.queue.place_reason:
        # This copy of logspool has no queue: another copy in this process owns the queue. That is reported elsewhere.
        return []
    fix = "make room on /dev/shm, or name a folder on another tmpfs by LOGSPOOL_QUEUE_DIR, and start the program again"
    if stats.queue.place == "memfd":
        what = "the keeper of the queue in memory has ended, or reads nothing; a kill now loses the queued records"
    elif stats.queue.place == "memory":
        what = f"the queue is in plain memory and does not survive a kill: {stats.queue.place_reason}"
    else:
        what = "the file of the queue was removed from its folder; a kill now loses the queued records"
    return [f"{what} (fix: {fix})"]


def _dropped(stats: _stats.Stats) -> list[str]:
    refused = sum(sum(level.refused.values()) for level in stats.levels.values())
    dropped = sum(sink.total("dropped") for sink in stats.sinks.values())
    deferred = sum(stats.deferred.refused.values()) + sum(stats.deferred.dropped.values())
    if not _losses.are_new(refused + dropped + deferred):
        return []
    reasons = []
    if deferred:
        reasons.append(
            f"{deferred} records found no room before their deferred formatter, or no time at the end, since the "
            "process began (fix: a faster formatter, or one that runs in the call)"
        )
    if refused:
        reasons.append(
            f"{refused} records were refused at the call since the process began (fix: a larger queue_bytes, or a "
            "longer blocking_timeout)"
        )
    if dropped:
        reasons.append(
            f"{dropped} records were dropped at their output since the process began (fix: see stats().sinks for "
            "which and why)"
        )
    return reasons


def _not_durable(stats: _stats.Stats) -> list[str]:
    calls = sum(level.not_durable for level in stats.levels.values())
    records = sum(sink.total("not_durable") for sink in stats.sinks.values())
    if not _syncs.are_new(calls + records):
        return []
    reasons = []
    if calls:
        reasons.append(
            f"{calls} calls returned before their record was durable since the process began (fix: look how busy the "
            "disk is; a longer durability_timeout waits longer)"
        )
    # If no error is left, a later sync has written what the failed sync did not.
    if errors := [f"{name}: {sink.sync_error}" for name, sink in stats.sinks.items() if sink.sync_error]:
        reasons.append(
            f"{records} written records could not be synced since the process began, and a power cut may take them: "
            f"{'; '.join(errors)} (fix: check the system's messages about the disk)"
        )
    return reasons


def _left_by_others() -> list[str]:
    options = _stats.options_of_queue()
    if options is None or _interpreter.without_core:
        return []
    try:
        orphans = _native.orphans(options["queue_dir"])
    except OSError:
        return []
    reasons = []
    if waiting := [orphan["waiting"] for orphan in orphans if orphan["waiting"]]:
        killed = f"{len(waiting)} killed process{'es' if len(waiting) > 1 else ''}"
        reasons.append(
            f"{sum(waiting)} records of {killed} are not in their files yet; a process that lives tries again "
            "(fix: `python -m logspool recover` writes them, or names the reason why not)"
        )
    if beyond := [orphan["bytes"] for orphan in orphans if orphan["beyond_cap"]]:
        reasons.append(
            f"{len(beyond)} dead processes left {sum(beyond)} bytes in shared memory beyond its limit "
            "(fix: python -m logspool recover)"
        )
    return reasons
