"""The counters of logspool for `prometheus_client`.

    from prometheus_client import REGISTRY
    import logspool.prometheus

    REGISTRY.register(logspool.prometheus.Collector())

They are read at the scrape, so logging calls do nothing for them.
"""

from __future__ import annotations

import os

from logspool import _native
from logspool.watch import _observe, _stats

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError as _missing:
    raise ImportError(
        "logspool.prometheus needs the package prometheus_client (fix: pip install 'logspool[prometheus]')"
    ) from _missing

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from prometheus_client.core import Metric

__all__ = ["Collector"]


class Collector:
    """Gives `prometheus_client` the counters of logspool. Thread-safe.

    Each process has a queue of its own. A process alone gives all its metrics, as in `logspool.metrics_text()`. With
    several workers on one port, each scrape reaches another worker; then one worker reads the counters of all
    workers from shared memory, and each sample has the label `pid`. These are the counters and the depth of the queues:
    durations, ages and the state of outputs are known only inside of each process.

    Args:
        workers: whether to read all processes of this process group, such as the workers of gunicorn or of
            `uvicorn --workers`. None decides by the environment: yes if PROMETHEUS_MULTIPROC_DIR is set.
    """

    def __init__(self, *, workers: bool | None = None) -> None:
        if workers is not None and not isinstance(workers, bool):
            raise TypeError(f"workers takes True, False or None, not {workers!r}")
        self._workers = workers

    def describe(self) -> list[Metric]:
        """Return nothing: the metrics depend on the records of the process."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now. Called by `prometheus_client` at each scrape."""
        workers = self._workers
        if workers is None:
            workers = "PROMETHEUS_MULTIPROC_DIR" in os.environ or "prometheus_multiproc_dir" in os.environ
        if workers:
            yield from _of_workers()
        else:
            yield from text_string_to_metric_families(_stats.metrics_text())  # type: ignore[no-untyped-call]


def _of_workers() -> Iterator[Metric]:
    """Yield the metrics that can be read from outside, of all processes of this process group."""
    records = CounterMetricFamily(
        "logspool_records", "Records taken out of the queue's lanes.", labels=["level", "pid"]
    )
    dropped = CounterMetricFamily(
        "logspool_records_dropped",
        "Records refused at the call or dropped at a sink.",
        labels=["reason", "level", "pid"],
    )
    late = CounterMetricFamily(
        "logspool_late_records", "Records that came after a later one had been batched.", labels=["pid"]
    )
    written = CounterMetricFamily("logspool_records_written", "Records handed to the kernel.", labels=["sink", "pid"])
    written_bytes = CounterMetricFamily("logspool_bytes_written", "Bytes handed to the kernel.", labels=["sink", "pid"])
    errors = CounterMetricFamily("logspool_sink_errors", "Failed writes.", labels=["sink", "pid"])
    waiting = GaugeMetricFamily("logspool_queue_records", "Records waiting.", labels=["queue", "pid"])
    waiting_bytes = GaugeMetricFamily("logspool_queue_bytes", "Bytes waiting.", labels=["queue", "pid"])
    for process in [_own(), *_observe.of_this_group()]:
        if process is None:
            continue
        pid, counters = str(process["pid"]), process["counters"]
        for level, count in counters["batched"].items():
            records.add_metric([level, pid], count)
        late.add_metric([pid], counters["late_records"])
        for reason, levels in _dropped(counters).items():
            for level, count in levels.items():
                dropped.add_metric([reason, level, pid], count)
        for name, sink in _observe.by_name(counters["sinks"]).items():
            written.add_metric([name, pid], sink["written"])
            written_bytes.add_metric([name, pid], sink["bytes_written"])
            errors.add_metric([name, pid], sink["errors"])
        waiting.add_metric(["sinks", pid], sum(sink["waiting"] for sink in counters["sinks"]))
        waiting_bytes.add_metric(["lanes", pid], counters["lane_bytes"])
        waiting_bytes.add_metric(["overflow", pid], process["overflow_bytes"])
    yield from (records, dropped, late, written, written_bytes, errors, waiting, waiting_bytes)


def _dropped(counters: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    total = {reason: dict(levels) for reason, levels in counters["refused"].items()}
    for sink in counters["sinks"]:
        for reason, levels in sink["dropped"].items():
            row = total.setdefault(reason, dict.fromkeys(levels, 0))
            for level, count in levels.items():
                row[level] += count
    return total


def _own() -> dict[str, Any] | None:
    """Return the counters of this process in the form of `_observe`, None if it has logged nothing."""
    snapshot = _native.snapshot()
    if snapshot is None:
        return None
    sinks = [
        {**sink, "waiting": sum(sink["queued"].values()) + sum(sink["spooled"].values())} for sink in snapshot["sinks"]
    ]
    batched = {level: count - snapshot["in_lanes"][level] for level, count in snapshot["accepted"].items()}
    return {
        "pid": os.getpid(),
        "overflow_bytes": snapshot["overflow_bytes"],
        "counters": {**snapshot, "batched": batched, "sinks": sinks},
    }
