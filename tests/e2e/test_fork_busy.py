"""Forks of a process with four busy threads: no hang, nothing lost, nothing twice; and forks without a warning."""

import json

import pytest

from suite import fixtures, lines, queue_folder

FORKS = 10_000 if fixtures.faults_full() else 200
# Ten times the duration of one fork with its child on a busy machine of two cores.
SECONDS_PER_FORK = 0.25

PROGRAM = """\
import json, logging, os, select, signal, sys, threading, time
from suite import side

FORKS, THREADS = int(sys.argv[1]), int(sys.argv[2])
CHILD_SECONDS = 20

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
stop = threading.Event()
logged = {}

def busy(who):
    number = 0
    while not stop.is_set():
        for _ in range(20):
            log.info("%s %d end", who, number)
            number += 1
        time.sleep(0.0005)
    logged[who] = number

threads = [threading.Thread(target=busy, args=(f"thread{each}",)) for each in range(THREADS)]
for thread in threads:
    thread.start()
hung, failed = [], []
for number in range(FORKS):
    child = os.fork()
    if child == 0:
        for line in range(3):
            log.info("child%d %d end", number, line)
        if number % 2:
            os._exit(0)
        sys.exit(0)
    log.info("main %d end", number)
    descriptor = os.pidfd_open(child)
    if not select.select([descriptor], [], [], CHILD_SECONDS)[0]:
        hung.append(number)
        os.kill(child, signal.SIGKILL)
    os.close(descriptor)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status and number not in hung:
        failed.append((number, status))
    if len(hung) >= 3:
        break
stop.set()
for thread in threads:
    thread.join()
with open("result.json", "w") as file:
    json.dump({"hung": hung, "failed": failed, "logged": logged}, file)
"""


@pytest.mark.every_interpreter
@pytest.mark.timeout(120 + 10 * SECONDS_PER_FORK * FORKS)
@pytest.mark.parametrize(
    "threads",
    # Stock logging hangs with busy threads: a child inherits the lock of the stream's buffer.
    [0, pytest.param(4, marks=pytest.mark.real)],
    ids=["no-other-thread", "four-busy-threads"],
)
def test_forks_never_hang_lose_or_duplicate_records(run_program, queue_dir, threads):
    # From 3.12 on, a fork with threads warns; the threads here are the program's own.
    outcome, folder = run_program(
        PROGRAM,
        str(FORKS),
        str(threads),
        deadline_seconds=60 + SECONDS_PER_FORK * FORKS,
        options=("-W", "ignore::DeprecationWarning"),
    )

    assert outcome.status == 0, outcome.err.decode(errors="replace")[-3000:]
    result = json.loads((folder / "result.json").read_text())
    assert result["hung"] == []
    assert result["failed"] == []
    found = lines.count(folder / "app.log")
    wanted = {who: range(count) for who, count in result["logged"].items()}
    wanted |= {f"child{number}": range(3) for number in range(FORKS)}
    wanted["main"] = range(FORKS)
    missing = {who: numbers for who in wanted if (numbers := found.missing(who, wanted[who]))}
    # On a starved machine a call may find its queue full. Then it is refused and told of.
    assert sum(map(len, missing.values())) == lines.refusals_told(found.other, outcome.err), missing
    assert found.doubled() == {}
    assert found.out_of_order() == {}
    assert [line for line in found.other if not line.endswith(lines.REFUSED)] == []
    assert queue_folder.left_in(queue_dir) == []


FORK_OF_ONE_THREAD = """\
import ctypes, logging, os, sys, threading
from suite import side

PR_SET_NAME = 15
if len(sys.argv) > 1:
    ctypes.CDLL(None).prctl(PR_SET_NAME, sys.argv[1].encode())
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
for number in range(50):
    log.info("parent %d end", number)
    child = os.fork()
    if child == 0:
        log.info("child%d 0 end", number)
        grandchild = os.fork()
        if grandchild == 0:
            log.info("grandchild%d 0 end", number)
        else:
            os.waitpid(grandchild, 0)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
print(threading.active_count())
"""


@pytest.mark.every_interpreter
@pytest.mark.parametrize("name", [[], ["logspool-app"]], ids=["own-name", "named-like-native-threads"])
def test_fork_of_a_program_with_one_thread_is_silent_with_warnings_as_errors(run_program, queue_dir, name):
    outcome, folder = run_program(FORK_OF_ONE_THREAD, *name, options=("-W", "error"), deadline_seconds=60)

    assert (outcome.status, outcome.err, outcome.out) == (0, b"", b"1\n")
    found = lines.count(folder / "app.log")
    assert found.numbers["parent"] == list(range(50))
    assert sorted(found.numbers) == sorted(
        ["parent", *(f"{who}{number}" for who in ("child", "grandchild") for number in range(50))]
    )
    assert found.doubled() == {}
    assert queue_folder.left_in(queue_dir) == []


#: The native threads get little of one processor, which busy processes share.
FORK_OF_STARVED_THREADS = """\
import contextlib, logging, os, signal
from suite import side

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
parent = os.getpid()
busy = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        while os.getppid() == parent:
            pass
        os._exit(0)
    busy.append(child)

def starve():
    # A thread that has not begun has no name of its own yet.
    for task in map(int, os.listdir("/proc/self/task")):
        if task != parent:
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, task, 15)

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
for number in range(4):
    log.info("parent %d end", number)
    starve()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
for child in busy:
    os.kill(child, signal.SIGKILL)
"""


@pytest.mark.every_interpreter
def test_a_fork_waits_for_native_threads_that_get_no_processor(run_program, queue_dir):
    outcome, folder = run_program(FORK_OF_STARVED_THREADS, options=("-W", "error"), deadline_seconds=120)

    assert (outcome.status, outcome.err) == (0, b"")
    assert lines.count(folder / "app.log").numbers == {"parent": list(range(4))}


FORK_BESIDE_A_PIPE = """\
import logging, os, sys
from suite import side

reader, writer = os.pipe()
stream = os.fdopen(writer, "w")
handler = logging.StreamHandler(stream)
handler.setLevel(logging.WARNING)
logging.basicConfig(handlers=[handler], level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")

def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

for _ in range(20):
    log.info("below the handler's level")
    fork()
log.warning("first")
for _ in range(20):
    fork()
waits, ends = os.pipe()
child = os.fork()
if child == 0:
    stream.close()
    os.close(ends)
    os.read(waits, 1)
    os._exit(0)
log.warning("last")
stream.close()
with open(reader) as file:
    sys.stdout.write(file.read())
os.close(ends)
os.waitpid(child, 0)
"""


@pytest.mark.every_interpreter
def test_the_pipe_of_a_forking_program_gets_the_last_line_and_closes_without_warnings(run_program, queue_dir):
    outcome, _ = run_program(FORK_BESIDE_A_PIPE, options=("-W", "error"), deadline_seconds=60)

    assert (outcome.status, outcome.err, outcome.out) == (0, b"", b"first\nlast\n")
    assert queue_folder.left_in(queue_dir) == []


#: Modes of durability, and how many lines a prefork worker logs in each: one sync for each line is slow.
LINES_OF = {"process": 500, "memory": 500, "interval": 500, "checkpoint": 120, "sync": 20}

POOL = """\
import logging, multiprocessing, sys
from suite import side

def work(number):
    logging.getLogger("app").info("task%d 0 end", number)
    return number

if __name__ == "__main__":
    logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
    side.install(durability=sys.argv[1])
    logging.getLogger("app").info("main 0 end")
    children = [multiprocessing.get_context("fork").Process(target=work, args=(each,)) for each in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    logging.getLogger("app").info("main 1 end")
"""


@pytest.mark.every_interpreter
@pytest.mark.parametrize("mode", LINES_OF)
def test_children_of_multiprocessing_by_fork_are_silent_with_warnings_as_errors(run_program, queue_dir, mode):
    outcome, folder = run_program(POOL, mode, options=("-W", "error"), deadline_seconds=60)

    assert (outcome.status, outcome.err) == (0, b"")
    found = lines.count(folder / "app.log")
    assert found.numbers == {"main": [0, 1], **{f"task{each}": [0] for each in range(8)}}
    assert queue_folder.left_in(queue_dir) == []


PREFORK = """\
import logging, os, signal, sys, time
from suite import side

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability=sys.argv[1])
log = logging.getLogger("app")
log.info("main 0 end")
workers = []
for who in range(3):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for number in range(int(sys.argv[2])):
            log.info("worker%d %d end", who, number)
        os.write(writer, b"x")
        while True:
            signal.pause()
    os.close(writer)
    workers.append((child, reader))
for child, reader in workers:
    os.read(reader, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
log.info("main 1 end")
"""


@pytest.mark.every_interpreter
@pytest.mark.parametrize("mode", LINES_OF)
def test_prefork_workers_ended_by_sigterm_leave_complete_lines(run_program, queue_dir, mode):
    count = LINES_OF[mode]
    outcome, folder = run_program(PREFORK, mode, str(count), deadline_seconds=60)

    assert (outcome.status, outcome.out) == (0, b"-15\n-15\n-15\n"), outcome.err
    found = lines.count(folder / "app.log")
    assert found.numbers == {"main": [0, 1], **{f"worker{each}": list(range(count)) for each in range(3)}}
    assert queue_folder.left_in(queue_dir) == []
