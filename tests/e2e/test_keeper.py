"""SIGKILL of a program that has a keeper: every accepted line is in the file soon, without a later start."""

import json
import os
import random
import signal
from pathlib import Path

import pytest

from logspool.process import _keeper
from suite import fixtures, lines, programs, queue_folder, witness
from suite.waiting import until

pytestmark = [pytest.mark.real]

ROUNDS = 100 if fixtures.faults_full() else 10
SEED = int(os.environ.get("LOGSPOOL_SEED", "7"))
# Ten times the longest time that a keeper searches for records.
SECONDS = 30

PROGRAM = """\
import json, logging, os, sys, threading
from suite import side

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
if what["start"] == "install":
    side.install(keeper=True)
log = logging.getLogger("app")

def run(who):
    for number in range(10**9):
        log.info("%s %d end", who, number)
        os.write(what["witness"], f"{who} {number} end\\n".encode())

for worker in range(what["workers"]):
    if os.fork() == 0:
        run(f"worker-{worker}")
for each in range(what["threads"]):
    threading.Thread(target=run, args=(f"thread-{each}",)).start()
run("main")
"""


def _keepers(queue_dir):
    return list(_keeper.running(str(queue_dir)))


def _arguments(start, *program):
    return [*(["-m", "logspool", "run"] if start == "run" else []), *program]


def _side(start):
    # Under `run` the program needs no line for logspool.
    return programs.STOCK if start == "run" else programs.INSTALLED


def _run_and_kill(folder, queue_dir, after, kill, start="run", threads=0, workers=0):
    """Run the program, call `kill` after some witnessed lines, and return the witnessed lines."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    reader, writer = os.pipe()
    what = {"start": start, "threads": threads, "workers": workers, "witness": writer}
    child = programs.start(
        _arguments(start, script, json.dumps(what)),
        env=programs.environment(_side(start), queue_dir),
        folder=folder,
        pass_fds=[writer],
    )

    def kill_what_is_kept():
        assert [program for _, program in _keepers(queue_dir)] == [child.pid]
        kill(child)

    with programs.ended(child):
        # The keeper does not hold the other end.
        seen = witness.of(child, reader, writer, after, kill_what_is_kept)
        assert child.wait(SECONDS) == -signal.SIGKILL
    (folder / "witness").write_bytes(seen)
    return lines.count(folder / "witness").numbers


def _assert_delivered(folder, queue_dir, witnessed):
    until(lambda: not _keepers(queue_dir), SECONDS, "the keeper has done its work and is gone")
    assert queue_folder.left_in(queue_dir) == []
    lines.count(folder / "app.log").expect_each_once(witnessed)


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("start", ["run", "install"])
@pytest.mark.parametrize("number", range(ROUNDS), ids=lambda number: f"seed-{SEED}-kill-{number}")
def test_every_accepted_line_of_a_killed_program_is_in_its_file_without_a_later_start(
    number, start, tmp_path, queue_dir
):
    choice = random.Random(f"{SEED}-{start}-{number}")

    witnessed = _run_and_kill(
        tmp_path,
        queue_dir,
        choice.choice([1, 10, 100, choice.randrange(1, 3000)]),
        lambda child: child.kill(),
        start,
        threads=choice.choice([0, 0, 2]),
    )

    assert witnessed
    _assert_delivered(tmp_path, queue_dir, witnessed)


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("start", ["run", "install"])
@pytest.mark.parametrize("number", range(ROUNDS), ids=lambda number: f"seed-{SEED}-kill-{number}")
def test_a_program_and_its_workers_are_killed_as_a_group(number, start, tmp_path, queue_dir):
    choice = random.Random(f"{SEED}-group-{start}-{number}")

    def kill(child):
        # A supervisor does the same; it also asks the keeper to end.
        [(keeper, _)] = _keepers(queue_dir)
        os.kill(keeper, signal.SIGTERM)
        os.kill(keeper, signal.SIGHUP)
        os.killpg(child.pid, signal.SIGSTOP)
        os.killpg(child.pid, signal.SIGTERM)
        os.killpg(child.pid, signal.SIGKILL)

    witnessed = _run_and_kill(tmp_path, queue_dir, choice.randrange(1, 2000), kill, start, workers=3)

    _assert_delivered(tmp_path, queue_dir, witnessed)


@pytest.mark.parametrize("start", ["run", "install"])
def test_records_that_the_output_had_not_accepted_at_the_kill_reach_the_file(start, tmp_path, queue_dir):
    # A pipe that is not read: nearly all records are queued when the kill comes.
    os.mkfifo(tmp_path / "app.log")
    end = os.open(tmp_path / "app.log", os.O_RDWR)

    def kill(child):
        # A file replaces the pipe: the records are for that path.
        (tmp_path / "app.log").unlink()
        child.kill()

    try:
        # Some ten times the capacity of the pipe.
        witnessed = _run_and_kill(tmp_path, queue_dir, 40_000, kill, start)
    finally:
        os.close(end)

    until(lambda: not _keepers(queue_dir), SECONDS, "the keeper has done its work and is gone")
    assert queue_folder.left_in(queue_dir) == []
    written = lines.count(tmp_path / "app.log")
    numbers = written.numbers["main"]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] < 10_000 and numbers[-1] >= witnessed["main"][-1]
    assert written.other == []


@pytest.mark.parametrize("start", ["run", "install"])
def test_the_program_continues_when_its_keeper_is_killed(start, tmp_path, queue_dir):
    (tmp_path / "program.py").write_text(
        "import logging, sys\nfrom suite import side\n"
        "logging.basicConfig(filename='app.log', level=logging.INFO, format='%(message)s')\n"
        + ("side.install(keeper=True)\n" if start == "install" else "")
        + "logging.info('before')\nprint('here', flush=True)\nsys.stdin.read()\nlogging.info('after')\n"
    )
    child = programs.start(
        _arguments(start, "program.py"),
        env=programs.environment(_side(start), queue_dir),
        folder=tmp_path,
        stdin=-1,
        stdout=-1,
    )
    with programs.ended(child):
        assert child.stdout.readline() == b"here\n"
        [(keeper, _)] = _keepers(queue_dir)
        os.kill(keeper, signal.SIGKILL)
        until(lambda: not _keepers(queue_dir), SECONDS, "the keeper is gone")
        child.stdin.close()
        child.stdin = None
        assert child.wait(SECONDS) == 0

    assert (tmp_path / "app.log").read_text() == "before\nafter\n"
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.abort()", -signal.SIGABRT),
    ],
)
def test_the_program_ends_as_without_a_keeper_and_the_keeper_ends_too(end, status, tmp_path, queue_dir):
    (tmp_path / "program.py").write_text(f"import logging, os, signal, sys\nlogging.warning('on')\n{end}\n")

    # Waits until no process holds the pipes of stdout and stderr any more.
    outcome = programs.run(
        ["-m", "logspool", "run", "program.py"],
        env=programs.environment(programs.STOCK, queue_dir, PYTHONFAULTHANDLER=""),
        folder=tmp_path,
        deadline_seconds=SECONDS,
    )

    assert outcome.status == status
    until(lambda: not _keepers(queue_dir), SECONDS, "the keeper is gone")


FACTS = """\
import json, os, sys
import logspool
from logspool.process import _keeper

folder = os.environ["LOGSPOOL_QUEUE_DIR"]
other = folder + "/other"
os.mkdir(other, 0o700)
logspool.install(**json.loads(sys.argv[1]))
logspool.install(**json.loads(sys.argv[1]))
facts = []
for keeper, program in [*_keeper.running(folder), *_keeper.running(other)]:
    with open(f"/proc/{keeper}/stat") as file:
        state, parent, group, session, terminal = file.read().rpartition(")")[2].split()[:5]
    facts.append({
        "of": program == os.getpid(),
        "child": int(parent) == os.getpid(),
        "apart": int(session) not in (os.getsid(0), keeper) and int(terminal) == 0,
        "descriptors": sorted(os.readlink(f"/proc/{keeper}/fd/{each}") for each in os.listdir(f"/proc/{keeper}/fd")),
        "folder": os.readlink(f"/proc/{keeper}/cwd"),
    })
print(json.dumps([facts, sorted(os.listdir("/proc/self/fd"))]))
"""

KEEPER = {
    "of": True,
    "child": False,
    "apart": True,
    "descriptors": [*["/dev/null"] * 3, "anon_inode:[pidfd]"],
    "folder": "/",
}


@pytest.mark.parametrize(
    ("start", "options", "variables", "keepers"),
    [
        ("install", {"keeper": True}, {}, 1),
        ("install", {}, {}, 0),
        ("install", {"keeper": True}, {"LOGSPOOL": "off"}, 0),
        ("install", {"keeper": True}, {"LOGSPOOL_KEEPER": "off"}, 0),
        ("run", {}, {}, 1),
        ("run", {"keeper": True}, {}, 1),
        ("run", {"flush_interval": 1.0}, {}, 1),
        ("run", {"keeper": True}, {"LOGSPOOL": "off"}, 0),
        ("run", {}, {"LOGSPOOL_KEEPER": "off"}, 0),
        ("run", {"queue_dir": "OTHER"}, {}, 2),
    ],
)
def test_each_folder_has_one_keeper_that_holds_no_files_open(start, options, variables, keepers, tmp_path, queue_dir):
    (tmp_path / "program.py").write_text(FACTS)
    options = {name: str(queue_dir / "other") if value == "OTHER" else value for name, value in options.items()}

    outcome = programs.run(
        _arguments(start, "program.py", json.dumps(options)),
        env=programs.environment(_side(start), queue_dir, **variables),
        folder=tmp_path,
        deadline_seconds=SECONDS,
    ).expect_success()

    found, descriptors = json.loads(outcome.out)
    for facts in found:
        facts["descriptors"] = [name.replace("pidfd:", "anon_inode:") for name in facts["descriptors"]]
    assert found == [KEEPER] * keepers
    # The standard descriptors, and the listing's own.
    assert descriptors == ["0", "1", "2", "3"]
    assert outcome.err == b""


def test_doctor_says_whether_a_keeper_runs(tmp_path, queue_dir):
    (tmp_path / "program.py").write_text("import sys\nprint('here', flush=True)\nsys.stdin.read()\n")
    env = programs.environment(programs.STOCK, queue_dir)

    def doctor():
        return programs.run(["-m", "logspool", "doctor"], env=env, folder=tmp_path, deadline_seconds=SECONDS).out

    child = programs.start(_arguments("run", "program.py"), env=env, folder=tmp_path, stdin=-1, stdout=-1)
    with programs.ended(child):
        assert child.stdout.readline() == b"here\n"
        [(keeper, _)] = _keepers(queue_dir)
        during = doctor()
    until(lambda: not _keepers(queue_dir), SECONDS, "the keeper is gone")

    assert during.endswith(f"keepers: process {keeper} for process {child.pid}\n".encode())
    assert doctor().endswith(b"keepers: none\n")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("keeper=1", "TypeError: keeper must be True or False, not 1"),
        ("keeper=True, durability='memory'", "ValueError: keeper=True: with durability='memory' nothing outlives"),
    ],
)
def test_invalid_options_are_refused(options, error, run_program):
    outcome, _ = run_program(f"import logspool\nlogspool.install({options})\n")

    assert outcome.status == 1
    assert error in outcome.err.decode()


def test_without_a_descriptor_of_the_process_install_says_why(run_program):
    program = """\
import os, logging
def refuse(pid, flags=0):
    raise OSError(38, "Function not implemented")
os.pidfd_open = refuse
import logspool
info = logging.Logger.info
try:
    logspool.install(keeper=True)
except RuntimeError as error:
    print(error, logging.Logger.info is info)
"""
    outcome, _ = run_program(program)

    assert outcome.expect_success().out == b"keeper=True: cannot start a keeper: Function not implemented True\n"


def test_python_and_the_core_agree_on_the_default_queue_folder():
    """The core and Python have the same default folder."""
    source = Path(__file__).parents[2] / "crates" / "logspool-sys" / "src" / "folder.rs"

    assert "/dev/shm/logspool-{}" in source.read_text()
    from logspool.base import _options

    assert _options.default_queue_dir() == f"/dev/shm/logspool-{os.getuid()}"


C_ENDS = """\
import ctypes, logging, sys
from suite import side

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
if sys.argv[1] == "install":
    side.install(keeper=True)
for number in range(1000):
    logging.info("main %d end", number)
library = ctypes.CDLL(None)
if sys.argv[2] == "_exit":
    library._exit(3)
words = (ctypes.c_char_p * 3)(b"cat", None)
library.execv(b"/bin/cat", words)
"""


@pytest.mark.parametrize("start", ["run", "install"])
@pytest.mark.parametrize("end", ["_exit", "execv"])
def test_the_file_is_complete_after_an_exit_that_only_the_c_library_sees(start, end, tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(C_ENDS)
    child = programs.start(
        _arguments(start, script, start, end),
        env=programs.environment(_side(start), queue_dir),
        folder=tmp_path,
        stdin=-1,
    )
    with programs.ended(child):
        if end == "_exit":
            assert child.wait(SECONDS) == 3

        def left():
            return queue_folder.left_in(queue_dir) or not (tmp_path / "app.log").read_bytes()

        until((tmp_path / "app.log").exists, SECONDS, "the program has begun")
        until(lambda: not left(), SECONDS, "the keeper has written what was queued")
        assert lines.count(tmp_path / "app.log").numbers == {"main": list(range(1000))}
        if end == "execv":
            assert child.poll() is None, "the program that was executed lives"
            assert [program for _, program in _keepers(queue_dir)] == [child.pid]
            child.stdin.close()
            assert child.wait(SECONDS) == 0
    until(lambda: not _keepers(queue_dir), SECONDS, "the keeper is gone")
