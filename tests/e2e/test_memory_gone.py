"""The memory of the queue is gone when the program is: a killed container, a reboot in good order, a logout.

The file and the spool on disk hold what `docs/explain/guarantees-in-detail.md` says for each durability.
"""

import contextlib
import fcntl
import functools
import json
import os
import shutil
import signal

import container
import pytest

from suite import lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

MODES = ["memory", "process", "interval", "checkpoint", "sync"]
EVERY = 50
#: Calls that have returned before the end; a sync for each record is slow.
RECORDS_OF = {"sync": 100, "checkpoint": 500}
RECORDS = 2000
SECONDS = 60

PROGRAM = """\
import json, logging, os, sys, time
import logspool

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(shutdown_timeout=1.0, **what["options"])
log = logging.getLogger("app")

def burst(who, count):
    for number in range(count):
        log.info("%s %0200d end", who, number)
        os.write(what["witness"], f"{who} {number} end\\n".encode())

if what["frozen"]:
    burst("early", what["count"])
    if "spool_dir" in what["options"]:
        sink = lambda: logspool.stats().sinks[os.path.abspath("app.log")]
        while sink().total("queued"):
            time.sleep(0.01)
    burst("late", what["late"])
    os.write(what["witness"], b"all 0 end\\n")
    time.sleep(600)
burst("main", 10**9)
"""


#: The program that the next container starts.
NEXT = """\
import logging, sys
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(spool_dir=sys.argv[1])
"""


class _Run:
    """One program, the records that it reported as accepted, and its file, which may be a pipe without a reader."""

    def __init__(self, folder, queue_dir, mode, frozen=False, late=10, **options):
        self.folder, self.frozen = folder, frozen
        if mode == "sync":
            late = 3
        self._count = (120 if mode != "sync" else 30) if frozen else RECORDS_OF.get(mode, RECORDS)
        self._reader, self.witness = os.pipe()
        self._seen = bytearray()
        self._pipe = None
        if frozen:
            os.mkfifo(folder / "app.log")
            self._pipe = os.open(folder / "app.log", os.O_RDWR | os.O_NONBLOCK)
            # A page: less than the logged bytes.
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, 4096)
        script = folder / "program.py"
        script.write_text(PROGRAM)
        what = {"options": {"durability": mode, "durability_timeout": SECONDS, **options}, "frozen": frozen}
        what |= {"count": self._count, "late": late, "witness": self.witness}
        self.arguments = [script, json.dumps(what)]
        self.env = programs.environment(programs.INSTALLED, queue_dir)

    def until_logged(self):
        """Read the numbers of accepted records until there are enough."""
        os.close(self.witness)
        while b"all 0 end" not in self._seen if self.frozen else self._seen.count(b"\n") < self._count:
            data = os.read(self._reader, 1 << 16)
            assert data, "the program ended by itself"
            self._seen += data

    def accepted(self):
        """Return the records accepted until the end, which has come."""
        while data := os.read(self._reader, 1 << 16):
            self._seen += data
        os.close(self._reader)
        path = self.folder / "witness"
        path.write_bytes(self._seen[: self._seen.rfind(b"\n") + 1])
        return lines.count(path)

    def start_next(self, spool):
        """Start another program with the same file and spool, and wait for its end."""
        arguments = ["-c", NEXT, spool]
        done = programs.run(arguments, env=self.env, folder=self.folder, deadline_seconds=SECONDS)
        done.expect_success()

    def found(self, *folders, by_start=False):
        """Deliver the records in the folders of queue and spool; return the whole lines in the file afterwards."""
        text = b""
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(self._pipe, 1 << 16):
                    text += data
            os.close(self._pipe)
            os.unlink(self.folder / "app.log")
            text = text[: text.rfind(b"\n") + 1]
        for folder in filter(os.path.exists, folders):
            if by_start:
                self.start_next(folder)
                continue
            done = programs.run(
                ["-m", "logspool", "recover", folder], env=self.env, folder=self.folder, deadline_seconds=SECONDS
            )
            done.expect_success()
        there = self.folder / "app.log"
        text += there.read_bytes() if there.exists() else b""
        # If the sidecar is gone too, the kill may have torn the last line.
        (self.folder / "whole").write_bytes(text[: text.rfind(b"\n") + 1])
        return lines.count(self.folder / "whole")


@contextlib.contextmanager
def _in_container(run, kind):
    start = functools.partial(container.running, private=kind == "private")
    if kind == "group":
        start = container.grouped
    with start(run.arguments, folder=run.folder, env=run.env, pass_fds=[run.witness]) as contained:
        run.until_logged()
        yield contained


def _lost(accepted, found, who):
    """Return how many of the newest records are missing; nothing may be missing in between."""
    said, there = accepted.numbers[who], found.numbers.get(who, [])
    assert there == list(range(len(there)))
    assert found.other == []
    return max(0, len(said) - len(there))


@pytest.mark.parametrize(("mode", "kind"), [("process", "group"), *((mode, "shared") for mode in MODES)])
def test_a_killed_container_loses_nothing_if_its_memory_outlives_it(tmp_path, queue_dir, mode, kind):
    run = _Run(tmp_path, queue_dir, mode, **({} if mode == "memory" else {"keeper": True}))
    with _in_container(run, kind) as contained:
        contained.kill()
    accepted, found = run.accepted(), run.found(queue_dir)

    lost = _lost(accepted, found, "main")
    assert len(accepted.numbers["main"]) >= RECORDS_OF.get(mode, RECORDS)
    if mode != "memory":
        assert lost == 0
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_container_loses_its_queued_records_if_its_memory_is_gone(tmp_path, queue_dir, mode):
    run = _Run(tmp_path, queue_dir, mode)
    with _in_container(run, "private") as contained:
        # Nothing of it is seen from here.
        assert queue_folder.left_in(queue_dir) == []
        contained.kill()
    accepted, found = run.accepted(), run.found(queue_dir)

    lost = _lost(accepted, found, "main")
    print(f"{mode}: {lost} of {len(accepted.numbers['main'])}")
    if mode in ("checkpoint", "sync"):
        assert lost <= (EVERY - 1 if mode == "checkpoint" else 0)


def _ended_by(run, number, before=lambda: None):
    child = programs.start(run.arguments, env=run.env, folder=run.folder, pass_fds=[run.witness])
    with programs.ended(child):
        run.until_logged()
        before()
        child.send_signal(number)
        until(lambda: child.poll() is not None, SECONDS, "the end")
        return child.returncode


def _empty(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("mode", MODES)
def test_an_orderly_reboot_loses_nothing_if_the_file_accepts_the_records(tmp_path, queue_dir, mode):
    run = _Run(tmp_path, queue_dir, mode)
    status = _ended_by(run, signal.SIGTERM)
    _empty(queue_dir)
    accepted, found = run.accepted(), run.found(queue_dir)

    assert status == -signal.SIGTERM
    assert _lost(accepted, found, "main") == 0


def _judge_frozen(mode, accepted, found):
    early, late = (len(set(accepted.numbers[who]) - set(found.numbers.get(who, []))) for who in ("early", "late"))
    print(f"{mode}: {early} of {len(accepted.numbers['early'])} and {late} of {len(accepted.numbers['late'])}")
    assert found.other == []
    if mode == "process":
        assert early + late > 0
        there = found.numbers.get("early", [])
        assert there == list(range(len(there)))
    if mode == "interval":
        assert early == 0
    if mode in ("checkpoint", "sync"):
        assert early + late <= (EVERY - 1 if mode == "checkpoint" else 0)


@pytest.mark.parametrize("mode", ["process", "interval", "checkpoint", "sync"])
@pytest.mark.parametrize("end", ["container", "reboot", "logout"])
def test_the_spool_survives_the_loss_of_memory_while_the_output_is_frozen(tmp_path, queue_dir, mode, end):
    spool = tmp_path / "spool"
    options = {} if mode == "process" else {"spool_dir": str(spool)}
    run = _Run(tmp_path, queue_dir, mode, frozen=True, **options)
    if end == "container":
        with _in_container(run, "private") as contained:
            contained.kill()
    elif end == "reboot":
        assert _ended_by(run, signal.SIGTERM) == -signal.SIGTERM
        _empty(queue_dir)
    else:
        # logind removes the folder while the program runs.
        assert _ended_by(run, signal.SIGKILL, lambda: shutil.rmtree(queue_dir)) == -signal.SIGKILL
    accepted = run.accepted()
    # The two ways to deliver the records of a spool.
    left = [spool] if options else [queue_dir]
    _judge_frozen(mode, accepted, run.found(*left, by_start=end == "container" and bool(options)))
    if options:
        assert [path for path in spool.rglob("*") if path.is_file()] == []
