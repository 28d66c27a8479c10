"""An output that nobody reads: no caller waits, nothing is refused within the budget, all arrives after the thaw."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

FROZEN_SECONDS = 10 if fixtures.faults_full() else 2
# The budget of this test: records times about 120 bytes stay far below `overflow_bytes` (256 MiB or a quarter of
# the free tmpfs), so that none may be refused.
RECORDS = 200_000
BUDGET_BYTES = 64 * 1024 * 1024
# Chosen: the records above are 24 MB; kept on the heap they would show at once.
HEAP_BYTES = 16 * 1024 * 1024
MEASURED = Path(__file__).resolve().parents[2] / "build" / "measured"

PROGRAM = """\
import json, logging, os, sys, threading, time
import logspool
from suite import side, stats_view

seconds, records, level = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def anonymous_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

def empty(*arguments):
    pass

handler = logging.FileHandler("fifo")
handler.setFormatter(logging.Formatter("%(message)s" if len(sys.argv) < 5 else sys.argv[4]))
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
options = json.loads(os.environ["OPTIONS"])
side.install(**options)
log.log(level, "first %d end", 0)
before = anonymous_bytes()
longest_call = longest_empty = 0
began = time.monotonic()
clock = time.perf_counter_ns
broken = []
batch = max(1, int(records / seconds / 500))
number = 0
while number < records:
    for _ in range(min(batch, records - number)):
        begin = clock()
        empty(level, "main %d end", number)
        middle = clock()
        log.log(level, "main %d end", number)
        end = clock()
        longest_empty = max(longest_empty, middle - begin)
        longest_call = max(longest_call, end - middle)
        number += 1
    if number % (batch * 50) == 0:
        broken += stats_view.snapshot().broken_identities()
    # Paced over the time of the freeze.
    time.sleep(max(0, began + number / records * seconds - time.monotonic()))
while "spool_dir" in options and not sum(row.total("spooled") for row in logspool.stats().sinks.values()):
    time.sleep(0.01)
frozen = stats_view.snapshot()
grown = anonymous_bytes() - before
with open("frozen.json.part", "w") as file:
    json.dump({
        "longest_call_ns": longest_call, "longest_empty_ns": longest_empty, "grown": grown,
        "refused": frozen.refused(), "dropped": frozen.dropped(), "broken": broken + frozen.broken_identities(),
        "waiting": frozen.waiting(), "thread": threading.get_native_id(),
        "not_durable": sum(row.not_durable for row in logspool.stats().levels.values()),
        "spooled": sum(row.total("spooled") for row in logspool.stats().sinks.values()),
    }, file)
os.rename("frozen.json.part", "frozen.json")
sys.stdin.read(1)
side.settle(60)
thawed = stats_view.snapshot()
with open("thawed.json", "w") as file:
    json.dump({
        "refused": thawed.refused(), "dropped": thawed.dropped(), "broken": thawed.broken_identities(),
        "waiting": thawed.waiting(),
    }, file)
"""


class Freeze:
    """A FIFO that is read only when somebody says so."""

    def __init__(self, folder: Path, pipe_bytes: int = 0) -> None:
        self.folder = folder
        os.mkfifo(folder / "fifo")
        # Open for reading and writing: the program's open does not wait, and no reader is needed yet.
        self._end = os.open(folder / "fifo", os.O_RDWR)
        if pipe_bytes:
            fcntl.fcntl(self._end, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self._reader: threading.Thread | None = None

    def thaw(self) -> None:
        """Read from now on into the file `read`, until nobody writes any more."""
        reader = os.open(self.folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        os.close(self._end)
        self._end = -1

        def read() -> None:
            with os.fdopen(reader, "rb") as source, (self.folder / "read").open("wb") as target:
                shutil.copyfileobj(source, target)

        self._reader = threading.Thread(target=read)
        self._reader.start()

    def close(self) -> None:
        if self._end >= 0:
            os.close(self._end)
        if self._reader:
            self._reader.join(60)
            assert not self._reader.is_alive()


@contextlib.contextmanager
def frozen(folder: Path, queue_dir: Path, *arguments: str, before: tuple[str, ...] = (), pipe_bytes=0, **options):
    """Run the program with its FIFO frozen; yield (freeze, child) when it has logged all its records."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    freeze = Freeze(folder, pipe_bytes)
    with (folder / "stderr").open("wb") as stderr:
        child = subprocess.Popen(
            [*before, sys.executable, str(script), *arguments],
            env=programs.environment(programs.INSTALLED, queue_dir, OPTIONS=json.dumps(options)),
            cwd=folder,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stderr=stderr,
        )
    with programs.ended(child):
        try:
            deadline = 60 + 10 * float(arguments[0])
            until(
                lambda: (folder / "frozen.json").exists() or child.poll() is not None,
                deadline,
                f"all calls return though nobody reads\n{(folder / 'stderr').read_text()[-2000:]}",
            )
            assert child.poll() is None, (folder / "stderr").read_text()[-3000:]
            yield freeze, child
        finally:
            with contextlib.suppress(ProcessLookupError):
                if child.poll() is None:
                    child.kill()
            freeze.close()


def thawed(freeze: Freeze, child: subprocess.Popen) -> dict:
    """Thaw, let the program end, and return what it says of itself then."""
    freeze.thaw()
    child.stdin.write(b"x")
    child.stdin.close()
    child.stdin = None
    assert child.wait(120) == 0, (freeze.folder / "stderr").read_text()[-3000:]
    freeze.close()
    return json.loads((freeze.folder / "thawed.json").read_text())


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.timeout(300 + 30 * FROZEN_SECONDS)
@pytest.mark.xdist_group("alone")
def test_no_record_is_refused_and_all_arrive_in_order_after_the_thaw(tmp_path, queue_dir):
    with frozen(tmp_path, queue_dir, str(FROZEN_SECONDS), str(RECORDS), "20") as (freeze, child):
        during = json.loads((tmp_path / "frozen.json").read_text())
        on_tmpfs = _bytes_below(queue_dir)
        after = thawed(freeze, child)

    MEASURED.mkdir(parents=True, exist_ok=True)
    measured = {**during, "tmpfs_bytes": on_tmpfs, "seconds": FROZEN_SECONDS, "records": RECORDS}
    (MEASURED / "frozen.json").write_text(json.dumps(measured, indent=1))
    found = lines.count(tmp_path / "read")
    assert during["broken"] + after["broken"] == []
    assert (during["refused"], during["dropped"]) == (0, 0)
    assert during["waiting"] > RECORDS / 2
    assert (after["refused"], after["dropped"], after["waiting"]) == (0, 0, 0)
    assert found.numbers == {"first": [0], "main": list(range(RECORDS))}
    assert during["grown"] <= HEAP_BYTES
    assert on_tmpfs <= BUDGET_BYTES
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.full
@pytest.mark.quiet
@pytest.mark.timeout(900)
def test_longest_call_is_within_a_millisecond_of_the_longest_empty_call(tmp_path, queue_dir):
    with frozen(tmp_path, queue_dir, str(FROZEN_SECONDS), str(RECORDS), "20") as (freeze, child):
        during = json.loads((tmp_path / "frozen.json").read_text())
        thawed(freeze, child)

    assert during["longest_call_ns"] <= during["longest_empty_ns"] + 1_000_000


@pytest.mark.parametrize("level", [20, 40], ids=["info", "error"])
def test_calls_of_every_level_return_and_arrive(tmp_path, queue_dir, level):
    with frozen(tmp_path, queue_dir, "0.5", "2000", str(level)) as (freeze, child):
        after = thawed(freeze, child)

    assert after == {"refused": 0, "dropped": 0, "broken": [], "waiting": 0}
    assert lines.count(tmp_path / "read").numbers["main"] == list(range(2000))


@pytest.mark.parametrize("mode", ["memory", "interval", "interval and spool", "checkpoint", "sync"])
def test_calls_return_and_all_arrives_in_each_durability(tmp_path, queue_dir, mode):
    mode, _, has_spool = mode.partition(" and ")
    options = {"durability": mode, "durability_timeout": 0.02}
    if has_spool:
        options["spool_dir"] = str(tmp_path / "spool")
    # Calls that wait are few: a page of the pipe is enough for them to begin with it.
    records, pipe_bytes = (350, 4096) if mode in ("checkpoint", "sync") else (20_000, 0)
    with frozen(tmp_path, queue_dir, "0.5", str(records), "20", pipe_bytes=pipe_bytes, **options) as (freeze, child):
        during = json.loads((tmp_path / "frozen.json").read_text())
        after = thawed(freeze, child)

    assert (during["refused"], during["dropped"], during["broken"]) == (0, 0, [])
    assert during["waiting"] > 0
    assert (during["spooled"] > 0) == bool(has_spool)
    assert (during["not_durable"] > 0) == (mode in ("checkpoint", "sync"))
    assert after == {"refused": 0, "dropped": 0, "broken": [], "waiting": 0}
    assert lines.count(tmp_path / "read").numbers == {"first": [0], "main": list(range(records))}


_WRITES = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(write|writev|pwrite64|pwritev2?|sendto|sendmsg)\b.*")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_call_below_warning_enters_a_write_to_the_frozen_output(tmp_path, queue_dir):
    trace = tmp_path / "trace"
    strace = (
        "strace",
        "-f",
        "-y",
        "-qq",
        "--signal=none",
        "-e",
        "trace=write,writev,pwrite64,sendto",
        "-o",
        str(trace),
    )
    probe = subprocess.run([*strace, "true"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"strace cannot trace here: {probe.stderr.decode().strip()}")

    # 256 KiB: four times what the FIFO holds.
    with frozen(tmp_path, queue_dir, "1", "20000", "20", before=strace) as (freeze, child):
        during = json.loads((tmp_path / "frozen.json").read_text())
        thawed(freeze, child)

    to_the_fifo = [line for line in trace.read_text(errors="replace").splitlines() if str(tmp_path / "fifo") in line]
    by_thread = {int(match[1]) for line in to_the_fifo if (match := _WRITES.match(line))}
    assert by_thread
    assert during["thread"] not in by_thread


CONSOLE = """\
import json, logging, sys, time
from suite import side, stats_view

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
side.install()
log = logging.getLogger("app")
for number in range(50_000):
    log.info("main %d end", number)
found = stats_view.snapshot()
with open("done.json.part", "w") as file:
    json.dump({"offered": found.offered(), "refused": found.refused(), "dropped": found.dropped(),
               "waiting": found.waiting(), "written": found.written(), "broken": found.broken_identities()}, file)
import os
os.rename("done.json.part", "done.json")
sys.stdin.read(1)
side.settle(60)
found = stats_view.snapshot()
with open("end.json", "w") as file:
    json.dump({"given_up": found.refused() + found.dropped(), "waiting": found.waiting(),
               "written": found.written(), "broken": found.broken_identities()}, file)
"""


def test_console_that_nobody_reads_stops_no_caller_and_counts_what_it_gives_up(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(CONSOLE)
    child = programs.start(
        [script],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with programs.ended(child):
        until(lambda: (tmp_path / "done.json").exists(), 60, "all calls return though nobody reads")
        out, _ = child.communicate(b"x", timeout=60)

    (tmp_path / "out").write_bytes(out)
    during, after = (json.loads((tmp_path / name).read_text()) for name in ("done.json", "end.json"))
    found = lines.count(tmp_path / "out")
    assert child.returncode == 0
    assert during["broken"] + after["broken"] == []
    assert during["offered"] == 50_000
    assert after["waiting"] == 0
    assert len(found.numbers["main"]) == after["written"]
    assert len(found.numbers["main"]) + after["given_up"] == 50_000
    assert found.out_of_order() == {}
    assert found.doubled() == {}


def test_stalled_output_does_not_delay_another(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(
        "import logging, sys\n"
        "from suite import side\n"
        "log = logging.getLogger('app')\n"
        "log.setLevel(10)\n"
        "log.addHandler(logging.FileHandler('fifo'))\n"
        "log.addHandler(logging.FileHandler('good.log'))\n"
        "side.install()\n"
        "for number in range(20_000):\n"
        "    log.info('main %d end', number)\n"
        "sys.stdin.read(1)\n"
    )
    freeze = Freeze(tmp_path)
    child = programs.start(
        [script],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        stdin=subprocess.PIPE,
    )
    with programs.ended(child):
        try:
            until(
                lambda: len(lines.count(tmp_path / "good.log").numbers.get("main", ())) == 20_000,
                30,
                "the other file is complete while the FIFO stands still",
            )
        finally:
            freeze.thaw()
        child.stdin.write(b"x")
        child.stdin.close()
        child.stdin = None
        assert child.wait(60) == 0
    freeze.close()

    assert lines.count(tmp_path / "read").numbers["main"] == list(range(20_000))
