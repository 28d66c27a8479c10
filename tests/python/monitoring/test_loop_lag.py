"""`logspool.asgi.watch_loop()` measures how late an event loop runs its timers."""

import pytest

pytestmark = pytest.mark.real

PROGRAM = """\
import asyncio, os, re, threading, time
import logspool, logspool.asgi

def lags():
    text = logspool.metrics_text()
    assert text.endswith("# EOF\\n") and text.count("# EOF") == 1, text
    return {name: float(value) for name, value in re.findall(r"^logspool_loop_lag_seconds_(\\S+) (\\S+)$", text, re.M)}

def above(seconds):
    found = lags()
    return found["count"] - found[f'bucket{{le="{seconds}"}}']

async def run(work, timers):
    logspool.asgi.watch_loop()
    logspool.asgi.watch_loop()
    before = lags().get("count", 0)
    work()
    while lags()["count"] < before + timers:
        await asyncio.sleep(0.01)
"""

BLOCKED = (
    PROGRAM
    + """
try:
    logspool.asgi.watch_loop()
except RuntimeError as error:
    assert "no event loop of asyncio runs (fix:" in str(error), error
else:
    raise AssertionError
assert lags() == {}

began = time.monotonic()
asyncio.run(run(lambda: None, 3))
# One chain of timers, although it was started twice.
assert lags()["count"] <= (time.monotonic() - began) / 0.05 + 1

asyncio.run(run(lambda: time.sleep(1.2), 1))
assert above("1.0") >= 1 and lags()["sum"] > 1.0, lags()
assert lags()['bucket{le="+Inf"}'] == lags()["count"] >= 4

thread = threading.Thread(target=lambda: asyncio.run(run(lambda: None, 2)))
thread.start()
thread.join()
assert lags()["count"] >= 6

child = os.fork()
if child == 0:
    os._exit(lags() != {})
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
)

COLLECTED = (
    PROGRAM
    + """
import prometheus_client, logspool.prometheus

registry = prometheus_client.CollectorRegistry()
registry.register(logspool.prometheus.Collector())
asyncio.run(run(lambda: None, 1))
found = registry.get_sample_value("logspool_loop_lag_seconds_count")
assert found == lags()["count"] >= 1, found
print("done")
"""
)


def test_a_blocked_loop_is_in_the_histogram_and_a_child_starts_from_zero(run_program):
    outcome, _ = run_program(BLOCKED, deadline_seconds=60)

    assert outcome.expect_success().out == b"done\n"


def test_the_prometheus_collector_exports_the_loop_lag(run_program):
    pytest.importorskip("prometheus_client")
    outcome, _ = run_program(COLLECTED, deadline_seconds=60)

    assert outcome.expect_success().out == b"done\n"
