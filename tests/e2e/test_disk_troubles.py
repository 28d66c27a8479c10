"""Folders are full, small, read-only or gone during a run: records are counted, and logging reports it and recovers."""

import contextlib
import errno
import json
import os

import preloaded
import pytest

from suite import fixtures, lines, mounts, queue_folder

pytestmark = pytest.mark.real

RECORDS = 20_000 if fixtures.faults_full() else 4000
MODES = ["process", "memory", "interval", "checkpoint", "sync"]
#: Modes in which a call waits for its record while there is trouble. The other modes see the same as `process`, so
#: fewer tests are enough for them.
WAITING = {"checkpoint", "sync"}
#: The default of `checkpoint_every`.
EVERY = 50
#: The longest wait of such a call here.
TIMEOUT_SECONDS = 0.02
#: The time within which a sink works again after its trouble is repaired.
BACK_SECONDS = 5.0
SECONDS = 120
#: How long a disk stays full: longer than the longest pause between two tries to write.
FULL_SECONDS = 30 if fixtures.faults_full() else 3

_PRELUDE = """\
import json, logging, os, shutil, subprocess, sys, time
import logspool
from suite import stats_view

def report(name, **more):
    found = stats_view.snapshot()
    health = logspool.health()
    with open(name, "w") as file:
        json.dump({
            "offered": found.offered(), "refused": found.refused(), "dropped": found.dropped(),
            "written": found.written(), "waiting": found.waiting(), "broken": found.broken_identities(),
            "health": health.status, "reasons": health.reasons,
            "not_durable": sum(row.not_durable for row in logspool.stats().levels.values()), **more,
        }, file)

def until(condition, seconds):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - began

def burst(begin, end, seconds=0.0):
    began = time.monotonic()
    for number in range(begin, end):
        log.info("main %d end", number)
        if not number % 100:
            time.sleep(0.001)
        if (early := began + (number - begin) / (end - begin) * seconds - time.monotonic()) > 0:
            time.sleep(early)

HERE, COUNT = sys.argv[1], int(sys.argv[2])
HALF = COUNT // 2
OPTIONS = json.loads(os.environ["OPTIONS"])
log = logging.getLogger("app")
log.setLevel(logging.INFO)
def attach(handler):
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
"""


def _records(mode):
    return RECORDS if mode == "process" else 1000 if mode not in WAITING else 200


def _options(mode, **more):
    """Return the options that the programs read for their handlers."""
    return json.dumps({"durability": mode, "durability_timeout": TIMEOUT_SECONDS, **more})


def _lasting(mode):
    """Return the options for tests with a healthy disk: no call may return too early."""
    return _options(mode, durability_timeout=SECONDS / 2)


def _report(folder, name):
    return json.loads((folder / name).read_text())


def _exact(found):
    """Check the identities: no record is lost, refused or waiting."""
    assert found["broken"] == []
    assert (found["refused"], found["dropped"], found["waiting"]) == (0, 0, 0)
    assert found["offered"] == found["written"]


def _waited_in_vain(mode, before, during, calls):
    """Check how many of `calls` calls returned without the durability of the mode: they are counted and reported."""
    in_vain = during["not_durable"] - before["not_durable"]
    # On a busy machine a sync of the disk that was well may have taken longer than a call waits here.
    most = during["offered"] - before["offered"]
    if mode == "sync":
        assert calls <= in_vain <= most
    elif mode == "checkpoint":
        assert calls > EVERY
        assert calls - EVERY < in_vain <= most
    else:
        assert during["not_durable"] == 0


def _is_well(mode, found):
    """Check `health()` after all is repaired; it reports records that were not durable in time for a minute."""
    if mode in WAITING:
        assert found["health"] == "degraded"
        assert [reason for reason in found["reasons"] if "durable" not in reason] == []
    else:
        assert found["health"] == "ok"


@pytest.fixture
def mount(tmp_path):
    """Give a function that mounts a tmpfs of `size` bytes."""
    with contextlib.ExitStack() as ends:
        yield lambda name, size: ends.enter_context(mounts.small(tmp_path / name, size))


FULL_DISK = (
    _PRELUDE
    + """\
attach(logspool.RotatingFileHandler(os.path.join(HERE, "app.log"), maxBytes=2 * COUNT, backupCount=1000, **OPTIONS))
log.info("first 0 end")
logspool.flush(30)
report("well.json")
filler = os.path.join(HERE, "filler")
with open(filler, "wb", buffering=0) as file:
    for size in (65536, 4096, 1):
        try:
            while file.write(b"x" * size):
                pass
        except OSError:
            pass
burst(0, HALF, float(sys.argv[3]))
until(lambda: logspool.health().status == "failing", 30)
# The sink fails at the first lines; the collector may not have read all of them yet.
until(lambda: (found := stats_view.snapshot()).written() + found.waiting() == 1 + HALF, 30)
spooled = lambda: sum(sink.total("spooled") for sink in logspool.stats().sinks.values())
if "spool_dir" in OPTIONS:
    # A part of them fitted into the last page.
    until(lambda: spooled() + stats_view.snapshot().written() == 1 + HALF, 30)
report("full.json", spooled=spooled())
os.remove(filler)
seconds = until(lambda: stats_view.snapshot().waiting() == 0, 60)
burst(HALF, COUNT)
logspool.flush(30)
report("free.json", seconds=seconds)
"""
)


@pytest.mark.parametrize("mode", [*MODES, "interval and spool"])
def test_a_disk_that_was_full_gets_every_record_within_seconds_of_having_room(run_program, mount, tmp_path, mode):
    disk = mount("disk", "4m")
    mode, _, has_spool = mode.partition(" and ")
    # On another disk.
    spool = {"spool_dir": str(tmp_path / "spool")} if has_spool else {}
    outcome, folder = run_program(
        FULL_DISK,
        str(disk),
        str(_records(mode)),
        str(FULL_SECONDS),
        deadline_seconds=SECONDS,
        OPTIONS=_options(mode, **spool),
    )

    outcome.expect_success()
    full, free = _report(folder, "full.json"), _report(folder, "free.json")
    backups = sorted(disk.glob("app.log.*"), key=lambda path: -int(path.suffix[1:]))
    found = lines.count(*backups, disk / "app.log")
    assert full["broken"] == []
    assert (full["health"], full["waiting"] > 0) == ("failing", True)
    assert any("No space left" in reason for reason in full["reasons"])
    assert free["seconds"] is not None
    assert free["seconds"] < BACK_SECONDS
    assert full["spooled"] == (full["waiting"] if has_spool else 0)
    assert full["waiting"] == 1 + _records(mode) // 2 - full["written"]
    _waited_in_vain(mode, _report(folder, "well.json"), full, full["waiting"])
    _exact(free)
    _is_well(mode, free)
    # See `_waited_in_vain`.
    assert free["not_durable"] == full["not_durable"] or mode in WAITING
    assert found.numbers == {"first": [0], "main": list(range(_records(mode)))}
    assert found.other == []


SMALL_QUEUE = (
    _PRELUDE
    + """\
attach(logspool.FileHandler("app.log", **OPTIONS))
for number in range(COUNT):
    log.warning("main %d end", number)
flushed = logspool.flush(30)
report("end.json", flushed=flushed, survives=logspool.stats().queue.survives)
"""
)


@pytest.mark.parametrize("mode", MODES)
def test_a_queue_folder_of_64_megabytes_is_enough(run_program, mount, mode):
    shm = mount("shm", "64m")
    records = 5 * RECORDS if mode == "process" else _records(mode)
    outcome, folder = run_program(
        SMALL_QUEUE,
        "",
        str(records),
        deadline_seconds=SECONDS,
        LOGSPOOL_QUEUE_DIR=str(shm),
        OPTIONS=_lasting(mode),
    )

    outcome.expect_success()
    end = _report(folder, "end.json")
    found = lines.count(folder / "app.log")
    there = found.numbers["main"]
    assert (end["flushed"], end["survives"], end["broken"]) == (True, mode != "memory", [])
    assert end["not_durable"] == 0
    assert len(there) + end["refused"] + end["dropped"] == records
    assert found.doubled() == {}
    assert outcome.err == b""
    assert queue_folder.left_in(shm) == []


@pytest.mark.parametrize(
    ("mode", "left"), [*(("process", left) for left in (4096, 300_000)), *((mode, 0) for mode in MODES)]
)
def test_programs_start_with_a_full_queue_folder_and_one_warning(run_program, mount, mode, left):
    shm = mount("shm", "4m")
    free = os.statvfs(shm)
    # The program gets a folder of its own on that file system.
    folder_of_queue = shm / "queue"
    folder_of_queue.mkdir(mode=0o700)
    (shm / "filler").write_bytes(b"x" * (free.f_bavail * free.f_bsize - left - 4096))
    outcome, folder = run_program(
        SMALL_QUEUE,
        "",
        str(_records(mode)),
        deadline_seconds=SECONDS,
        LOGSPOOL_QUEUE_DIR=str(folder_of_queue),
        OPTIONS=_lasting(mode),
    )

    outcome.expect_success()
    end = _report(folder, "end.json")
    found = lines.count(folder / "app.log")
    assert end["broken"] == []
    assert (end["flushed"], end["not_durable"]) == (True, 0)
    assert len(found.numbers["main"]) + end["refused"] + end["dropped"] == _records(mode)
    assert found.doubled() == {}
    warnings = outcome.err.decode().splitlines()
    if end["survives"] or mode == "memory":
        assert warnings == []
    else:
        assert len(warnings) == 1, warnings
        assert "it is in memory now" in warnings[0]
        assert end["health"] == "degraded"


FAILING_CALLS = (
    _PRELUDE
    + """\
flag = os.environ["FAULT_FLAG"]
path = os.path.join(HERE, "app.log")
attach(logspool.RotatingFileHandler(path, maxBytes=20_000, backupCount=1000, compress="gzip", **OPTIONS))
burst(0, HALF)
logspool.flush(30)
report("well.json")
open(flag, "w").close()
burst(HALF, COUNT)
until(lambda: logspool.health().status == "failing", 30)
report("failing.json")
os.remove(flag)
seconds = until(lambda: stats_view.snapshot().waiting() == 0, 60)
log.info("last 0 end")
# Lines that were written before the disk failed, and not synced, must be there as well.
durable = logspool.flush(30, level="durable")
report("repaired.json", seconds=seconds, durable=durable)
"""
)


@pytest.mark.parametrize(
    ("mode", "number"),
    [
        *((mode, number) for mode in ("process", "memory") for number in (errno.EROFS, errno.EIO, errno.ENOSPC)),
        *((mode, errno.EIO) for mode in ("interval", "checkpoint", "sync")),
    ],
    ids=lambda value: value if isinstance(value, str) else errno.errorcode[value],
)
def test_a_disk_that_fails_for_a_while_gets_every_record(run_program, tmp_path, number, mode):
    disk = tmp_path / "disk"
    disk.mkdir()
    outcome, folder = run_program(
        FAILING_CALLS,
        str(disk),
        str(_records(mode)),
        deadline_seconds=SECONDS,
        LD_PRELOAD=str(preloaded.build(tmp_path)),
        OPTIONS=_options(mode),
        FAULT_ERRNO=str(number),
        FAULT_UNDER=str(disk),
        FAULT_FLAG=str(tmp_path / "failing"),
    )

    outcome.expect_success()
    failing, repaired = _report(folder, "failing.json"), _report(folder, "repaired.json")
    assert failing["broken"] == []
    assert failing["health"] == "failing"
    assert any(os.strerror(number) in reason for reason in failing["reasons"])
    assert repaired["seconds"] is not None
    assert repaired["seconds"] < BACK_SECONDS
    assert repaired["durable"]
    _waited_in_vain(mode, _report(folder, "well.json"), failing, _records(mode) // 2)
    _exact(repaired)
    _is_well(mode, repaired)
    assert repaired["written"] == _records(mode) + 1


GONE = (
    _PRELUDE
    + """\
handler = {handler}
attach(handler)
burst(0, HALF)
logspool.flush(30)
shutil.rmtree(HERE)
burst(HALF, COUNT)
until(lambda: logspool.health().status == "failing", 30)
report("gone.json")
os.mkdir(HERE)
seconds = until(lambda: stats_view.snapshot().waiting() == 0, 60)
log.info("last 0 end")
logspool.flush(30)
report("back.json", seconds=seconds)
"""
)


@pytest.mark.parametrize("mode", MODES)
def test_a_rotating_file_continues_when_its_removed_folder_exists_again(run_program, tmp_path, mode):
    disk = tmp_path / "disk"
    disk.mkdir()
    handler = 'logspool.RotatingFileHandler(os.path.join(HERE, "app.log"), "a", {max_bytes}, 1000, **OPTIONS)'
    # The file is rotated, and therefore looked up by name, many times in each half.
    handler = handler.replace("{max_bytes}", str(5 * _records(mode)))
    text = GONE.replace("{handler}", handler)
    outcome, folder = run_program(
        text, str(disk), str(_records(mode)), deadline_seconds=SECONDS, OPTIONS=_options(mode)
    )

    outcome.expect_success()
    gone, back = _report(folder, "gone.json"), _report(folder, "back.json")
    backups = sorted(disk.glob("app.log.*"), key=lambda path: -int(path.suffix[1:]))
    found = lines.count(*backups, disk / "app.log")
    assert gone["broken"] == []
    assert gone["health"] == "failing"
    assert any("No such file or directory" in reason for reason in gone["reasons"])
    assert back["seconds"] is not None
    assert back["seconds"] < BACK_SECONDS
    _exact(back)
    assert back["written"] == _records(mode) + 1
    if mode in WAITING:
        assert gone["not_durable"] > 0
    # The removed lines stay lost; every line after some record of the second half is there.
    there = found.numbers["main"]
    assert there == list(range(there[0], _records(mode)))
    assert found.numbers["last"] == [0]


QUEUE_GONE = (
    _PRELUDE
    + """\
queue = os.environ["LOGSPOOL_QUEUE_DIR"]
attach(logspool.FileHandler("app.log", **OPTIONS))
burst(0, HALF)
logspool.flush(30)
shutil.rmtree(queue)
burst(HALF, COUNT)
flushed = logspool.flush(30)
report("gone.json", flushed=flushed)
log.addHandler(second := logging.FileHandler("second.log"))
second.setFormatter(logging.Formatter("%(message)s"))
log.info("main %d end", COUNT)
flushed = logspool.flush(30)
report("end.json", flushed=flushed)
"""
)


@pytest.mark.parametrize("mode", MODES)
def test_removing_the_queue_folder_loses_no_record_of_a_running_program(run_program, queue_dir, mode):
    records = _records(mode)
    outcome, folder = run_program(QUEUE_GONE, "", str(records), deadline_seconds=SECONDS, OPTIONS=_lasting(mode))

    outcome.expect_success()
    found = lines.count(folder / "app.log")
    assert found.numbers == {"main": list(range(records + 1))}
    for name in ("gone.json", "end.json"):
        report = _report(folder, name)
        assert (report["flushed"], report["not_durable"]) == (True, 0)
        _exact(report)


QUEUE_FAILS = (
    _PRELUDE
    + """\
flag = os.environ["FAULT_FLAG"]
attach(logspool.FileHandler("app.log", **OPTIONS))
burst(0, HALF)
open(flag, "w").close()
burst(HALF, COUNT)
flushed = logspool.flush(30)
os.remove(flag)
log.info("last 0 end")
flushed = logspool.flush(30) and flushed
report("end.json", flushed=flushed)
"""
)


@pytest.mark.parametrize(
    ("mode", "number"),
    [("process", errno.EROFS), *((mode, errno.ENOSPC) for mode in MODES)],
    ids=lambda value: value if isinstance(value, str) else errno.errorcode[value],
)
def test_a_queue_folder_that_accepts_no_more_loses_no_record(run_program, queue_dir, tmp_path, mode, number):
    outcome, folder = run_program(
        QUEUE_FAILS,
        "",
        str(_records(mode)),
        deadline_seconds=SECONDS,
        OPTIONS=_lasting(mode),
        LD_PRELOAD=str(preloaded.build(tmp_path)),
        FAULT_ERRNO=str(number),
        FAULT_UNDER=str(queue_dir),
        FAULT_FLAG=str(tmp_path / "failing"),
    )

    outcome.expect_success()
    found = lines.count(folder / "app.log")
    end = _report(folder, "end.json")
    assert found.numbers == {"main": list(range(_records(mode))), "last": [0]}
    assert (end["flushed"], end["not_durable"]) == (True, 0)
    _exact(end)
    assert queue_folder.left_in(queue_dir) == []
