import os
import sys

import pytest
from thread_handler_support import run_python

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"), pytest.mark.every_interpreter]

BUSY = """
import logging, os, sys, threading
from logspool.thread._handler import ThreadHandler

path = sys.argv[1]
kind = logging.FileHandler
if sys.argv[2] == "custom":
    class kind(logging.FileHandler):
        def emit(self, record):
            super().emit(record)
handler = ThreadHandler(kind(path), queue_size=100, blocking_levels={"INFO"})
log = logging.getLogger("fork")
log.setLevel(logging.INFO)
log.addHandler(handler)
stop = threading.Event()
counts = [0, 0]
def busy(index):
    while not stop.is_set():
        log.info("parent %d %d", index, counts[index])
        counts[index] += 1
threads = [threading.Thread(target=busy, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for generation in range(15):
    while counts[0] < 100 * (generation + 1):
        threading.Event().wait(0.001)
    pid = os.fork()
    if pid == 0:
        assert handler.stats().offered == 0
        for number in range(50):
            log.info("child %d %d", generation, number)
        ok = handler.flush(20)
        os._exit(0 if ok and handler.stats().written == 50 else 1)
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0, status
stop.set()
for thread in threads:
    thread.join()
handler.close()
print(*counts)
"""


# In a free-threaded build a lock of the interpreter, such as the lock of sys.modules, may be on its way to another
# thread when a process forks. It then stays locked in the child: with twelve threads that only make LogRecords,
# 3.13.15t hangs within some hundred forks without any handler.
@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="CPython 3.13t hangs by itself")
@pytest.mark.parametrize("kind", ["plain", "custom"])
def test_forks_with_busy_threads_neither_lose_nor_repeat_nor_hang(kind, tmp_path):
    path = tmp_path / "out"
    done = run_python(BUSY, path, kind)
    counts = [int(word) for word in done.stdout.split()]
    lines = path.read_text().splitlines()

    expected = [f"parent {index} {n}" for index in (0, 1) for n in range(counts[index])]
    expected += [f"child {generation} {n}" for generation in range(15) for n in range(50)]
    assert sorted(lines) == sorted(expected)
    for prefix in ["parent 0 ", "parent 1 "] + [f"child {g} " for g in range(15)]:
        numbers = [int(line.split()[2]) for line in lines if line.startswith(prefix)]
        assert numbers == sorted(numbers)


def test_the_child_does_not_write_queued_records_of_its_parent():
    source = """
import logging, os, sys, threading
from logspool.thread._handler import ThreadHandler
class Held(logging.Handler):
    def __init__(self):
        super().__init__()
        self.entered, self.go, self.seen = threading.Event(), threading.Event(), []
    def emit(self, record):
        self.entered.set()
        self.go.wait()
        self.seen.append(record.getMessage())
wrapped = Held()
handler = ThreadHandler(wrapped)
log = logging.getLogger("fork")
log.addHandler(handler)
for number in range(5):
    log.error("parent %d", number)
wrapped.entered.wait()
pid = os.fork()
if pid == 0:
    wrapped.go = threading.Event()
    wrapped.go.set()
    log.error("child")
    handler.close()
    os._exit(0 if wrapped.seen == ["child"] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
wrapped.go.set()
handler.close()
assert wrapped.seen == [f"parent {number}" for number in range(5)], wrapped.seen
"""
    run_python(source)


def test_a_fork_from_the_wrapped_handler_itself_works():
    source = """
import logging, os, sys
from logspool.thread._handler import ThreadHandler
seen = []
class Forking(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
        if record.msg == "fork":
            pid = os.fork()
            if pid == 0:
                log.error("in the child")
                # The thread that forked is the only one here, and it is inside a handler.
                os._exit(0 if handler.stats().accepted == 1 else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
codes = []
handler = ThreadHandler(Forking())
log = logging.getLogger("fork")
log.addHandler(handler)
log.error("fork")
log.error("second")
handler.close()
assert codes == [0], codes
assert seen == ["fork", "second"], seen
"""
    run_python(source)


def test_grandchildren_log_too(tmp_path):
    source = """
import logging, os, sys
from logspool.thread._handler import ThreadHandler
handler = ThreadHandler(logging.FileHandler(sys.argv[1]))
log = logging.getLogger("fork")
log.addHandler(handler)
def generation(depth):
    log.error("depth %d", depth)
    if depth == 4:
        return
    pid = os.fork()
    if pid == 0:
        generation(depth + 1)
        handler.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
generation(0)
"""
    path = tmp_path / "out"
    run_python(source, path)

    assert sorted(path.read_text().splitlines()) == [f"depth {depth}" for depth in range(5)]


def test_a_program_with_empty_queues_forks_without_other_threads():
    source = """
import logging, os, threading, warnings
from logspool.thread._handler import ThreadHandler
warnings.simplefilter("error")
handler = ThreadHandler(logging.NullHandler())
log = logging.getLogger("fork")
log.addHandler(handler)
log.error("starts the thread")
handler.flush()
assert threading.active_count() == 2
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
assert threading.active_count() == 1
log.error("starts it again")
assert handler.flush()
assert handler.stats().written == 2
"""
    done = run_python(source)

    assert done.stderr == ""


def test_a_fork_does_not_wait_for_a_handler_that_hangs():
    source = """
import logging, os, sys, threading, time
from logspool.thread._handler import ThreadHandler
entered, go = threading.Event(), threading.Event()
class Held(logging.Handler):
    def emit(self, record):
        entered.set()
        go.wait()
handler = ThreadHandler(Held())
log = logging.getLogger("fork")
log.addHandler(handler)
log.error("hangs")
entered.wait()
begun = time.monotonic()
pid = os.fork()
if pid == 0:
    os._exit(0)
assert time.monotonic() - begun < 2.5
os.waitpid(pid, 0)
go.set()
log.error("goes on")
assert handler.flush(20)
assert handler.stats().written == 2
"""
    run_python(source)


def test_a_closed_handler_logs_in_the_child_too(tmp_path):
    source = """
import logging, os, sys
from logspool.thread._handler import ThreadHandler
handler = ThreadHandler(logging.FileHandler(sys.argv[1]))
log = logging.getLogger("fork")
log.addHandler(handler)
log.error("open")
handler.close()
before = handler._queue.lock
pid = os.fork()
if pid == 0:
    log.error("closed")
    os._exit(0 if handler._queue.lock is not before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    path = tmp_path / "out"
    run_python(source, path)

    assert path.read_text() == "open\nclosed\n"
