"""Liveness fails only if a thread does nothing for the given time while records wait for it."""

import copy

import pytest

from logspool.watch import _monitor

pytestmark = pytest.mark.real

LEVELS = {"INFO": 0}
SINK = {
    "name": "/var/log/app.log",
    "queued": {"INFO": 3},
    "spooled": LEVELS,
    "dropped": {"rejected": LEVELS},
    "closed": False,
    "error": "",
    "bytes_written": 100,
    "errors": 0,
    "syncs": 0,
    "oldest_age_seconds": 1000.0,
}
SNAPSHOT = {
    "in_lanes": {"INFO": 2},
    "batches": 5,
    "heartbeat": 7,
    "oldest_in_lanes_seconds": 1000.0,
    "sinks": [SINK],
}


@pytest.fixture
def stalled(monkeypatch):
    """Give a function that advances the time by `seconds` and checks the snapshot, with some values changed."""
    now = [0.0]
    monkeypatch.setattr(_monitor.time, "monotonic", lambda: now[0])
    progress = _monitor._Progress(30.0)

    def look(seconds, sink=(), **changed):
        now[0] += seconds
        snapshot = copy.deepcopy({**SNAPSHOT, **changed})
        snapshot["sinks"][0].update(sink)
        return progress.stalled(snapshot)

    return look


def test_both_threads_are_named_after_too_long_without_progress(stalled):
    assert stalled(0) == stalled(29) == []

    collector, writer = stalled(2)
    assert collector.startswith("the collector has done nothing for 31 seconds, and 2 records wait for it (fix: ")
    assert writer.startswith("the writer of /var/log/app.log has done nothing for 31 seconds, and 3 records wait")


@pytest.mark.parametrize("sink", [{"bytes_written": 101}, {"errors": 1}, {"syncs": 1}, {"dropped": {"a": {"INFO": 1}}}])
def test_progress_of_a_writer_resets_the_timer(stalled, sink):
    stalled(0)
    stalled(29, sink, heartbeat=8)

    assert stalled(29, sink, heartbeat=8) == []
    assert len(stalled(2, sink, heartbeat=8)) == 2


@pytest.mark.parametrize(
    "sink",
    [{"closed": True}, {"error": "no space left on device"}, {"name": "tcp://logs:5170"}, {"queued": LEVELS}],
    ids=["closed", "error", "service", "nothing waits"],
)
def test_a_sink_failure_that_a_restart_cannot_fix_counts_as_alive(stalled, sink):
    stalled(0, sink)

    assert [reason.partition(" has")[0] for reason in stalled(100, sink)] == ["the collector"]


def test_records_that_have_just_arrived_do_not_count_as_stalled(stalled):
    young = {"oldest_in_lanes_seconds": 1.0, "sink": {"oldest_age_seconds": 1.0}}
    stalled(0, **young)

    assert stalled(100, **young) == []


def test_an_idle_process_is_alive(stalled):
    idle = {"in_lanes": LEVELS, "sink": {"queued": LEVELS}}
    stalled(0, **idle)

    assert stalled(1000, **idle) == []
    # The time starts at the first check that finds records.
    assert stalled(0) == []


def test_nothing_is_reported_before_the_first_record():
    assert _monitor._Progress(1.0).stalled(None) == []
