"""SIGTERM while a thread has a lock that the native threads want: the end is as complete as ever, and in time.

The handler waits for the native threads, on a thread that may just be in the allocator, in the dynamic linker or in a
call to logspool. It lets that thread run for moments. Without that, each such end took the whole `shutdown_timeout`
and left the segment in the queue folder.
"""

import json

import pytest

from suite import fixtures, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

ENDS = 3000 if fixtures.faults_full() else 90
# Ten times the duration of one exit on a busy machine of two cores.
SECONDS_PER_END = 0.5

#: The work of a child until it is ended. Each kind of work holds its lock most of the time.
WORK = ("import", "allocate", "drain", "flush", "handlers")

PROGRAM = """\
import json, logging, os, random, select, signal, sys, time
from suite import side

ENDS, SHUTDOWN_SECONDS, WORK = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

def child(work, number, witness):
    log = logging.getLogger("app")
    logging.basicConfig(filename=f"{number}.log", level=logging.INFO, format="%(message)s")
    side.install(shutdown_timeout=SHUTDOWN_SECONDS)
    import logspool
    kept, count = [], 0
    while True:
        # The native threads start here; they need both locks.
        log.info("line %d end", count)
        os.write(witness, b"%d\\n" % count)
        count += 1
        if work == "import":
            for name in ("_queue", "_bisect", "_heapq", "_statistics"):
                sys.modules.pop(name, None)
                __import__(name)
        elif work == "allocate":
            kept = [bytes(600 + 8 * each) for each in range(200)] + kept[:100]
        elif work == "drain":
            logspool._native.drain(SHUTDOWN_SECONDS)
        elif work == "flush":
            logspool.flush()
            logspool.stats()
        else:
            handler = logging.FileHandler(f"{number}.other")
            log.addHandler(handler)
            log.removeHandler(handler)
            handler.close()

late, failed, incomplete, ended = [], [], [], 0
for number in range(ENDS):
    work = WORK[number % len(WORK)]
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(work, number, writer)
    os.close(writer)
    with open(reader, "rb") as witness:
        said = witness.read(1)
        time.sleep(random.random() * 0.01)
        begun = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        said += witness.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ended += 1
    if time.monotonic() - begun > SHUTDOWN_SECONDS / 2:
        late.append(work)
    if status != -signal.SIGTERM:
        failed.append((work, status))
    logged = open(f"{number}.log").read().splitlines() if os.path.exists(f"{number}.log") else []
    if logged[: said.count(b"\\n")] != [f"line {each} end" for each in range(said.count(b"\\n"))]:
        incomplete.append((work, said.count(b"\\n"), len(logged)))
    for name in (f"{number}.log", f"{number}.other"):
        if os.path.exists(name):
            os.unlink(name)
print(json.dumps([ended, late, failed, incomplete]))
"""


def test_a_process_end_never_waits_for_the_thread_that_it_interrupted(run_program, queue_dir):
    shutdown_seconds = 20
    outcome, _ = run_program(
        PROGRAM, ENDS, shutdown_seconds, *WORK, deadline_seconds=60 + ENDS * SECONDS_PER_END + 5 * shutdown_seconds
    )

    outcome.expect_success()
    assert json.loads(outcome.out) == [ENDS, [], [], []]
    assert queue_folder.left_in(queue_dir) == []
