"""Records that were refused because the queue was full are told, at the sink or at the end of the program."""

import subprocess
import sys

import pytest

from suite import lines, programs, waiting

DEADLINE_SECONDS = 100

# The collector tells of refused records at most once a second, with the next records that it takes.
PROGRAM = """\
import logging, pathlib, sys
from suite import side, stats_view

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
side.install(shutdown_timeout=60, fallback=None)
log = logging.getLogger("app")
calls = 0
while stats_view.snapshot().refused() < 1000:
    for _ in range(100):
        log.info("%s", "x" * 30_000)
    calls += 100
pathlib.Path("calls").write_text(str(calls))
"""


@pytest.mark.real
def test_refused_records_of_the_last_second_are_told_too(tmp_path, queue_dir):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=programs.environment(programs.INSTALLED, queue_dir),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Nobody reads the pipe before the queue was full for a thousand records.
    calls = int(waiting.until(lambda: _text(tmp_path / "calls"), DEADLINE_SECONDS, "a full queue"))
    out, err = program.communicate(timeout=DEADLINE_SECONDS)

    assert program.returncode == 0
    written = out.splitlines()
    records = sum(line.startswith(b"xxx") for line in written)
    assert calls - records == lines.refusals_told(written, err) >= 1000, err


def _text(path):
    return path.read_text() if path.exists() else ""
