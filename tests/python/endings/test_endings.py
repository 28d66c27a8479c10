"""Every way to end a program: complete file without a later start, stock's exit status, empty queue folder."""

import os
import signal
import tempfile
from pathlib import Path

import pytest

from endings.programs import ENDINGS, LINES, Ending
from suite import comparing, lines, programs, queue_folder
from suite.waiting import until

# Ten times the duration of the slowest ending on a busy machine.
SECONDS = 60


class Ended:
    """One program, ended on both sides."""

    def __init__(self, ending: Ending, folder: Path, package: str | None = None) -> None:
        self.ending = ending
        self.outcome: dict[str, programs.Outcome] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.left: list[str] = []
        for side in programs.SIDES:
            own = folder / side
            own.mkdir()
            script = folder / "program.py"
            script.write_text(ending.text)
            with queue_folder.private() as queue_dir:
                self.outcome[side] = programs.run(
                    [*ending.options, script],
                    env=programs.environment(side, queue_dir, package),
                    folder=own,
                    deadline_seconds=SECONDS,
                )
                self.left = queue_folder.left_in(queue_dir)
            self.files[side] = {name: self._comparable(data) for name, data in comparing.files(own).items()}

    def _comparable(self, data: bytes) -> bytes:
        return b"".join(sorted(data.splitlines(keepends=True))) if self.ending.several_writers else data

    def streams(self, side: str) -> dict[str, bytes]:
        outcome = self.outcome[side]
        return {"stdout": outcome.out, "stderr": comparing.normalise(outcome.err, Path("/nowhere"), addresses=True)}


_ENDED: dict[str, Ended] = {}


@pytest.fixture(params=[pytest.param(each, id=each.name, marks=pytest.mark.xdist_group(each.name)) for each in ENDINGS])
def ended(request):
    """Give each ending, run once for all tests of it."""
    ending = request.param
    if ending.name not in _ENDED:
        with tempfile.TemporaryDirectory(prefix="ending-") as folder:
            _ENDED[ending.name] = Ended(ending, Path(folder))
    return _ENDED[ending.name]


def test_the_file_is_complete_without_a_later_start(ended):
    difference = comparing.differences(ended.files[programs.STOCK], ended.files[programs.INSTALLED])

    assert not difference, difference


def test_the_exit_status_equals_that_with_stock_logging(ended):
    assert ended.outcome[programs.STOCK].status == ended.outcome[programs.INSTALLED].status


def test_the_standard_streams_equal_those_with_stock_logging(ended):
    difference = comparing.differences(ended.streams(programs.STOCK), ended.streams(programs.INSTALLED))

    assert not difference, difference


def test_nothing_is_left_in_the_queue_folder(ended):
    assert ended.left == []


def test_every_program_writes_the_expected_lines_with_stock_logging():
    # Otherwise a broken program would be equal on both sides and test nothing.
    short = {
        name: data.count(b"\n")
        for name, each in _ENDED.items()
        for data in [each.files[programs.STOCK].get("app.log", b"")]
        if data.count(b" end\n") < LINES
    }

    assert short == {}


DAEMON_THREAD = """\
import logging, os, sys, threading
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
# The collector may be delayed on a busy machine, so no call drops its record here.
side.install(blocking_levels=["INFO"], blocking_timeout=60)
log = logging.getLogger("app")
returned = 0
enough = threading.Event()

def run():
    global returned
    for number in range(10**9):
        log.info("daemon %d end", number)
        returned = number
        if number == 5000:
            enough.set()

threading.Thread(target=run, daemon=True).start()
enough.wait()
os.write(1, str(returned).encode())
{end}
"""


@pytest.mark.parametrize("side", programs.SIDES)
@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "os._exit(3)", "raise ValueError"])
def test_a_daemon_thread_that_still_logs_neither_hangs_the_exit_nor_tears_lines(run_program, queue_dir, side, end):
    outcome, folder = run_program(DAEMON_THREAD.format(end=end), side=side, deadline_seconds=SECONDS)

    found = lines.count(folder / "app.log")
    assert outcome.status == {"pass": 0, "raise ValueError": 1}.get(end, 3)
    assert found.missing("daemon", range(int(outcome.out) + 1)) == []
    assert found.doubled() == {}
    assert found.other == []
    assert queue_folder.left_in(queue_dir) == []


BUSY = """\
import logging, os, sys, threading
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
# The collector may be delayed on a busy machine, so no call drops its record here.
side.install(blocking_levels=["INFO"], blocking_timeout=60)
log = logging.getLogger("app")
witness = int(sys.argv[1])

def run(who):
    for number in range(10**9):
        log.info("%s %d end", who, number)
        os.write(witness, b"%s %d end\\n" % (who.encode(), number))

for who in ("a", "b", "c"):
    threading.Thread(target=run, args=(who,), daemon=True).start()
run("main")
"""


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGHUP"])
def test_a_signal_at_any_moment_loses_no_line_whose_call_returned(tmp_path, queue_dir, signal_name):
    script = tmp_path / "program.py"
    script.write_text(BUSY)
    reader, writer = os.pipe()
    child = programs.start(
        [script, str(writer)],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        pass_fds=[writer],
    )
    with programs.ended(child), os.fdopen(reader, "rb", buffering=0) as witnesses:
        os.close(writer)
        seen = bytearray()
        while seen.count(b"\n") < 2000:
            seen += os.read(reader, 1 << 16)
        child.send_signal(getattr(signal, signal_name))
        while data := witnesses.read(1 << 16):
            seen += data
        until(lambda: child.poll() is not None, SECONDS, f"the end after {signal_name}")

    (tmp_path / "witness").write_bytes(bytes(seen[: seen.rfind(b"\n") + 1]))
    witnessed, written = lines.count(tmp_path / "witness"), lines.count(tmp_path / "app.log")
    assert child.returncode == -getattr(signal, signal_name)
    assert {who: written.missing(who, numbers) for who, numbers in witnessed.numbers.items()} == {
        who: [] for who in witnessed.numbers
    }
    assert written.out_of_order() == {}
    assert queue_folder.left_in(queue_dir) == []


WAITING = """\
import atexit, logging, os, threading, time
from suite import side, stats_view
handler = logging.FileHandler("fifo")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
ending = threading.Event()

def end():
    ending.set()
    # This returns only if the daemon thread releases the interpreter.
    time.sleep(0.2)
    os.write(1, b"ending\\n")

# Before logspool's own, so that it runs after it.
atexit.register(end)
side.install(blocking_timeout=float("inf"), shutdown_timeout=0.5)

def run():
    {before}
    number = 0
    while True:
        log.error("daemon %d %s", number, "x" * 10_000)
        number += 1

threading.Thread(target=run, daemon=True).start()
while not stats_view.snapshot().refused():
    log.info("main %s", "x" * 30_000)
"""


@pytest.mark.parametrize("before", ["pass", "ending.wait()"])
def test_a_daemon_thread_that_waits_for_room_without_limit_does_not_delay_the_exit(tmp_path, run_program, before):
    (tmp_path / "installed").mkdir()
    os.mkfifo(tmp_path / "installed" / "fifo")
    # The FIFO is open for reading, but no process reads from it.
    end = os.open(tmp_path / "installed" / "fifo", os.O_RDWR)
    try:
        outcome, _ = run_program(WAITING.format(before=before), deadline_seconds=SECONDS)
    finally:
        os.close(end)

    assert outcome.status == 0, outcome.err
    assert outcome.out == b"ending\n"


FULL = """\
import logging, os, resource
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(shutdown_timeout=0.5)
log = logging.getLogger("app")
for number in range(10):
    log.info("%d", number)
side.settle()
# From here on each write to the file fails, as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("app.log"), resource.RLIM_INFINITY))
for number in range(10, 110):
    log.info("%d", number)
"""


def test_records_not_written_until_the_end_stay_for_the_next_start(run_program, queue_dir):
    outcome, folder = run_program(FULL, deadline_seconds=SECONDS)

    assert outcome.status == 0
    assert (folder / "app.log").read_text() == "".join(f"{number}\n" for number in range(10))
    told = b"logspool: 100 records were not written within 0.5 s; they are kept, `python -m logspool recover` or"
    assert outcome.err.startswith(told), outcome.err
    assert outcome.err.count(b"\n") == 1

    run_program("import logspool; logspool.recover()", deadline_seconds=SECONDS)[0].expect_success()

    assert (folder / "app.log").read_text() == "".join(f"{number}\n" for number in range(110))
    assert queue_folder.left_in(queue_dir) == []


def test_records_left_in_a_memory_queue_at_the_end_are_reported_as_dropped(run_program):
    text = FULL.replace("shutdown_timeout=0.5", 'shutdown_timeout=0.5, durability="memory"')
    outcome, folder = run_program(text + "os._exit(0)\n", deadline_seconds=SECONDS)

    assert outcome.status == 0
    assert (folder / "app.log").read_text() == "".join(f"{number}\n" for number in range(10))
    assert outcome.err == b"logspool: 100 records were not written within 0.5 s and are dropped\n"


MORE = """
import sys
from suite import stats_view
found = stats_view.snapshot()
print(found.offered() - found.refused(), flush=True)
"""


@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)"])
def test_dropped_records_of_memory_queues_are_reported_in_one_number(run_program, end):
    text = FULL.replace("shutdown_timeout=0.5", 'shutdown_timeout=0.5, durability="memory"')
    # More records than the writer takes: the others stay in the lanes. The file has room for some bytes of a chunk.
    text = text.replace("range(10, 110)", "range(10, 4010)").replace('size("app.log"),', 'size("app.log") + 100,')
    outcome, folder = run_program(text + MORE + end + "\n", deadline_seconds=SECONDS)

    assert outcome.status == 0
    lost = int(outcome.out) - (folder / "app.log").read_bytes().count(b"\n")
    assert outcome.err == b"logspool: %d records were not written within 0.5 s and are dropped\n" % lost


WITNESSED = """\
import logging, os, sys, threading, time
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
# The collector may be delayed on a busy machine, so no call drops its record here.
side.install(blocking_levels=["INFO"], blocking_timeout=60)
log = logging.getLogger("app")
# Appended to with write(2): its content was logged before.
witness = os.open("witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
enough = threading.Semaphore(0)

def run(who):
    for number in range(10**9):
        log.info("%s %d end", who, number)
        os.write(witness, b"%s %d end\\n" % (who.encode(), number))
        if number == 500:
            enough.release()

for who in ("a", "b", "c"):
    threading.Thread(target=run, args=(who,), daemon=True).start()
for _ in range(3):
    enough.acquire()
{end}
"""

EXEC = "os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(3)'])"
FAILED_EXEC = """
try:
    os.execv("/nowhere", ["nowhere"])
except FileNotFoundError:
    pass
log.info("main 0 end")
os.write(witness, b"main 0 end\\n")
time.sleep(0.1)
sys.exit(3)
"""
#: The file exists and is executable, but the kernel refuses it because it is no program.
NO_PROGRAM = """
with open("program", "w") as file:
    file.write("no program")
os.chmod("program", 0o755)
try:
    os.execv("program", ["program"])
except OSError:
    pass
"""
REFUSED_EXEC = NO_PROGRAM + FAILED_EXEC


@pytest.mark.parametrize(
    "end",
    ["sys.exit(3)", "os._exit(3)", EXEC, FAILED_EXEC, REFUSED_EXEC],
    ids=["exit", "_exit", "exec", "failed", "refused"],
)
def test_no_line_whose_call_returned_before_the_exit_is_lost(run_program, queue_dir, end):
    outcome, folder = run_program(WITNESSED.format(end=end), deadline_seconds=SECONDS)

    witnessed, written = lines.count(folder / "witness"), lines.count(folder / "app.log")
    assert outcome.status == 3, outcome.err
    assert {who: written.missing(who, numbers) for who, numbers in witnessed.numbers.items()} == {
        who: [] for who in witnessed.numbers
    }
    assert written.doubled() == {}
    assert queue_folder.left_in(queue_dir) == []


UNBOUNDED = """\
import logging, os, signal, subprocess, sys
from suite import side
# The pipe is unread until the exit begins; then it is read until its last writer is gone.
os.mkfifo("fifo")
subprocess.Popen(["sh", "-c", "sleep 1; exec timeout {seconds} cat fifo > app.log"])
held = os.open("fifo", os.O_RDWR)
logging.basicConfig(filename="fifo", level=logging.INFO, format="%(message)s")
side.install(shutdown_timeout=float("inf"))
log = logging.getLogger("app")
for number in range({count}):
    log.info("main %d end", number)
{end}
"""

TERMINATED = "os.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()"


@pytest.mark.parametrize(
    "end",
    ["os._exit(3)", TERMINATED, EXEC, "side.uninstall()\nos._exit(3)"],
    ids=["_exit", "SIGTERM", "exec", "uninstall"],
)
def test_an_exit_without_a_time_limit_waits_until_everything_is_written(run_program, queue_dir, end):
    # More bytes than a pipe holds.
    count = 10_000
    outcome, folder = run_program(UNBOUNDED.format(end=end, count=count, seconds=SECONDS), deadline_seconds=SECONDS)

    found = lines.count(folder / "app.log")
    assert outcome.status == (-signal.SIGTERM if end == TERMINATED else 3)
    assert outcome.err == b""
    assert found.missing("main", range(count)) == []
    if "uninstall" in end:
        # Once logspool is uninstalled, it does not see os._exit: the empty queue is left to the next recovery.
        run_program("import logspool; logspool.recover()", deadline_seconds=SECONDS)[0].expect_success()
    assert queue_folder.left_in(queue_dir) == []


GOES_ON = """\
import logging, os, resource, signal, sys
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
log = logging.getLogger("app")
log.info("main 0 end")
{end}
log.info("main 1 end")
logspool.flush(30)
if sys.argv[1] == "ends":
    sys.exit()
# From here on each write to the file fails, as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("app.log"), resource.RLIM_INFINITY))
for number in range(2, 102):
    log.info("main %d end", number)
os.kill(os.getpid(), signal.SIGKILL)
"""

NO_END = {
    "missing": "try:\n    os.execvp('logspool-nowhere', ['nowhere'])\nexcept FileNotFoundError:\n    pass",
    "refused": NO_PROGRAM,
    "uninstall": "logspool.uninstall()\nlogspool.install()",
}


@pytest.mark.real
@pytest.mark.parametrize("no_end", NO_END)
def test_records_logged_after_a_failed_exit_survive_a_kill(run_program, queue_dir, no_end):
    outcome, folder = run_program(GOES_ON.format(end=NO_END[no_end]), "is killed", deadline_seconds=SECONDS)
    assert outcome.status == -9, outcome.err
    run_program("import logspool; logspool.recover()", deadline_seconds=SECONDS)[0].expect_success()

    assert lines.count(folder / "app.log").numbers == {"main": list(range(102))}
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.real
@pytest.mark.parametrize("no_end", NO_END)
def test_a_program_that_survived_an_exit_leaves_no_files_when_it_ends(run_program, queue_dir, no_end):
    outcome, folder = run_program(GOES_ON.format(end=NO_END[no_end]), "ends", deadline_seconds=SECONDS)
    outcome.expect_success()

    assert lines.count(folder / "app.log").numbers == {"main": [0, 1]}
    assert queue_folder.left_in(queue_dir) == []
