"""Extreme timeouts: zero, endless, and values that are refused."""

import json
import os

import pytest

pytestmark = pytest.mark.real

FLUSHES = """\
import json, logging, time
import logspool

handler = logging.FileHandler("fifo")
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
logspool.install(shutdown_timeout=0)
for _ in range(3):
    log.info("%s", "x" * 60_000)
print(json.dumps([logspool.flush(seconds, level) for seconds in (-0.0, 0) for level in ("written", "durable")]))
for seconds in (-1, float("-inf"), float("nan"), "1", True):
    try:
        logspool.flush(seconds, "durable")
    except (TypeError, ValueError) as error:
        print(json.dumps(str(error)))
"""


def test_a_flush_with_timeout_zero_returns_at_once(run_program, tmp_path):
    folder = tmp_path / "installed"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    # The FIFO is open for reading, but no process reads from it.
    end = os.open(folder / "fifo", os.O_RDWR)
    try:
        outcome, _ = run_program(FLUSHES)
    finally:
        os.close(end)

    told = [json.loads(line) for line in outcome.expect_success().out.splitlines()]
    assert told == [
        [False] * 4,
        "timeout must be 0 or more seconds, or None, not -1",
        "timeout must be 0 or more seconds, or None, not -inf",
        "timeout must be a number of seconds or None, not nan",
        "timeout must be a number of seconds or None, not '1'",
        "timeout must be a number of seconds or None, not True",
    ]


ENDLESS = """\
import logging
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
logging.info("first")
print([logspool.flush(seconds, level) for seconds in (float("inf"), 1e300) for level in ("written", "durable")])
"""


def test_a_flush_without_timeout_returns_when_it_is_done(run_program):
    outcome, _ = run_program(ENDLESS)

    assert outcome.expect_success().out == b"[True, True, True, True]\n"
