"""Records of an output that stalls wait on disk: the program reports it, and forks and kills lose nothing."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import logspool
from suite import fixtures, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

FORKS = 500 if fixtures.faults_full() else 20
KILLS = 100 if fixtures.faults_full() else 5
# Records go to an overflow file for a second and then to the spool; this is more than ten times as long.
SPOOLED_SECONDS = 30

PROGRAM = """\
import json, logging, os, sys
import logspool

forks, end = int(sys.argv[1]), sys.argv[2]
logspool.install(spool_dir="spool", shutdown_timeout=60 if end == "drain" else 0.2)
handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
for number in range(20_000):
    log.info("main %d end", number)
    os.write(1, b"%d\\n" % number)
name = os.path.abspath("app.log")
while not logspool.stats().sinks[name].total("spooled"):
    logspool.flush(0.05)
for number in range(forks):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    log.info("main %d end", 20_000 + number)
stats, health = logspool.stats(), logspool.health()
with open("report.part", "w") as file:
    sink = stats.sinks[name]
    counts = {field: sink.total(field) for field in ("accepted_for_sink", "written", "queued", "spooled", "dropped")}
    json.dump({**counts, "health": str(health), "metrics": logspool.metrics_text(), "text": str(stats)}, file)
os.rename("report.part", "report")
if end == "_exit":
    os._exit(0)
sys.stdin.read(1)
if not logspool.flush(60):
    sys.exit("not everything was written")
"""


class Frozen:
    """The program; its log file is a pipe without a reader."""

    def __init__(self, folder: Path, queue_dir: Path, forks: int, end: str) -> None:
        self.folder = folder
        os.mkfifo(folder / "app.log")
        self.end = os.open(folder / "app.log", os.O_RDWR | os.O_NONBLOCK)
        (folder / "program.py").write_text(PROGRAM)
        with (folder / "accepted").open("wb") as accepted, (folder / "stderr").open("wb") as stderr:
            self.child = subprocess.Popen(
                [sys.executable, "program.py", str(forks), end],
                env=programs.environment(programs.INSTALLED, queue_dir),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=accepted,
                stderr=stderr,
            )

    def until_reported(self) -> dict:
        """Wait for the program's counts."""
        import json

        report = self.folder / "report"
        until(lambda: report.exists() or self.child.poll() is not None, SPOOLED_SECONDS * 2, "records are spooled")
        assert report.exists(), (self.folder / "stderr").read_text()
        return json.loads(report.read_text())

    def read(self) -> bytes:
        """Return the bytes in the pipe at the moment."""
        parts = []
        while True:
            try:
                parts.append(os.read(self.end, 1 << 16))
            except BlockingIOError:
                return b"".join(parts)

    def spool_files(self) -> list[Path]:
        """Return all files of the spool."""
        return [path for path in (self.folder / "spool").rglob("*") if path.is_file()]


@pytest.fixture
def frozen(tmp_path, queue_dir):
    """Return a function that starts the program."""
    began = []

    def start(forks: int, end: str) -> Frozen:
        folder = tmp_path / str(len(began))
        folder.mkdir()
        began.append(Frozen(folder, queue_dir, forks, end))
        return began[-1]

    yield start
    for each in began:
        if each.child.poll() is None:
            each.child.kill()
        each.child.wait()
        each.child.stdin.close()
        os.close(each.end)


def test_spooled_records_are_counted_survive_forks_and_arrive_in_order(frozen, queue_dir):
    program = frozen(FORKS, "drain")
    report = program.until_reported()
    assert report["accepted_for_sink"] == report["written"] + report["queued"] + report["spooled"]
    assert report["spooled"] > 10_000, report
    assert "app.log is stuck in a write" in report["health"]
    assert f"{report['spooled']} spooled" in report["text"]
    assert 'queue_records{queue="spool"}' in report["metrics"]
    assert program.spool_files()

    program.child.stdin.write(b".")
    program.child.stdin.close()
    text = b""
    while program.child.poll() is None:
        text += program.read()
    text += program.read()
    assert program.child.returncode == 0, (program.folder / "stderr").read_text()
    assert text.decode().splitlines() == [f"main {number} end" for number in range(20_000 + FORKS)]
    assert program.spool_files() == []
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("end", ["kill", "_exit"])
def test_recover_delivers_the_spool_of_a_killed_program(frozen, queue_dir, end):
    lines = 0
    for _ in range(KILLS):
        program = frozen(0, end)
        program.until_reported()
        if end == "kill":
            assert program.spool_files()
            program.child.send_signal(signal.SIGKILL)
        program.child.wait(SPOOLED_SECONDS)
        if end == "_exit":
            assert "records were not written within 0.2 s; they are kept" in (program.folder / "stderr").read_text()
        text = program.read()
        target = program.folder / "app.log"
        target.unlink()
        report = logspool.recover(queue_dir)
        assert not report.kept, report
        # The pipe took half a line of the batch that it held when the program died: that batch comes again.
        text = text[: text.rfind(b"\n") + 1]
        before = text.decode().splitlines()
        recovered = target.read_text().splitlines()
        assert before == [f"main {number} end" for number in range(len(before))]
        first = int(recovered[0].split()[1])
        assert first <= len(before)
        assert recovered == [f"main {number} end" for number in range(first, 20_000)]
        accepted = (program.folder / "accepted").read_bytes().splitlines()
        assert len(accepted) == 20_000
        assert program.spool_files() == []
        lines += len(recovered)
    print(f"spool: {KILLS} kills, {lines} lines by recovery, 0 missing")


OWN = """\
import logging, os, shutil, sys, time
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(spool_dir="spool")
for number in range(2000):
    logging.info("main %d end", number)
sink = lambda: logspool.stats().sinks[os.path.abspath("app.log")]
while sink().total("queued"):
    time.sleep(0.01)
shutil.rmtree(os.environ["LOGSPOOL_QUEUE_DIR"])
reports = [logspool.recover("spool")]
child = os.fork()
if not child:
    os._exit(logspool.recover("spool") != reports[0])
assert os.waitpid(child, 0)[1] == 0
assert not reports[0].delivered and not reports[0].kept and not reports[0].removed, reports
os.write(1, b"spooled\\n")
assert logspool.flush(60)
"""


def test_a_process_without_its_segment_keeps_its_own_spool(tmp_path, queue_dir):
    os.mkfifo(tmp_path / "app.log")
    pipe = os.open(tmp_path / "app.log", os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    env = programs.environment(programs.INSTALLED, queue_dir)
    child = programs.start(["-c", OWN], env=env, folder=tmp_path, stdout=subprocess.PIPE)
    text = b""
    with programs.ended(child):
        assert child.stdout.readline() == b"spooled\n"
        while child.poll() is None:
            with contextlib.suppress(BlockingIOError):
                text += os.read(pipe, 1 << 16)
        status = child.returncode
    with contextlib.suppress(BlockingIOError):
        text += os.read(pipe, 1 << 16)
    os.close(pipe)

    assert status == 0
    assert text.decode().splitlines() == [f"main {number} end" for number in range(2000)]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"spool_dir": "/dev/null/spool"}, "is no folder"),
        ({"spool_dir": 7}, "must be a path"),
        ({"spool_dir": "/dev/null"}, "is no folder"),
        ({"spool_dir": "spool", "durability": "memory"}, "spool_dir needs a durability other than"),
        ({"spool_bytes": 1000}, "spool_bytes must be 1048576 to"),
    ],
)
def test_options_that_cannot_work_are_errors(options, error):
    with pytest.raises((ValueError, TypeError), match=error):
        logspool.install(**options)
