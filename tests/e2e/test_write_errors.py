"""Targets that refuse bytes: drops are counted by reason, the sums agree at every moment, and writing resumes."""

import json
import re

import pytest

from suite import lines, mounts, queue_folder

pytestmark = pytest.mark.real

_PRELUDE = """\
import json, logging, os, resource, sys, threading, time
from suite import side, stats_view

def report(name):
    found = stats_view.snapshot()
    with open(name, "w") as file:
        json.dump({
            "offered": found.offered(), "refused": found.refused(), "dropped": found.dropped(),
            "written": found.written(), "waiting": found.waiting(), "broken": found.broken_identities(),
        }, file)

def configure(target):
    logging.basicConfig(filename=target, level=logging.INFO, format="%(message)s")
    side.install()

log = logging.getLogger("app")
"""


def _report(folder, name):
    return json.loads((folder / name).read_text())


DEV_FULL = (
    _PRELUDE
    + """\
configure("/dev/full")
for number in range(1000):
    log.info("main %d end", number)
for number in range(200):
    log.error("error %d end", number)
import logspool
logspool.flush(2)
report("full.json")
"""
)


def test_a_full_device_raises_no_error_and_counts_every_record(run_program):
    outcome, folder = run_program(DEV_FULL, deadline_seconds=60, LOGSPOOL_SHUTDOWN_TIMEOUT="5")

    found = _report(folder, "full.json")
    assert outcome.status == 0
    assert found["broken"] == []
    assert found["offered"] == 1200
    assert found["written"] == 0
    assert found["dropped"] + found["waiting"] + found["refused"] == 1200


def test_a_full_device_prints_errors_through_the_fallback_at_most_ten_lines_a_second(run_program):
    outcome, _ = run_program(DEV_FULL, deadline_seconds=60, LOGSPOOL_SHUTDOWN_TIMEOUT="5")

    printed = outcome.err.decode().splitlines()
    assert any("error 0 end" in line for line in printed)
    # At most ten lines for each second of the run, and a few summaries.
    assert len(printed) <= 12 * (outcome.seconds + 1) + 10


FILE_SIZE_LIMIT = (
    _PRELUDE
    + """\
# Sparse, and far larger than any segment: the limit below applies to this file only.
BASE = 256 * 1024 * 1024
with open("app.log", "wb") as file:
    file.truncate(BASE)
    file.seek(0, 2)
    file.write(b"\\n")
configure("app.log")
log.info("first 0 end")
side.settle()
resource.setrlimit(resource.RLIMIT_FSIZE, (BASE + 20_000, resource.RLIM_INFINITY))
for number in range(5000):
    log.info("main %d end", number)
import logspool
logspool.flush(1)
report("limited.json")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for number in range(5000, 6000):
    log.info("main %d end", number)
side.settle(30)
report("free.json")
"""
)


def test_a_file_that_becomes_writable_again_recovers_by_itself(run_program, queue_dir):
    outcome, folder = run_program(FILE_SIZE_LIMIT, deadline_seconds=90)

    outcome.expect_success()
    limited, free = _report(folder, "limited.json"), _report(folder, "free.json")
    tail = folder / "tail"
    with (folder / "app.log").open("rb") as file:
        file.seek(256 * 1024 * 1024)
        tail.write_bytes(file.read())
    found = lines.count(tail)
    there = found.numbers.get("main", [])
    assert limited["broken"] + free["broken"] == []
    assert limited["written"] < 5001
    assert free["waiting"] == 0
    assert found.missing("main", range(5000, 6000)) == []
    assert len(set(there)) + free["dropped"] + free["refused"] == 6000
    assert free["written"] == len(there) + 1
    assert found.doubled() == {}
    assert found.out_of_order() == {}
    assert queue_folder.left_in(queue_dir) == []


SMALL_DISK = (
    _PRELUDE
    + """\
configure(os.path.join(sys.argv[1], "app.log"))
log.info("first 0 end")
side.settle()
filler = os.open(os.path.join(sys.argv[1], "filler"), os.O_CREAT | os.O_WRONLY)
for size in (65536, 4096, 1):
    try:
        while os.write(filler, b"x" * size):
            pass
    except OSError:
        pass
for number in range(20_000):
    log.info("main %d end", number)
import logspool
logspool.flush(1)
report("full.json")
os.close(filler)
os.remove(os.path.join(sys.argv[1], "filler"))
for number in range(20_000, 21_000):
    log.info("main %d end", number)
side.settle(30)
report("free.json")
"""
)


@pytest.fixture
def small_disk(tmp_path):
    """Give a file system of 2 MiB."""
    with mounts.small(tmp_path / "disk", "2m") as folder:
        yield folder


def test_a_full_disk_that_gets_room_again_receives_every_record_not_counted_as_dropped(
    run_program, queue_dir, small_disk
):
    outcome, folder = run_program(SMALL_DISK, str(small_disk), deadline_seconds=90)

    outcome.expect_success()
    full, free = _report(folder, "full.json"), _report(folder, "free.json")
    found = lines.count(small_disk / "app.log")
    there = found.numbers.get("main", [])
    assert full["broken"] + free["broken"] == []
    assert full["written"] < 20_001
    assert free["waiting"] == 0
    assert found.missing("main", range(20_000, 21_000)) == []
    assert len(set(there)) + free["dropped"] + free["refused"] == 21_000
    assert found.doubled() == {}
    assert found.out_of_order() == {}
    assert found.other == []


ONE_OF_TWO = (
    _PRELUDE
    + """\
log.setLevel(10)
log.addHandler(logging.FileHandler("/dev/full"))
log.addHandler(logging.FileHandler("good.log"))
side.install()
for number in range(3000):
    log.info("main %d end", number)
import logspool
logspool.flush(2)
report("report.json")
"""
)


def test_a_failing_sink_does_not_affect_another_sink(run_program):
    outcome, folder = run_program(ONE_OF_TWO, deadline_seconds=60, LOGSPOOL_SHUTDOWN_TIMEOUT="5")

    found = lines.count(folder / "good.log")
    assert outcome.status == 0
    assert found.numbers == {"main": list(range(3000))}
    assert _report(folder, "report.json")["broken"] == []


AT_RANDOM_MOMENTS = (
    _PRELUDE
    + """\
configure("app.log")
stop = threading.Event()

def busy(who):
    number = 0
    while not stop.is_set():
        log.log((20, 30, 40)[number % 3], "%s %d end", who, number)
        number += 1
        if not number % 1000:
            time.sleep(0.001)

threads = [threading.Thread(target=busy, args=(f"thread{each}",)) for each in range(3)]
for thread in threads:
    thread.start()
broken, last = [], 0
for _ in range(300):
    found = stats_view.snapshot()
    broken += found.broken_identities()
    if found.offered() < last:
        broken.append("offered went back")
    last = found.offered()
stop.set()
for thread in threads:
    thread.join()
side.settle()
report("end.json")
with open("broken.json", "w") as file:
    json.dump(broken, file)
"""
)


@pytest.mark.every_interpreter
def test_identities_hold_at_three_hundred_moments_and_written_is_the_number_of_lines(run_program):
    outcome, folder = run_program(AT_RANDOM_MOMENTS, deadline_seconds=60)

    outcome.expect_success()
    found, end = lines.count(folder / "app.log"), _report(folder, "end.json")
    assert _report(folder, "broken.json") == []
    assert end["broken"] == []
    assert end["waiting"] == 0
    # On a loaded machine the queue may be full. A line reports the refused records; it is written but not offered.
    told = [re.fullmatch(rb"(\d+) records dropped: the queue was full", line) for line in found.other]
    logged = sum(map(len, found.numbers.values()))
    assert sum(int(message[1]) for message in told) <= end["refused"]
    assert end["written"] == logged + len(told)
    assert end["offered"] == logged + end["refused"] + end["dropped"]


def test_accounting_continues_in_a_forked_child(run_program):
    text = _PRELUDE + (
        "configure('app.log')\n"
        "log.info('parent 0 end')\n"
        "side.settle()\n"
        "if os.fork() == 0:\n"
        "    report('forked.json')\n"
        "    for number in range(100):\n"
        "        log.info('child %d end', number)\n"
        "    side.settle()\n"
        "    report('child.json')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    outcome, folder = run_program(text, deadline_seconds=60)

    outcome.expect_success()
    begin, end = _report(folder, "forked.json"), _report(folder, "child.json")
    assert begin["broken"] + end["broken"] == []
    # A child may begin at zero or at its parent's counts; only the records that it adds are defined.
    assert (end["offered"] - begin["offered"], end["written"] - begin["written"], end["waiting"]) == (100, 100, 0)
