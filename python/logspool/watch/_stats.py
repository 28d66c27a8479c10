"""Counters of logspool, for `stats()`, `metrics_text()` and `recover()`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from logspool import _native
from logspool.base import _in_force, _interpreter
from logspool.watch import _advice


@dataclass(frozen=True)
class LoggerPath:
    """The paths that the calls of one logger took.

    Attributes:
        native: calls whose values went into the queue.
        by_record: enabled calls that made a LogRecord natively, because a filter, a formatter, a handler or a patched
            method has to see it.
        stock: enabled calls that stock logging handled.
        reason: why calls leave the native path now, in words; empty if they take it.
    """

    native: int
    by_record: int
    stock: int
    reason: str

    @property
    def advice(self) -> str:
        """Return what would make the calls cost less, in words; empty if there is nothing to do or to advise."""
        return _advice.advice(self.reason)


@dataclass(frozen=True)
class LevelCount:
    """Records of one level: `offered == accepted + sum(refused.values())` in every snapshot.

    Attributes:
        offered: calls that tried to put a record into the queue.
        accepted: records that were put into the queue, whether or not they are still there.
        refused: records that the queue did not accept, by reason: "queue_full", "reentrant", "no_lane", "no_blob",
            "stale_ids".
        not_durable: calls that had to wait until their record was durable, but returned earlier. The wait took longer
            than durability_timeout, or the file could not be synced. The records are accepted.
    """

    offered: int
    accepted: int
    refused: Mapping[str, int]
    not_durable: int = 0


@dataclass(frozen=True)
class SinkCount:
    """Records of one level at one sink.

    `accepted_for_sink == written + queued + spooled + sum(dropped.values()) + uncertain` in every snapshot.

    Attributes:
        accepted_for_sink: records taken out of the queue for this sink.
        written: records passed to the operating system.
        queued: records that wait, in memory or on tmpfs.
        spooled: records that wait in the spool on disk.
        dropped: dropped records by reason: "sink_closed", "rejected", "overflow_full", "unrenderable",
            "unreadable", "deadline".
        uncertain: records whose write had an unknown outcome. Always 0, because recovery decides such cases.
        not_durable: written records whose sync failed; `sync_error` says whether a later sync succeeded.
    """

    accepted_for_sink: int
    written: int
    queued: int
    spooled: int
    dropped: Mapping[str, int]
    uncertain: int
    not_durable: int = 0


@dataclass(frozen=True)
class SinkStats(Mapping[str, SinkCount]):
    """The state of one file or console, and a mapping from the name of a level to its `SinkCount`.

    Attributes:
        levels: the counts by name of the level, as in the mapping itself.
        bytes_written: bytes passed to the operating system.
        errors: failed writes.
        error: error of the last write; empty if that write succeeded.
        sync_error: error of the last failed sync; empty without a failure or after a later successful sync.
        stuck: whether a write has not returned for 20 ms, or a sync for 5 s. For a service: whether it has acknowledged
            nothing for 5 s.
        closed: whether the sink is closed, so that nothing is written to it any more.
        syncs: number of syncs of the sink.
        cut: written records that were cut because the destination takes no longer ones.
        overflow_bytes: bytes that wait on tmpfs because the sink is slow or unreachable.
        spool_bytes: size of the sink's spool files on disk, in bytes.
        spool_error: why the spool accepts no records; empty if it accepts them.
        oldest_age_seconds: age of the oldest waiting record, in seconds.
        last_write_seconds: time of the last successful write, in seconds since the epoch, UTC; 0.0 if there was none.
    """

    levels: Mapping[str, SinkCount]
    bytes_written: int
    errors: int
    error: str
    sync_error: str
    stuck: bool
    closed: bool
    syncs: int
    cut: int
    overflow_bytes: int
    spool_bytes: int
    spool_error: str
    oldest_age_seconds: float
    last_write_seconds: float

    def __getitem__(self, level: str) -> SinkCount:
        return self.levels[level]

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def total(self, name: str) -> int:
        """Return the sum of a field of `SinkCount` over all levels; for "dropped" also over all reasons."""
        if name == "dropped":
            return sum(sum(count.dropped.values()) for count in self.values())
        return sum(getattr(count, name) for count in self.values())


@dataclass(frozen=True)
class QueueStats:
    """The queue between callers and the collector.

    Attributes:
        lanes: lanes in use, one for each thread that logged.
        records: records in lanes that the collector has not yet taken out.
        waiting_bytes: bytes of the lanes that hold records, including records that are on their way to a sink.
        oldest_age_seconds: age of the oldest record that the collector has not yet taken out, in seconds.
        bytes: size of all lanes, in bytes.
        limit_bytes: maximum of `bytes`.
        overflow_bytes: bytes on tmpfs that were taken out of the lanes and wait for slow or unreachable sinks.
        overflow_limit_bytes: maximum of `overflow_bytes`.
        blocked_calls: calls that waited for room in the queue.
        blocked_seconds: total time that these calls waited, in seconds.
        survives: whether records in the queue survive a kill of the process.
        place: where the queue is: "tmpfs", in its folder; "disk", in a folder on disk that the user set; "memfd", in
            memory that a keeper process also holds; "memory", in memory of this process alone; "" before the first
            record.
        place_reason: why the queue is not in its folder; empty if it is, or if durability="memory" asks for memory.
    """

    lanes: int = 0
    records: int = 0
    waiting_bytes: int = 0
    oldest_age_seconds: float = 0.0
    bytes: int = 0
    limit_bytes: int = 0
    overflow_bytes: int = 0
    overflow_limit_bytes: int = 0
    blocked_calls: int = 0
    blocked_seconds: float = 0.0
    survives: bool = True
    place: str = ""
    place_reason: str = ""


@dataclass(frozen=True)
class DeferredStats:
    """Records of handlers whose formatter runs on a thread, see `deferred`.

    `accepted == formatted + waiting + sum(dropped.values())` in every snapshot.

    Attributes:
        accepted: records that the thread has to format, or has formatted.
        formatted: records whose formatter has run; their lines count at their sink.
        waiting: records that wait for the thread. A kill loses them.
        refused: records that found no room, by reason: "queue_full", "queue_bytes", "blocking_timeout", "own_thread",
            "shutdown", "recursion".
        dropped: accepted records that were not formatted, by reason: "shutdown_timeout".
    """

    accepted: int = 0
    formatted: int = 0
    waiting: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stats:
    """A snapshot of the counters of this process; a forked child counts from zero.

    `print(stats)` shows it as a table.

    Attributes:
        installed: whether `logspool.install()` is in effect.
        paths: enabled calls of all loggers: "native", "by_record" and "stock", as in `LoggerPath`.
        loggers: the same counts by name of the logger, with the reason.
        plans: number of times a call inspected its logger, the logger's parents and their handlers. This happens at the
            first call of a logger and after a change of anything that the plan depends on.
        levels: records by name of the level ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"). A level number
            between two of them counts for the lower one.
        sinks: files and consoles by name.
        queue: the queue itself.
        late_records: records written after a record with a later time stamp, because their thread was descheduled.
        recovered: records of dead processes that this process wrote to their files.
        recovery_discarded: records of dead processes dropped because their terminals and pipes are gone.
        deferred: records of handlers whose formatter runs on a thread.
        exceptions: texts of exceptions by who made them: "native" code, from the kept texts of the frames, or "python",
            whose `traceback` makes those that native code may not read.
        rules: records that the rules of `install()` have changed ("rewritten": secrets replaced or control characters
            escaped) or left out ("sampled", "repeated", "over_rate"), and calls of the `..._once` functions that logged
            nothing ("once"). A record that is left out is not offered, so no other counter has it.
        slow_paths: why native code does something slowly on this interpreter, by what it does: "frames" (finds the
            caller of a call), "dicts" (sees that a module or a handler has changed), "classes" (the same for classes),
            "locks" (takes a handler's lock), "lines" (makes the texts of records).
        native: whether the package has its native module; without it calls are those of stock logging, and are not
            counted.
    """

    installed: bool
    paths: Mapping[str, int]
    loggers: Mapping[str, LoggerPath]
    plans: int
    levels: Mapping[str, LevelCount]
    sinks: Mapping[str, SinkStats]
    queue: QueueStats
    late_records: int
    recovered: int
    recovery_discarded: int
    deferred: DeferredStats = DeferredStats()
    exceptions: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)
    slow_paths: Mapping[str, str] = field(default_factory=dict)
    native: bool = True

    def __str__(self) -> str:
        rows = [f"logspool: {'installed' if self.installed else 'not installed'}"]
        if not self.native:
            rows.append(_interpreter.native_no())
        rows += ["calls: {native} native, {by_record} by record, {stock} stock".format(**self.paths)]
        if self.queue.place_reason:
            rows.append(f"queue: {self.queue.place}, not in its folder: {self.queue.place_reason}")
        for name, count in self.levels.items():
            if count.offered:
                rows.append(f"level {name}: {count.accepted} accepted of {count.offered}{_listed(count.refused)}")
        for name, sink in self.sinks.items():
            dropped: dict[str, int] = {}
            for row in sink.values():
                for reason, number in row.dropped.items():
                    dropped[reason] = dropped.get(reason, 0) + number
            state = f", failing: {sink.error}" if sink.error else ", stuck" if sink.stuck else ""
            on_disk = sink.total("spooled")
            spooled = f"{on_disk} spooled, " if on_disk else ""
            rows.append(
                f"sink {name}: {sink.total('written')} written of {sink.total('accepted_for_sink')}, "
                f"{sink.total('queued')} queued, {spooled}{sink.bytes_written} bytes{_listed(dropped)}{state}"
            )
        if self.deferred.accepted or self.deferred.refused:
            lost = _listed(self.deferred.refused) + _listed(self.deferred.dropped)
            rows.append(f"deferred: {self.deferred.formatted} formatted, {self.deferred.waiting} waiting{lost}")
        if any(self.exceptions.values()):
            rows.append("exceptions: {native} texts by native code, {python} by Python".format(**self.exceptions))
        if any(self.rules.values()):
            rows.append(f"rules: {', '.join(f'{number} {what}' for what, number in self.rules.items() if number)}")
        rows += [f"slow on this Python: {name}: {reason}" for name, reason in self.slow_paths.items()]
        if self.recovered:
            rows.append(f"recovered: {self.recovered} records of dead processes")
        return "\n".join(rows)


@dataclass(frozen=True)
class Report:
    """Result of a recovery.

    Attributes:
        delivered: records appended, by path of the file.
        kept: the queues that remain in the folder: name of the dead process's files -> why they remain, in words.
        removed: names of dead processes whose files are gone.
        discarded: dropped records: for terminals and pipes that no longer exist, or for a file that was truncated.
        torn_lines: lines that a kill cut off and whose remaining text is unknown; each was ended with a line feed.
        refused: dropped records: their receiver refuses them for ever.
    """

    delivered: Mapping[str, int]
    kept: Mapping[str, list[str]]
    removed: list[str]
    discarded: int
    torn_lines: int = 0
    refused: int = 0

    @property
    def records(self) -> int:
        """Number of records appended to all files."""
        return sum(self.delivered.values())


def _sink(sink: Mapping[str, Any]) -> SinkStats:
    levels = {
        name: SinkCount(
            accepted_for_sink=accepted,
            written=sink["written"][name],
            queued=sink["queued"][name],
            spooled=sink["spooled"][name],
            dropped=_of_level(sink["dropped"], name),
            uncertain=0,
            not_durable=sink["not_durable"][name],
        )
        for name, accepted in sink["accepted"].items()
    }
    state = {item.name: sink[item.name] for item in fields(SinkStats) if item.name != "levels"}
    return SinkStats(levels=levels, **state)


def _of_level(by_reason: Mapping[str, Mapping[str, int]], level: str) -> dict[str, int]:
    return {reason: counts[level] for reason, counts in by_reason.items() if counts[level]}


def _listed(by_reason: Mapping[str, int]) -> str:
    return "".join(f", {number} {reason}" for reason, number in sorted(by_reason.items()))


#: Loggers whose calls are native, but other code makes their text -> why.
reasons_of_texts: dict[str, str] = {}


def stats() -> Stats:
    """Return the current counters of logspool. Thread-safe."""
    loggers = {name: LoggerPath(*values) for name, values in sorted(_native.paths().items())}
    for name, reason in reasons_of_texts.items():
        path = loggers.get(name)
        if path is not None and not path.reason:
            loggers[name] = replace(path, reason=reason)
    snapshot = _native.snapshot()
    delivered, discarded = _native.recovery_counts()
    deferring = sys.modules.get("logspool.thread._deferring")
    if snapshot is None:
        levels = {name: LevelCount(0, 0, {}) for name in _native.counter_names()["levels"]}
        sinks: dict[str, SinkStats] = {}
        queue = QueueStats()
    else:
        levels = {
            name: LevelCount(
                offered, snapshot["accepted"][name], _of_level(snapshot["refused"], name), snapshot["not_durable"][name]
            )
            for name, offered in snapshot["offered"].items()
        }
        sinks = {sink["name"]: _sink(sink) for sink in snapshot["sinks"]}
        queue = QueueStats(
            lanes=snapshot["lanes"],
            records=sum(snapshot["in_lanes"].values()),
            waiting_bytes=snapshot["lane_bytes"],
            oldest_age_seconds=snapshot["oldest_in_lanes_seconds"],
            bytes=snapshot["ring_bytes"],
            limit_bytes=snapshot["ring_limit_bytes"],
            overflow_bytes=snapshot["overflow_bytes"],
            overflow_limit_bytes=snapshot["overflow_limit_bytes"],
            blocked_calls=snapshot["blocked_calls"],
            blocked_seconds=snapshot["blocked_seconds"],
            survives=snapshot["survives"],
            place=snapshot["place"],
            place_reason=snapshot["place_reason"],
        )
    return Stats(
        installed=options_in_force() is not None,
        paths={
            "native": sum(path.native for path in loggers.values()),
            "by_record": sum(path.by_record for path in loggers.values()),
            "stock": sum(path.stock for path in loggers.values()),
        },
        loggers=loggers,
        plans=_native.plans_made(),
        levels=levels,
        sinks=sinks,
        queue=queue,
        late_records=snapshot["late_records"] if snapshot else 0,
        recovered=delivered,
        recovery_discarded=discarded,
        deferred=DeferredStats() if deferring is None else DeferredStats(*deferring.counts()),
        exceptions=dict(zip(("native", "python"), _native.exception_texts())),
        rules=_native.rule_counts(),
        slow_paths=_interpreter.slow_paths(),
        native=not _interpreter.without_core,
    )


def options_in_force() -> Mapping[str, Any] | None:
    """Return the options of `install()`, or None if it is not in effect. Imports nothing."""
    return _in_force.installed


def options_of_queue() -> Mapping[str, Any] | None:
    """Return the options of the queue, from `install()` or the first handler; None if there is neither."""
    return _in_force.of_queue()


#: The last line of OpenMetrics.
_END = "# EOF\n"


def metrics_text() -> str:
    """Return the counters, thread pools included, as OpenMetrics 1.0 text.

    Serve it as `application/openmetrics-text; version=1.0.0; charset=utf-8`. Before the first record, the text has no
    counters of logging, only the build information. Thread-safe.
    """
    version = ".".join(map(str, sys.version_info[:3]))
    pools = sys.modules.get("logspool.pool._pool")
    deferring = sys.modules.get("logspool.thread._deferring")
    lost: dict[str, int] = {}
    for by_reason in () if deferring is None else deferring.counts()[3:]:
        for reason, count in by_reason.items():
            lost[reason] = lost.get(reason, 0) + count
    text = _native.metrics_text(version, [] if pools is None else pools.by_name(), sorted(lost.items()))
    loop_lag = sys.modules.get("logspool.watch._loop_lag")
    return text if loop_lag is None else f"{text.removesuffix(_END)}{loop_lag.metrics()}{_END}"


def recover(path: str | os.PathLike[str] | None = None) -> Report:
    """Write the records that dead processes of this user left in shared memory to the files of these records, now.

    `install()` does this by itself for the files of its handlers, and a handler that is made later does it for its
    file. Every record is written to its file once. If a program without logspool also writes to the file, a kill may
    leave one torn line. Records for terminals and pipes of dead processes are dropped and counted. Waits for the files.
    Thread-safe.

    Args:
        path: a queue folder; None means the folder of this process.

    Returns:
        The records written to each file, and the records that remain, with reasons.

    Raises:
        FileNotFoundError: `path` does not exist.
        OSError: the folder cannot be read, or other users can access it.
    """
    if path is not None:
        path = os.fspath(path)
        os.stat(path)
    elif options_in_force() is None:
        from logspool.process import _configuration

        path = _configuration.text_of("queue_dir")
    return Report(**_native.recover(folder=path))
