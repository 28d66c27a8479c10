"""An output that takes nothing: no caller waits, nothing is refused within the budget, all arrives after the thaw."""

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

import power
import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

FROZEN_SECONDS = 10 if fixtures.faults_full() else 2
RECORDS = 200_000 * FROZEN_SECONDS
# The budget of this test: 120 bytes a record are below `overflow_bytes` (256 MiB or a quarter of the free tmpfs), so
# that no record may be refused.
BUDGET_BYTES = 120 * RECORDS
# Chosen: records kept on the heap would exceed it at once.
HEAP_BYTES = 16 * 1024 * 1024

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

handler = logging.FileHandler(sys.argv[4])
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
options = json.loads(os.environ["OPTIONS"])
side.install(**options)
log.log(level, "first %d end", 0)
sys.stdin.read(1)
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
    # Spread over the time of the freeze.
    time.sleep(max(0, began + number / records * seconds - time.monotonic()))
logged = time.monotonic() - began
while "spool_dir" in options and not sum(row.total("spooled") for row in logspool.stats().sinks.values()):
    time.sleep(0.01)
frozen = stats_view.snapshot()
grown = anonymous_bytes() - before
with open("frozen.json.part", "w") as file:
    json.dump({
        "longest_call_ns": longest_call, "longest_empty_ns": longest_empty, "grown": grown, "seconds": logged,
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


class FrozenPipe:
    """A FIFO that is read only on command."""

    def __init__(self, folder: Path, pipe_bytes: int = 0) -> None:
        self.folder = folder
        self.path = folder / "fifo"
        self.received = folder / "read"
        os.mkfifo(self.path)
        # Open for reading and writing: the program's open does not wait, and no reader is needed yet.
        self._end = os.open(self.path, os.O_RDWR)
        if pipe_bytes:
            fcntl.fcntl(self._end, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self._reader: threading.Thread | None = None

    def freeze(self) -> None:
        """Nothing to be done."""

    def thaw(self) -> None:
        """Read from now on into the file `received`, until no writer is left."""
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        os.close(self._end)
        self._end = -1

        def read() -> None:
            with os.fdopen(reader, "rb") as source, self.received.open("wb") as target:
                shutil.copyfileobj(source, target)

        self._reader = threading.Thread(target=read)
        self._reader.start()

    def close(self) -> None:
        if self._end >= 0:
            os.close(self._end)
        if self._reader:
            self._reader.join(60)
            assert not self._reader.is_alive()


class FrozenDisk:
    """A file on a disk that is frozen as for a snapshot: whoever writes to it waits."""

    def __init__(self, disk: power.Disk, folder: Path) -> None:
        self.folder = folder
        self.path = self.received = disk.mount / "app.log"
        self._disk = disk
        self._is_frozen = False

    def freeze(self) -> None:
        """Block all writes once the first line is there."""
        until(lambda: self.path.exists() and self.path.stat().st_size > 0, 30, "the first line is on the disk")
        self._disk.freeze()
        self._is_frozen = True

    def thaw(self) -> None:
        """Let the waiting writers continue."""
        if self._is_frozen:
            self._is_frozen = False
            self._disk.thaw()

    close = thaw


@contextlib.contextmanager
def _output(kind: str, folder: Path):
    """Give a pipe or a disk that can be frozen."""
    if kind == "pipe":
        yield FrozenPipe(folder)
    else:
        with power.disk(folder) as disk:
            yield FrozenDisk(disk, folder)


@contextlib.contextmanager
def frozen(output, queue_dir: Path, *arguments: str, before: tuple[str, ...] = (), **options):
    """Run the program with its output frozen; yield it when it has logged all its records."""
    folder = output.folder
    script = folder / "program.py"
    script.write_text(PROGRAM)
    with (folder / "stderr").open("wb") as stderr:
        child = subprocess.Popen(
            [*before, sys.executable, str(script), *arguments, str(output.path)],
            env=programs.environment(programs.INSTALLED, queue_dir, OPTIONS=json.dumps(options)),
            cwd=folder,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stderr=stderr,
        )
    with programs.ended(child):
        try:
            output.freeze()
            child.stdin.write(b"f")
            child.stdin.flush()
            deadline = 60 + 10 * float(arguments[0])
            until(
                lambda: (folder / "frozen.json").exists() or child.poll() is not None,
                deadline,
                f"all calls return though nobody reads\n{(folder / 'stderr').read_text()[-2000:]}",
            )
            assert child.poll() is None, (folder / "stderr").read_text()[-3000:]
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                if child.poll() is None:
                    child.kill()
            output.close()


def thawed(output, child: subprocess.Popen) -> dict:
    """Unfreeze the output, let the program end, and return its own report at that time."""
    output.thaw()
    child.stdin.write(b"x")
    child.stdin.close()
    child.stdin = None
    assert child.wait(120) == 0, (output.folder / "stderr").read_text()[-3000:]
    output.close()
    return json.loads((output.folder / "thawed.json").read_text())


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["pipe", "disk"])
@pytest.mark.timeout(300 + 30 * FROZEN_SECONDS)
@pytest.mark.xdist_group("alone")
def test_no_record_is_refused_and_all_arrive_in_order_once_the_output_continues(
    tmp_path, queue_dir, kind, record_property
):
    with _output(kind, tmp_path) as output:
        with frozen(output, queue_dir, str(FROZEN_SECONDS), str(RECORDS), "20") as child:
            during = json.loads((tmp_path / "frozen.json").read_text())
            on_tmpfs = _bytes_below(queue_dir)
            after = thawed(output, child)
        found = lines.count(output.received)

    assert during["broken"] + after["broken"] == []
    assert (during["refused"], during["dropped"]) == (0, 0)
    assert during["waiting"] > RECORDS / 2
    assert (after["refused"], after["dropped"], after["waiting"]) == (0, 0, 0)
    assert found.numbers == {"first": [0], "main": list(range(RECORDS))}
    assert during["grown"] <= HEAP_BYTES
    assert on_tmpfs <= BUDGET_BYTES
    assert queue_folder.left_in(queue_dir) == []
    summary = f"{FROZEN_SECONDS} s, {RECORDS} records and as many lines, {during['waiting']} waited in {on_tmpfs} bytes"
    print(summary)
    record_property("summary", summary)


@pytest.mark.full
@pytest.mark.quiet
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["pipe", "disk"])
def test_the_longest_call_is_within_a_millisecond_of_the_longest_empty_call(tmp_path, queue_dir, kind, record_property):
    with _output(kind, tmp_path) as output:
        with frozen(output, queue_dir, str(FROZEN_SECONDS), str(RECORDS), "20") as child:
            during = json.loads((tmp_path / "frozen.json").read_text())
            thawed(output, child)

    call, empty = during["longest_call_ns"] / 1e6, during["longest_empty_ns"] / 1e6
    summary = f"{RECORDS} calls in {during['seconds']:.1f} s: longest {call:.3f} ms, longest empty one {empty:.3f} ms"
    print(summary)
    record_property("summary", summary)
    assert call <= empty + 1


@pytest.mark.parametrize("level", [20, 40], ids=["info", "error"])
def test_calls_of_every_level_return_and_arrive(tmp_path, queue_dir, level):
    output = FrozenPipe(tmp_path)
    with frozen(output, queue_dir, "0.5", "2000", str(level)) as child:
        after = thawed(output, child)

    assert after == {"refused": 0, "dropped": 0, "broken": [], "waiting": 0}
    assert lines.count(output.received).numbers["main"] == list(range(2000))


@pytest.mark.parametrize("mode", ["memory", "interval", "interval and spool", "checkpoint", "sync"])
def test_calls_return_and_all_records_arrive_in_each_durability(tmp_path, queue_dir, mode):
    mode, _, has_spool = mode.partition(" and ")
    options = {"durability": mode, "durability_timeout": 0.02}
    if has_spool:
        options["spool_dir"] = str(tmp_path / "spool")
    if mode == "checkpoint":
        # A busy machine needs a second for the calls. A sync at that time would leave too few records to wait for.
        options["sync_interval"] = 60
    # Few calls wait, so one page of the pipe is enough.
    records, pipe_bytes = (350, 4096) if mode in ("checkpoint", "sync") else (20_000, 0)
    output = FrozenPipe(tmp_path, pipe_bytes)
    with frozen(output, queue_dir, "0.5", str(records), "20", **options) as child:
        during = json.loads((tmp_path / "frozen.json").read_text())
        after = thawed(output, child)

    assert (during["refused"], during["dropped"], during["broken"]) == (0, 0, [])
    assert during["waiting"] > 0
    assert (during["spooled"] > 0) == bool(has_spool)
    assert (during["not_durable"] > 0) == (mode in ("checkpoint", "sync"))
    assert after == {"refused": 0, "dropped": 0, "broken": [], "waiting": 0}
    assert lines.count(output.received).numbers == {"first": [0], "main": list(range(records))}


_WRITES = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(write|writev|pwrite64|pwritev2?|sendto|sendmsg)\b.*")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_call_below_warning_writes_to_the_frozen_output(tmp_path, queue_dir):
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

    # 256 KiB: four times the capacity of the FIFO.
    output = FrozenPipe(tmp_path)
    with frozen(output, queue_dir, "1", "20000", "20", before=strace) as child:
        during = json.loads((tmp_path / "frozen.json").read_text())
        thawed(output, child)

    to_the_fifo = [line for line in trace.read_text(errors="replace").splitlines() if str(output.path) in line]
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


def test_an_unread_console_stops_no_caller_and_counts_dropped_records(tmp_path, queue_dir):
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


def test_a_stalled_output_does_not_delay_another(tmp_path, queue_dir):
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
    output = FrozenPipe(tmp_path)
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
            output.thaw()
        child.stdin.write(b"x")
        child.stdin.close()
        child.stdin = None
        assert child.wait(60) == 0
    output.close()

    assert lines.count(output.received).numbers["main"] == list(range(20_000))
