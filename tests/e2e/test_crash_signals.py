"""A crash: right after it every line whose call returned is in the file, and the exit status is that of the crash."""

import json
import os
import random
import re
import resource
import signal
import threading
import time

import pytest

from suite import fixtures, lines, programs, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

ROUNDS = 100 if fixtures.faults_full() else 10
#: The moments of the crashes are random. An interpreter changes how a crash begins, which the first rounds show.
_ROUNDS = [pytest.param(number, marks=pytest.mark.one_interpreter if number >= 2 else ()) for number in range(ROUNDS)]
SEED = int(os.environ.get("LOGSPOOL_SEED", "7"))
SECONDS = 30
#: The longest time that a crash waits for its records.
WAIT_SECONDS = 0.2
LONGEST_CRASH_SECONDS = 10 * WAIT_SECONDS
#: Tries of a crash whose wait is over too early because the machine does other work.
TRIES = 3

PROGRAM = """\
import ctypes, faulthandler, json, logging, os, signal, sys, threading, time
from suite import side

what = json.loads(sys.argv[1])
(faulthandler.enable if what["faulthandler"] == "before" else faulthandler.disable)()
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(**what.get("options", {}))
if what["faulthandler"] == "after":
    faulthandler.enable()
log = logging.getLogger("app")
logged = threading.Semaphore(0)

def overflow():
    # Nested parentheses: the C library's parser calls itself for each.
    ctypes.CDLL(None).regcomp(ctypes.create_string_buffer(256), b"(" * 10_000_000, 1)

CRASHES = {
    "segv": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "bus": lambda: os.kill(os.getpid(), signal.SIGBUS),
    "fpe": lambda: signal.raise_signal(signal.SIGFPE),
    "ill": lambda: os.kill(os.getpid(), signal.SIGILL),
    "overflow": overflow,
}

def run(who):
    for number in range(10**9):
        log.info("%s %d end", who, number)
        os.write(what["witness"], f"{who} {number} end\\n".encode())
        if number == 20:
            logged.release()

def crash():
    for number in range(what["count"]):
        log.log((20, 30, 40)[number % 3], "crash %d end", number)
    os.write(what["witness"], b"at %d end\\n" % time.monotonic_ns())
    CRASHES[what["crash"]]()

others = [threading.Thread(target=run, args=(f"other-{each}",), daemon=True) for each in range(what["threads"])]
for thread in others:
    thread.start()
for thread in others:
    logged.acquire()
if what["where"] == "fork":
    log.info("parent %d end", 0)
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.info("parent %d end", 1)
        print(status, flush=True)
        logging.shutdown()
        os._exit(0)
if what["where"] == "thread":
    threading.Thread(target=crash).start()
    time.sleep(60)
else:
    crash()
"""

NUMBERS = {
    "segv": signal.SIGSEGV,
    "abort": signal.SIGABRT,
    "bus": signal.SIGBUS,
    "fpe": signal.SIGFPE,
    "ill": signal.SIGILL,
    "overflow": signal.SIGSEGV,
}


def _no_core():
    # Cores of a hundred crashes would fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _crash(folder, queue_dir, program=PROGRAM, **what):
    """Run the program. Returns (status, stderr, the witnessed lines, seconds from the crash to the end)."""
    what = {"threads": 0, "count": 1000, "where": "main", "faulthandler": "off", **what}
    script = folder / "program.py"
    script.write_text(program)
    reader, writer = os.pipe()
    seen = bytearray()

    def read():
        with os.fdopen(reader, "rb", buffering=0) as witnesses:
            while data := witnesses.read(1 << 16):
                seen.extend(data)

    collecting = threading.Thread(target=read)
    collecting.start()
    with (folder / "stderr").open("wb") as stderr, (folder / "stdout").open("wb") as stdout:
        child = programs.start(
            [script, json.dumps({**what, "witness": writer})],
            env=programs.environment(programs.INSTALLED, queue_dir, PYTHONFAULTHANDLER=""),
            folder=folder,
            pass_fds=[writer],
            stdout=stdout,
            stderr=stderr,
            preexec_fn=_no_core,
        )
    os.close(writer)
    with programs.ended(child):
        status = child.wait(SECONDS)
        ended = time.monotonic_ns()
    collecting.join(SECONDS)
    # The last witness may be torn: its call had returned, but its number is not known.
    (folder / "witness").write_bytes(seen[: seen.rfind(b"\n") + 1])
    witnessed = lines.count(folder / "witness")
    at = witnessed.numbers.pop("at", [ended])[0]
    return status, (folder / "stderr").read_text(), witnessed.numbers, (ended - at) / 1e9


def _crash_in_time(tmp_path, queue_dir, **what):
    """Run the program until its records are in the file when it ends. Returns (folder, stderr, witnessed).

    Only a crash that waited for its full limit counts as a crash on a busy machine; a recovery then delivers all
    records.
    """
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        status, stderr, witnessed, seconds = _crash(folder, queue_dir, **what)
        assert status == -NUMBERS[what["crash"]], stderr
        wanted = _wanted(witnessed, what["count"])
        written = lines.count(folder / "app.log")
        if not any(written.missing(who, numbers) for who, numbers in wanted.items()):
            return folder, stderr, witnessed
        assert seconds >= WAIT_SECONDS, f"records are missing after a crash of {seconds:.3f} s"
        _assert_recoverable(folder, queue_dir)
        _assert_complete(folder, witnessed, what["count"])
    raise AssertionError(f"{TRIES} crashes were over before their records were written, the last after {seconds:.3f} s")


def _wanted(witnessed, count):
    return {**witnessed, "crash": range(count)}


def _assert_complete(folder, witnessed, count):
    lines.count(folder / "app.log").expect_each_once(_wanted(witnessed, count))


def _assert_recoverable(folder, queue_dir):
    """A recovery takes all that is left in the queue folder, and adds no record that was there already."""
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=folder, deadline_seconds=SECONDS).expect_success()
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("number", _ROUNDS, ids=lambda number: f"seed-{SEED}-round-{number}")
@pytest.mark.parametrize("crash", ["segv", "abort", "bus", "overflow"])
def test_every_accepted_line_is_in_the_file_right_after_the_crash(crash, number, tmp_path, queue_dir):
    choice = random.Random(f"{SEED}-{crash}-{number}")
    what = {
        "crash": crash,
        "threads": choice.choice([0, 0, 1, 3]),
        "count": choice.choice([1, 10, 100, 1000, choice.randrange(3000)]),
        # A thread that Python starts has no alternate stack for signals.
        "where": "main" if crash == "overflow" else choice.choice(["main", "thread"]),
        "faulthandler": choice.choice(["off", "before", "after"]),
    }

    folder, stderr, witnessed = _crash_in_time(tmp_path, queue_dir, **what)

    _assert_complete(folder, witnessed, what["count"])
    assert ("Fatal Python error" in stderr) == (what["faulthandler"] != "off")
    assert what["faulthandler"] == "off" or "program.py" in stderr
    _assert_recoverable(folder, queue_dir)
    _assert_complete(folder, witnessed, what["count"])


@pytest.mark.parametrize("crash", ["segv", "abort", "bus", "fpe", "ill", "overflow"])
def test_a_quiet_crash_leaves_nothing_in_shared_memory(crash, tmp_path, queue_dir):
    folder, _, witnessed = _crash_in_time(tmp_path, queue_dir, crash=crash, count=1000)

    _assert_complete(folder, witnessed, 1000)
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("crash", ["segv", "abort"])
@pytest.mark.parametrize("faulthandler", ["off", "before", "after"])
def test_a_crash_with_a_frozen_output_ends_in_time_and_keeps_its_records(crash, faulthandler, tmp_path, queue_dir):
    os.mkfifo(tmp_path / "app.log")
    end = os.open(tmp_path / "app.log", os.O_RDWR)
    try:
        # Five times the capacity of the FIFO.
        status, stderr, _, seconds = _crash(
            tmp_path, queue_dir, crash=crash, count=20_000, faulthandler=faulthandler, threads=0
        )
        left = queue_folder.left_in(queue_dir)
    finally:
        os.close(end)
    # A file replaces the pipe: the records are for that path.
    (tmp_path / "app.log").unlink()
    _assert_recoverable(tmp_path, queue_dir)

    assert status == -NUMBERS[crash], stderr
    assert seconds < LONGEST_CRASH_SECONDS
    assert left != []
    written = lines.count(tmp_path / "app.log")
    assert written.doubled() == {}
    numbers = written.numbers["crash"]
    # The beginning went into the pipe.
    assert numbers == list(range(numbers[0], 20_000))


def test_a_forked_child_crashes_alone_and_completely(tmp_path, queue_dir):
    status, stderr, _, _ = _crash(tmp_path, queue_dir, crash="segv", where="fork")

    assert status == 0, stderr
    assert (tmp_path / "stdout").read_text() == f"{-signal.SIGSEGV}\n"
    written = lines.count(tmp_path / "app.log")
    assert written.numbers == {"parent": [0, 1], "crash": list(range(1000))}
    assert written.other == []
    assert queue_folder.left_in(queue_dir) == []


def test_without_the_option_a_crash_continues_at_once_and_the_records_wait(tmp_path, queue_dir):
    program = PROGRAM.replace(
        'CRASHES[what["crash"]]()',
        'print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("SigCgt")), flush=True)\n'
        '    CRASHES[what["crash"]]()',
    )

    status, _, witnessed, _ = _crash(
        tmp_path, queue_dir, program, crash="segv", options={"crash_signals": False}, threads=3, where="thread"
    )

    caught = int((tmp_path / "stdout").read_text(), 16)
    assert not any(caught >> (number - 1) & 1 for number in NUMBERS.values())
    assert status == -signal.SIGSEGV
    _assert_recoverable(tmp_path, queue_dir)
    _assert_complete(tmp_path, witnessed, 1000)


SURVIVED = """\
import ctypes, json, logging, os, signal, sys, threading, time
from suite import side

what = json.loads(sys.argv[1])
came = []
signal.signal(signal.SIGBUS, lambda number, frame: came.append(number))
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
go_on = True
def run():
    number = 0
    while go_on:
        log.info("other %d end", number)
        number += 1
        time.sleep(0.0002)
    print(number)
thread = threading.Thread(target=run)
thread.start()
for number in range(50):
    log.info("crash %d end", number)
    os.kill(os.getpid(), signal.SIGBUS)
go_on = False
began = time.monotonic()
thread.join()
assert time.monotonic() - began < 1, "calls of another thread still wait for the end"
assert len(came) == 50, came
# With its default action again, the signal ends the process after the queued records are written.
signal.signal(signal.SIGBUS, signal.SIG_DFL)
log.info("crash %d end", 50)
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGBUS)
"""


def test_a_signal_handler_that_survives_the_crash_keeps_logging(tmp_path, queue_dir):
    status, stderr, _, _ = _crash(tmp_path, queue_dir, SURVIVED)

    assert status == -signal.SIGBUS, stderr
    others = int((tmp_path / "stdout").read_text())
    # The signals that its own handler survived may have used up all the waiting time.
    _assert_recoverable(tmp_path, queue_dir)
    written = lines.count(tmp_path / "app.log")
    assert written.numbers == {"other": list(range(others)), "crash": list(range(51))}
    assert written.other == []


HANDLERS = """\
import json, logging, os, signal, sys
from suite import side

what = json.loads(sys.argv[1])
SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
def caught():
    with open("/proc/self/status") as status:
        bits = int(next(line.split()[1] for line in status if line.startswith("SigCgt")), 16)
    return [int(bits >> (number - 1) & 1) for number in SIGNALS]

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
signal.signal(signal.SIGFPE, signal.SIG_IGN)
seen = [caught()]
side.install()
seen.append(caught())
signal.signal(signal.SIGABRT, signal.SIG_IGN)
signal.signal(signal.SIGILL, lambda *_: None)
seen.append(caught())
side.uninstall()
seen.append(caught())
print(json.dumps(seen))
"""


def test_ignored_signals_stay_ignored_and_uninstall_restores_handlers_that_are_still_ours(tmp_path, queue_dir):
    status, stderr, _, _ = _crash(tmp_path, queue_dir, HANDLERS)

    assert status == 0, stderr
    before, installed, changed, after = json.loads((tmp_path / "stdout").read_text())
    assert before == [0, 0, 0, 0, 0]
    assert installed == [1, 1, 1, 0, 1]
    assert changed == [1, 0, 1, 0, 1]
    assert after == [0, 0, 0, 0, 1]


def test_the_option_must_be_true_or_false(run_program):
    outcome, _ = run_program("import logspool\nlogspool.install(crash_signals=1)\n")

    assert outcome.status == 1
    assert re.search(rb"TypeError: crash_signals must be True or False, not 1", outcome.err)
