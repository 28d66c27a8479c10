"""Synced files, as the system sees them, rotated files too; a failed sync is made good, or its records are counted."""

import shutil
import subprocess
import sys

import pytest

from suite import programs

pytestmark = pytest.mark.real

PROGRAM = """\
import logging, sys, time
import logspool
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(durability="sync", durability_timeout=60.0)
log = logging.getLogger("app")
began = time.monotonic()
for number in range(10):
    log.info("record %d", number)
stats = logspool.stats()
sink = next(iter(stats.sinks.values()))
print(
    sum(row.not_durable for row in stats.levels.values()), sink.total("not_durable"), logspool.health().status,
    time.monotonic() - began < 30,
)
"""


def run(folder, queue_dir, program: str, *options: str) -> list[str]:
    """Run a program under strace. Return its output; the file `trace` has its calls."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace, which shows fdatasync(2) and makes it fail")
    ran = subprocess.run(
        [strace, "-f", "-qq", "-o", str(folder / "trace"), *options, sys.executable, "-c", program],
        env=programs.environment(programs.INSTALLED, queue_dir),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if ran.returncode and "ptrace" in ran.stderr:
        pytest.skip(f"strace cannot trace here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def failing(folder, queue_dir, which: str, program: str = PROGRAM) -> tuple[list[str], list[str]]:
    """Run a program with the syncs `which` failing. Return its output and its lines."""
    inject = ("-e", "trace=fdatasync", "-e", f"inject=fdatasync:error=EIO:when={which}")
    printed = run(folder, queue_dir, program, *inject)
    return printed, (folder / "app.log").read_text().splitlines()


EXPECTED = [f"record {number}" for number in range(10)]


def test_a_sync_that_fails_once_is_repeated(tmp_path, queue_dir):
    printed, lines = failing(tmp_path, queue_dir, "3")

    assert printed == ["0", "0", "ok", "True"]
    assert lines == EXPECTED, "what was written again stands where it stood"
    failed = [line for line in (tmp_path / "trace").read_text().splitlines() if "EIO" in line]
    assert len(failed) == 1


def test_permanently_failing_syncs_are_counted_and_raise_no_error(tmp_path, queue_dir):
    printed, lines = failing(tmp_path, queue_dir, "5+")

    assert printed == ["6", "6", "degraded", "True"]
    assert lines == EXPECTED


UNTIL_MADE_GOOD = (
    PROGRAM
    + """\
def error():
    return "".join(sink.sync_error for sink in logspool.stats().sinks.values())

failed = error()
ends = time.monotonic() + 30
while error() and time.monotonic() < ends:
    time.sleep(0.01)
print("Input/output" in failed, error() or "none", logspool.flush(level="durable"))
print(any("power cut" in reason for reason in logspool.health().reasons))
"""
)


def test_a_disk_that_fails_for_a_while_gets_all_records_later(tmp_path, queue_dir):
    # Both syncs of the last record, and two more tries.
    printed, lines = failing(tmp_path, queue_dir, "10..13", UNTIL_MADE_GOOD)

    assert printed == ["1", "1", "degraded", "True", "True", "none", "True", "False"]
    assert lines == EXPECTED, "what was written again stands where it stood"
    calls = [line for line in (tmp_path / "trace").read_text().splitlines() if "fdatasync" in line]
    assert sum("EIO" in line for line in calls) == 4
    assert "EIO" not in calls[-1]


ROTATING = """\
import logging, logging.handlers
import logspool
handler = logging.handlers.RotatingFileHandler("app.log", maxBytes=100, backupCount=9)
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
logspool.install(durability="interval", sync_interval=3600.0)
for number in range(3):
    log.info("record %60d", number)
    logspool.flush()
print(logspool.flush(level="durable"))
"""


def test_a_rotated_file_is_synced_before_the_next_one_is_written(tmp_path, queue_dir):
    printed = run(tmp_path, queue_dir, ROTATING, "-y", "-e", "trace=fdatasync,fsync,write,rename")

    assert printed == ["True"]
    calls = []
    for line in (tmp_path / "trace").read_text().splitlines():
        call = line.split(maxsplit=1)[1]
        if "app.log" in call and (call.startswith("fdatasync") or "record" in call):
            calls.append(call.split("(")[0])
    assert calls == ["write", "fdatasync"] * 3
