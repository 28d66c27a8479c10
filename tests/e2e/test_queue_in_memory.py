"""The queue's folder cannot be used: the queue is in memory that a keeper holds, and a kill costs nothing all the same.

The file system for it is missing, too small, or another user made the folder first.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from logspool.process import _keeper
from suite import lines, programs, witness
from suite.waiting import until

pytestmark = [pytest.mark.real]

# Ten times the time within which the keeper must deliver after the kill.
DELIVERED_SECONDS = 20
SECONDS = 60
RECORDS = 20_000

#: Obstacles in /dev/shm, of which the program has a private one.
_OBSTACLES = {
    "squatted": "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mkdir -m 700 /dev/shm/logspool-0 && "
    "chown 12345 /dev/shm/logspool-0",
    "small": "mount -t tmpfs -o mode=1777,size=512k tmpfs /dev/shm",
    "missing": 'mount --bind "$0" /dev/shm',
}

#: Works for every user: the folder is valid when `install()` checks it.
_OPENED_TO_OTHERS = "opened to others"

ALL = [*_OBSTACLES, _OPENED_TO_OTHERS]

_PRELUDE = """\
import json, logging, os, signal, sys, threading, time
import logspool

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(**what.get("options", {}))
if folder := os.environ.get("LOGSPOOL_QUEUE_DIR"):
    os.chmod(folder, 0o755)
log = logging.getLogger("app")

def run(who, count=10**9):
    for number in range(count):
        log.info("%s %d end", who, number)
        os.write(what["witness"], f"{who} {number} end\\n".encode())

def say(**facts):
    print(json.dumps(facts), flush=True)

def queue():
    queue = logspool.stats().queue
    return {"place": queue.place, "reason": queue.place_reason, "survives": queue.survives}
"""


#: No record is refused, however busy the machine is.
_PATIENT = {"blocking_levels": ["INFO"], "blocking_timeout": 30.0}


class _Program:
    """How to run a program whose queue's folder cannot be used."""

    def __init__(self, folder, queue_dir, obstacle):
        self.folder = folder
        self.env = programs.environment(programs.INSTALLED, queue_dir)
        self._before = []
        if obstacle in _OBSTACLES:
            del self.env["LOGSPOOL_QUEUE_DIR"]
            shm = folder / "not-shm"
            shm.mkdir()
            self._before = ["unshare", "--mount", "sh", "-c", _OBSTACLES[obstacle] + ' && exec "$@"', str(shm)]
            if shutil.which("unshare") is None:
                pytest.skip("a mount namespace needs unshare")
            done = subprocess.run([*self._before, "true"], capture_output=True)
            if done.returncode:
                pytest.skip(f"a mount namespace needs root: {done.stderr.decode().strip()}")

    def start(self, text, *, stdin=subprocess.DEVNULL, env=None, **what):
        """Start it; `what` is its argument."""
        script = self.folder / "program.py"
        script.write_text(_PRELUDE + text)
        return subprocess.Popen(
            [*self._before, sys.executable, str(script), json.dumps(what)],
            env=self.env | (env or {}),
            cwd=self.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[what["witness"]] if "witness" in what else [],
        )

    def run(self, text, **options):
        """Run it to its end; return its status, its reports, and its standard error."""
        child = self.start(text, **options)
        with programs.ended(child):
            out, err = child.communicate(timeout=SECONDS)
        return child.returncode, [json.loads(line) for line in out.splitlines()], err.decode()

    def run_and_kill(self, text, after, kill, **what):
        """Run it, call `kill` after some witnessed lines; return its process id and the witnessed lines."""
        reader, writer = os.pipe()
        child = self.start(text, witness=writer, **what)
        with programs.ended(child):
            seen = witness.of(child, reader, writer, after, lambda: kill(child))
            assert child.wait(SECONDS) == -signal.SIGKILL
            assert child.stderr.read() == b""
        (self.folder / "witness").write_bytes(seen)
        return child.pid, lines.count(self.folder / "witness").numbers


@pytest.fixture
def program(tmp_path, queue_dir, request):
    return _Program(tmp_path, queue_dir, request.param)


def _keepers_of(*processes):
    """Return the keepers of these processes, also keepers that have not begun yet."""
    ends = tuple(f"\0{_keeper.IN_MEMORY}\0{process}\0".encode() for process in processes)
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
            if file.read().endswith(ends):
                found.append(int(entry))
    return found


def _assert_delivered(files, witnessed, *processes):
    until(lambda: not _keepers_of(*processes), DELIVERED_SECONDS, "the keepers have done their work and are gone")
    lines.count(*files).expect_each_once(witnessed)


# With its first record the keeper has not begun yet.
@pytest.mark.parametrize(
    ("program", "records"), [*((obstacle, RECORDS) for obstacle in ALL), (ALL[-1], 1)], indirect=["program"]
)
def test_every_accepted_line_of_a_killed_program_is_in_its_file_without_a_later_start(program, records):
    def kill(child):
        until(lambda: _keepers_of(child.pid), SECONDS, "the keeper is executed")
        child.kill()

    process, witnessed = program.run_and_kill("run('main')\n", records, kill)

    assert len(witnessed["main"]) >= records
    _assert_delivered([program.folder / "app.log"], witnessed, process)


STALLED = """\
run("main", 3)
say(**queue())
log.info("main %d %s end", 3, "x" * 2_000_000)
for number in range(4, what["count"]):
    log.info("main %d %0400d end", number, 0)
say(refused=[level.refused for level in logspool.stats().levels.values() if any(level.refused.values())])
time.sleep(600)
"""


@pytest.mark.parametrize("program", ["small", _OPENED_TO_OTHERS], indirect=True)
def test_more_records_than_fit_into_dev_shm_are_queued_and_delivered(program):
    path = program.folder / "app.log"
    # A pipe that is not read.
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    null = os.open(os.devnull, os.O_WRONLY)
    child = program.start(STALLED, witness=null, count=RECORDS, options=_PATIENT)
    try:
        with programs.ended(child):
            facts = json.loads(child.stdout.readline())
            refused = json.loads(child.stdout.readline())
            # A file replaces the pipe: the records are for that path.
            path.unlink()
            child.kill()
            child.wait()
    finally:
        os.close(null)
        os.close(end)

    assert (facts["place"], facts["survives"]) == ("memfd", True)
    assert refused == {"refused": []}
    until(lambda: not _keepers_of(child.pid), DELIVERED_SECONDS, "the keeper has done its work and is gone")
    text = path.read_bytes()
    assert len(text) > 2_000_000 + 400 * (RECORDS - 500)
    numbers = [int(line.split()[1]) for line in text.splitlines()]
    assert numbers == list(range(numbers[0], RECORDS))


WORKERS = """\
run("before", 100)
for worker in range(3):
    if os.fork() == 0:
        for handler in list(logging.root.handlers):
            logging.root.removeHandler(handler)
        handler = logging.FileHandler(f"worker-{worker}.log")
        handler.setFormatter(logging.Formatter("%(message)s"))
        logging.root.addHandler(handler)
        run(f"worker-{worker}")
# Otherwise the lines of this process could fill the pipe before a worker has witnessed one.
while not all(os.path.exists(f"worker-{each}.log") and os.path.getsize(f"worker-{each}.log") for each in range(3)):
    time.sleep(0.001)
run("main")
"""


def _group(process):
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process)


@pytest.mark.parametrize("program", ["squatted", _OPENED_TO_OTHERS], indirect=True)
def test_forked_workers_have_their_own_keepers(program):
    keepers = []

    def kill(child):
        def of_group():
            return [of for _, of in _keeper.running(_keeper.IN_MEMORY) if _group(of) == child.pid]

        until(lambda: len(of_group()) == 4, SECONDS, "all keepers have begun")
        keepers.extend(of_group())
        os.killpg(child.pid, signal.SIGSTOP)
        os.killpg(child.pid, signal.SIGTERM)
        os.killpg(child.pid, signal.SIGKILL)

    _, witnessed = program.run_and_kill(WORKERS, 10_000, kill)

    assert any(who.startswith("worker") for who in witnessed)
    files = [program.folder / "app.log", *(program.folder / f"worker-{worker}.log" for worker in range(3))]
    _assert_delivered(files, witnessed, *keepers)


KEEPER_KILLED = """\
log.info("before")
say(pid=os.getpid(), **queue())
sys.stdin.readline()
while logspool.stats().queue.survives:
    time.sleep(0.001)
log.info("after %s", "x" * 1_000_000)
health = logspool.health()
say(status=health.status, reasons=health.reasons)
"""


@pytest.mark.parametrize("program", [_OPENED_TO_OTHERS], indirect=True)
def test_the_program_continues_and_reports_it_when_its_keeper_is_killed(program):
    child = program.start(KEEPER_KILLED, stdin=subprocess.PIPE)
    with programs.ended(child):
        facts = json.loads(child.stdout.readline())
        until(lambda: _keepers_of(child.pid), SECONDS, "the keeper has begun")
        [keeper] = _keepers_of(child.pid)
        os.kill(keeper, signal.SIGKILL)
        out, err = child.communicate(b"\n", timeout=SECONDS)

    assert child.returncode == 0
    assert (facts["place"], facts["survives"]) == ("memfd", True)
    assert "mode 0755" in facts["reason"]
    health = json.loads(out)
    assert health["status"] == "degraded"
    assert any("the keeper of the queue in memory has ended" in reason for reason in health["reasons"])
    assert err == b""
    assert (program.folder / "app.log").read_text() == "before\nafter " + "x" * 1_000_000 + "\n"


NO_KEEPER = """\
log.info("on")
say(status=logspool.health().status, **queue())
"""
FORBIDDEN = """\
from logspool.process import _install
_install._native.set_keeper_command(([b"/nowhere/python"], []), "")
"""


@pytest.mark.parametrize("program", ALL, indirect=True)
@pytest.mark.parametrize("why", ["LOGSPOOL_KEEPER=off", "exec forbidden"])
def test_without_a_keeper_the_queue_is_in_plain_memory_with_one_warning(program, why):
    env = {"LOGSPOOL_KEEPER": "off"} if why.endswith("off") else {}
    status, [facts], err = program.run((FORBIDDEN if not env else "") + NO_KEEPER, env=env)

    assert status == 0
    assert (facts["place"], facts["survives"], facts["status"]) == ("memory", False, "degraded")
    assert err.count("it is in memory now") == 1 and err.count("\n") == 1
    assert ("no keeper for a queue in memory: " + (why if env else "No such file")) in facts["reason"]
    assert (program.folder / "app.log").read_text() == "on\n"


ENDS = """\
def note(number, frame):
    say(child=True)
signal.signal(signal.SIGCHLD, note)
for number in range(1000):
    log.info("main %d end", number)
try:
    say(waited=os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    say(waited=None)
say(**queue())
END
"""


@pytest.mark.parametrize("program", ALL, indirect=True)
@pytest.mark.parametrize(
    "end",
    ["pass", "os._exit(0)", "os.execv('/bin/true', ['true'])", "os.kill(os.getpid(), signal.SIGTERM)", "STOP"],
)
def test_a_normal_exit_leaves_no_process_and_no_unwritten_line(program, end):
    text = ENDS.replace("END", end.replace("STOP", "logspool.uninstall()"))
    child = program.start(text)
    with programs.ended(child):
        out, err = child.communicate(timeout=SECONDS)
        until(lambda: not _keepers_of(child.pid), DELIVERED_SECONDS, "the keeper is gone")
    waited, facts = [json.loads(line) for line in out.splitlines()]

    assert waited == {"waited": None}
    assert (facts["place"], facts["survives"]) == ("memfd", True)
    assert err == b""
    assert (program.folder / "app.log").read_text() == "".join(f"main {number} end\n" for number in range(1000))


DESCRIPTORS_CLOSED = """\
os.mkfifo("pipe")
end = os.open("pipe", os.O_RDWR)
pipe = logging.getLogger("pipe")
pipe.addHandler(logging.FileHandler("pipe"))
for number in range(20_000):
    pipe.info("%0100d", number)
say(**queue())
# Kept descriptors have high numbers.
os.closerange(3, os.sysconf("SC_OPEN_MAX"))
sys.stdin.readline()
"""


def _polled_by(process):
    """Return for how many descriptors a process waits in poll(2)."""
    try:
        with open(f"/proc/{process}/syscall", encoding="ascii") as file:
            words = file.read().split()
    except PermissionError:
        pytest.skip("this system does not show system calls of other processes")
    return int(words[2], 16) if len(words) > 2 else None


@pytest.mark.parametrize("program", [_OPENED_TO_OTHERS], indirect=True)
def test_a_live_program_that_closed_every_descriptor_is_not_considered_dead(program):
    child = program.start(DESCRIPTORS_CLOSED, stdin=subprocess.PIPE, options=_PATIENT)
    with programs.ended(child):
        assert json.loads(child.stdout.readline())["place"] == "memfd"
        until(lambda: _keepers_of(child.pid), SECONDS, "the keeper has begun")
        [keeper] = _keepers_of(child.pid)
        until(lambda: _polled_by(keeper) == 1, SECONDS, "it waits for the end of the program only")
        os.unlink(program.folder / "pipe")
        assert _keepers_of(child.pid) == [keeper]
        child.kill()
        child.wait()
        until(lambda: not _keepers_of(child.pid), DELIVERED_SECONDS, "the keeper has done its work and is gone")
    numbers = [int(line) for line in (program.folder / "pipe").read_text().splitlines()]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


@pytest.mark.parametrize("program", ALL, indirect=True)
def test_doctor_says_where_the_queue_is_and_why(program):
    text = "import logspool.commands._doctor as doctor\nlog.info('on')\n" + (
        "for each in doctor.findings():\n    say(text=str(each))\n"
    )
    status, said, _ = program.run(text)

    assert status == 0
    texts = [each["text"] for each in said]
    assert any("in memory that a keeper process holds" in each and "queue: " in each for each in texts), texts
    assert len(texts) == 2


def test_a_folder_on_disk_is_used_if_it_is_named(tmp_path, run_program):
    folder = tmp_path / "queue"
    folder.mkdir(mode=0o700)
    outcome, where = run_program(
        "import logging, logspool, os\n"
        "logging.basicConfig(filename='app.log', format='%(message)s')\nlogspool.install()\nlogging.warning('on')\n"
        "queue = logspool.stats().queue\n"
        "print(queue.place, queue.survives, bool(os.listdir(os.environ['LOGSPOOL_QUEUE_DIR'])))\n",
        LOGSPOOL_QUEUE_DIR=str(folder),
    )

    facts = outcome.expect_success().out.split()
    if facts[0] == b"tmpfs":
        pytest.skip("the folder of tests is on tmpfs")
    assert facts == [b"disk", b"True", b"True"]
    assert (where / "app.log").read_text() == "on\n"
    assert outcome.err == b""
    assert list(folder.iterdir()) == []
