"""The locks of the package survive forks and signals: no forked child and no signal handler waits for them forever."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# A hundred times the duration of a program on a busy machine.
SECONDS = 120

FORKS = """\
import logging, os, threading
from suite import side
import logspool

logging.basicConfig(filename="app.log")
side.install()
log = logging.getLogger("app")

def work():
    while True:
        logspool.warning_once(log, "a message")
        logspool.health()

threading.Thread(target=work, daemon=True).start()
ended = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        logspool.warning_once(log, "another one")
        logspool.health()
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
assert ended == [0] * 20, ended
"""

IMPORTS = """\
import logging, os, sys, threading, time
from suite import side
import logspool

logging.basicConfig(filename="app.log")
side.install()
begun = threading.Event()

class Slow:
    # One thread imports a slow module, and the main thread forks meanwhile.
    def find_spec(self, name, path=None, target=None):
        if name == "logspool.{part}":
            begun.set()
            time.sleep(0.3)

sys.meta_path.insert(0, Slow())
threading.Thread(target=lambda: logspool.{call}).start()
begun.wait()
child = os.fork()
if child == 0:
    logspool.{call}
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""

SIGNALS = """\
import logging, signal
from suite import side
import logspool

logging.basicConfig(filename="app.log", format="%(message)s")
side.install()
log = logging.getLogger("app")
signals = 0

def log_in_handler(*_):
    global signals
    signals += 1
    logspool.warning_once(log, "from the handler %d", signals)
    logspool.health()

# The modules are imported before the first signal.
logspool.warning_once(log, "the first message")
logspool.health()
signal.signal(signal.SIGALRM, log_in_handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
number = 0
while signals < 300:
    number += 1
    logspool.warning_once(log, "from the program %d", number)
signal.setitimer(signal.ITIMER_REAL, 0)
print(number, signals)
"""

LOCKS = """\
import json, os, threading
import logspool
from logspool import _once, pool
from logspool.base import _locks
from logspool.process import _capture
from logspool.watch import _health, _monitor

waits, done = threading.Event(), threading.Event()

def hold():
    for lock in _locks._made:
        lock.acquire()
    waits.set()
    done.wait()

held = [monitor := _monitor._Progress(1.0), workers := pool.Pool(1)]
threading.Thread(target=hold, daemon=True).start()
waits.wait()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    free = [lock.acquire(False) and lock.acquire(False) for lock in _locks._made]
    os.write(writer, json.dumps(free).encode())
    os._exit(0)
os.close(writer)
print(os.read(reader, 10_000).decode(), flush=True)
os.waitpid(child, 0)
done.set()
os._exit(0)
"""


def test_locks_of_other_threads_are_free_in_a_forked_child(run_program):
    outcome, _ = run_program(FORKS, deadline_seconds=SECONDS)

    outcome.expect_success()


@pytest.mark.parametrize(
    ("part", "call"), [("watch._health", "health()"), ("_once", "warning_once(logging.getLogger(), 'a message')")]
)
def test_a_fork_in_the_middle_of_an_import_leaves_a_child_that_imports(run_program, part, call):
    outcome, _ = run_program(IMPORTS.format(part=part, call=call), deadline_seconds=SECONDS)

    outcome.expect_success()


def test_a_signal_handler_logs_once_in_the_middle_of_the_same_call(run_program):
    outcome, folder = run_program(SIGNALS, deadline_seconds=SECONDS)

    outcome.expect_success()
    number, signals = map(int, outcome.out.split())
    lines = (folder / "app.log").read_text().splitlines()
    assert [f"from the program {each}" for each in range(1, number + 1)] == [
        line for line in lines if "program" in line
    ]
    assert signals == sum("handler" in line for line in lines)


def test_every_lock_of_the_package_is_free_in_a_forked_child_and_reentrant(run_program):
    outcome, _ = run_program(LOCKS, deadline_seconds=SECONDS)

    outcome.expect_success()
    free = json.loads(outcome.out)
    assert len(free) >= 6
    assert free == [True] * len(free)
