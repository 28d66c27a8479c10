"""Every way to end, in each durability: the file lacks only what `docs/explain/guarantees-in-detail.md` says."""

import contextlib
import mmap
import os
import signal

import pytest

from suite import lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

RECORDS = 3000
SECONDS = 60

PROGRAM = """\
import ctypes, logging, os, signal, sys, time
import logspool

mode, end, witness, records = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
signal.signal(signal.SIGINT, signal.default_int_handler)
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(durability=mode)
log = logging.getLogger("app")

def burst(who):
    for number in range(records):
        log.info("%s %d end", who, number)
        os.write(witness, f"{who} {number} end\\n".encode())

burst("main")
if end == "exit":
    sys.exit(3)
if end == "exception":
    raise RuntimeError("the end")
if end == "_exit":
    os._exit(4)
if end == "exec":
    os.execv("/bin/true", ["true"])
if end == "abort":
    os.abort()
if end == "segv":
    ctypes.string_at(0)
if end == "fork":
    child = os.fork()
    if not child:
        burst("child")
        os._exit(0)
    burst("parent")
    os.waitpid(child, 0)
if end.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, end))
    time.sleep(30)
"""

#: Ends that leave no record in the queue folder, and the exit code of the program.
COMPLETE = {
    "return": 0,
    "exit": 3,
    "exception": 1,
    "_exit": 4,
    "exec": 0,
    "fork": 0,
    "SIGINT": -signal.SIGINT,
    "SIGTERM": -signal.SIGTERM,
    "SIGHUP": -signal.SIGHUP,
}
#: Modes in which a kill of the process loses nothing.
LASTING = ["process", "interval", "checkpoint", "sync"]
#: A sync for each record, or for every fifty, is slow.
RECORDS_OF = {"sync": 100, "checkpoint": 1000}
KILLS = {"SIGKILL": -signal.SIGKILL, "abort": -signal.SIGABRT, "segv": -signal.SIGSEGV}


def _records(mode):
    return RECORDS_OF.get(mode, RECORDS)


def _run(folder, queue_dir, mode, end):
    script = folder / "program.py"
    script.write_text(PROGRAM)
    reader, writer = os.pipe()
    with (folder / "stderr").open("wb") as errors:
        child = programs.start(
            [script, mode, end, str(writer), str(_records(mode))],
            env=programs.environment(programs.INSTALLED, queue_dir, PYTHONFAULTHANDLER=""),
            folder=folder,
            pass_fds=[writer],
            stderr=errors,
        )
    os.close(writer)
    seen = bytearray()
    with programs.ended(child):
        while data := os.read(reader, 1 << 16):
            seen += data
        os.close(reader)
        until(lambda: child.poll() is not None, SECONDS, "the end")
        # Before the session is killed.
        status = child.returncode
    witness = folder / "witness"
    witness.write_bytes(bytes(seen[: seen.rfind(b"\n") + 1]))
    return status, lines.count(witness)


def _cut_line(path):
    """Return the unfinished last line. The kernel ends a `write` of a killed program at a page border of the file."""
    content = path.read_bytes()
    cut = content[content.rfind(b"\n") + 1 :]
    assert not cut or len(content) % mmap.PAGESIZE == 0
    return [cut] if cut else []


def _missing(found, accepted):
    return {who: lost for who, numbers in accepted.numbers.items() if (lost := found.missing(who, numbers))}


@pytest.mark.parametrize("end", COMPLETE)
@pytest.mark.parametrize("mode", ["memory", *LASTING])
def test_the_file_is_complete_wherever_it_is_with_stock_logging(tmp_path, queue_dir, mode, end):
    status, accepted = _run(tmp_path, queue_dir, mode, end)

    found = lines.count(tmp_path / "app.log")
    assert status == COMPLETE[end]
    assert len(accepted.numbers["main"]) == _records(mode)
    assert _missing(found, accepted) == {}
    assert (found.doubled(), found.out_of_order(), found.other) == ({}, {}, [])
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("end", KILLS)
def test_a_kill_in_memory_mode_loses_the_newest_records_and_may_cut_the_last_line(tmp_path, queue_dir, end):
    status, accepted = _run(tmp_path, queue_dir, "memory", end)

    found = lines.count(tmp_path / "app.log")
    written = found.numbers.get("main", [])
    assert status == KILLS[end]
    assert accepted.numbers == {"main": list(range(RECORDS))}
    # Nothing is missing in between.
    assert written == list(range(len(written)))
    assert found.other in ([], _cut_line(tmp_path / "app.log"))
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("end", KILLS)
@pytest.mark.parametrize("mode", LASTING)
def test_a_kill_in_the_other_modes_loses_nothing_once_the_next_program_has_started(tmp_path, queue_dir, mode, end):
    status, accepted = _run(tmp_path, queue_dir, mode, end)
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    found = lines.count(tmp_path / "app.log")
    assert status == KILLS[end]
    assert found.numbers == accepted.numbers == {"main": list(range(_records(mode)))}
    assert found.other == []
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("mode", ["memory", *LASTING])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_ended_from_outside_at_any_moment_keeps_the_promise_of_its_mode(tmp_path, queue_dir, mode, number):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    reader, writer = os.pipe()
    seen = bytearray()
    with contextlib.ExitStack() as ends:
        env = programs.environment(programs.INSTALLED, queue_dir)
        arguments = [script, mode, "return", str(writer), str(10**9)]
        child = programs.start(arguments, env=env, folder=tmp_path, pass_fds=[writer])
        ends.enter_context(programs.ended(child))
        os.close(writer)
        while seen.count(b"\n") < _records(mode):
            seen += os.read(reader, 1 << 16)
        child.send_signal(number)
        while data := os.read(reader, 1 << 16):
            seen += data
        os.close(reader)
        until(lambda: child.poll() is not None, SECONDS, "the end")
    (tmp_path / "witness").write_bytes(bytes(seen[: seen.rfind(b"\n") + 1]))
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    accepted, found = lines.count(tmp_path / "witness"), lines.count(tmp_path / "app.log")
    written = found.numbers.get("main", [])
    assert child.returncode == -number
    assert written == list(range(len(written)))
    assert found.other in ([], _cut_line(tmp_path / "app.log") if mode == "memory" else [])
    if mode != "memory" or number == signal.SIGTERM:
        assert _missing(found, accepted) == {}
    assert queue_folder.left_in(queue_dir) == []
