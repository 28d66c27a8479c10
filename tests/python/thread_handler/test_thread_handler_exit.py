import subprocess
import sys

import pytest
from thread_handler_support import DEADLINE, child_environment, run_python

pytestmark = pytest.mark.every_interpreter

PROGRAM = """
import atexit, logging, sys, threading
from logspool.thread._handler import ThreadHandler

path, ending = sys.argv[1:]
wrapped = logging.FileHandler(path)
if ending == "slow":
    class Slow(logging.FileHandler):
        def emit(self, record):
            super().emit(record)
            threading.Event().wait(0.002)
    wrapped = Slow(path)
# The default timeout is a few seconds, and on a busy machine each pause of the slow handler takes ten times as long.
handler = ThreadHandler(wrapped, blocking_levels={"INFO"}, shutdown_timeout=60)
log = logging.getLogger("exit")
log.setLevel(logging.INFO)
log.addHandler(handler)
for number in range(300):
    log.info("%d", number)
"""

ENDINGS = {
    "return": "",
    "slow": "",
    "sys_exit": "sys.exit(3)",
    "exception": "raise RuntimeError('the end')",
    "keyboard_interrupt": "raise KeyboardInterrupt",
}


def lines(path):
    return path.read_text().splitlines()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_queue_is_drained_at_every_normal_exit(ending, tmp_path):
    path = tmp_path / "out"
    done = run_python(PROGRAM + ENDINGS[ending], path, ending, check=False)

    assert lines(path) == [str(number) for number in range(300)]
    assert "not written" not in done.stderr
    assert "Fatal" not in done.stderr


def test_records_of_non_daemon_threads_that_outlive_the_main_thread_arrive(tmp_path):
    path = tmp_path / "out"
    source = (
        PROGRAM
        + """
def outlive():
    threading.main_thread().join()
    for number in range(300, 2600):
        log.info("%d", number)
threading.Thread(target=outlive).start()
"""
    )
    run_python(source, path, "threads")

    assert lines(path) == [str(number) for number in range(2600)]


def test_records_of_a_thread_pool_at_exit_arrive(tmp_path):
    path = tmp_path / "out"
    source = (
        PROGRAM
        + """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
for number in range(200):
    pool.submit(log.info, "pool %d", number)
"""
    )
    run_python(source, path, "pool")

    assert len(lines(path)) == 500


def test_records_of_atexit_functions_and_finalizers_arrive_in_the_caller(tmp_path):
    path = tmp_path / "out"
    source = (
        """
import atexit
atexit.register(lambda: log.info("registered before logging"))
"""
        + PROGRAM
        + """
atexit.register(lambda: log.info("registered last"))
class Last:
    def __del__(self, info=log.info):
        info("finalizer")
last = Last()
"""
    )
    run_python(source, path, "late")

    assert lines(path)[300:302] == ["registered last", "registered before logging"]


def test_a_handler_created_during_interpreter_exit_works(tmp_path):
    path = tmp_path / "out"
    source = """
import atexit, logging, sys
def late():
    from logspool.thread._handler import ThreadHandler
    log = logging.getLogger("late")
    log.addHandler(ThreadHandler(logging.FileHandler(sys.argv[1])))
    log.error("made at the end")
atexit.register(late)
"""
    run_python(source, path)

    assert lines(path) == ["made at the end"]


def test_the_first_record_can_arrive_after_the_main_thread_has_ended(tmp_path):
    path = tmp_path / "out"
    source = """
import logging, sys, threading
from logspool.thread._handler import ThreadHandler
log = logging.getLogger("late")
log.addHandler(ThreadHandler(logging.FileHandler(sys.argv[1])))
def outlive():
    threading.main_thread().join()
    for number in range(1500):
        log.error("%d", number)
threading.Thread(target=outlive).start()
"""
    run_python(source, path)

    assert lines(path) == [str(number) for number in range(1500)]


# In a free-threaded build a lock of the interpreter, such as the lock of sys.modules, may be on its way to a daemon
# thread at the end of the interpreter. The end then waits for the lock: with only a stock FileHandler, this program
# hangs at its end in 3.13.15t, in five of 150 runs.
@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="CPython 3.13t hangs by itself")
def test_daemon_threads_that_log_all_the_time_do_not_delay_the_exit(tmp_path):
    path = tmp_path / "out"
    source = (
        PROGRAM
        + """
def forever():
    while True:
        log.info("daemon")
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
"""
    )
    done = run_python(source, path, "daemons")

    assert lines(path)[:300] == [str(number) for number in range(300)]
    assert "Fatal" not in done.stderr


def test_a_hanging_handler_delays_the_exit_only_for_shutdown_timeout(tmp_path):
    source = """
import logging, threading, time
from logspool.thread._handler import ThreadHandler
class Hanging(logging.Handler):
    def emit(self, record):
        threading.Event().wait()
log = logging.getLogger("hang")
log.addHandler(ThreadHandler(Hanging(), shutdown_timeout=0.2))
for _ in range(10):
    log.warning("never written")
"""
    done = run_python(source)

    assert done.returncode == 0
    assert done.stderr.count("not written") == 1
    assert "10 records not written" in done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_queue_is_drained_at_the_end_of_a_multiprocessing_child(method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import logging, multiprocessing, sys, threading
from logspool.thread._handler import ThreadHandler

def log_some(path, word):
    log = logging.getLogger("mp")
    log.setLevel(logging.INFO)
    if not log.handlers:
        log.addHandler(ThreadHandler(logging.FileHandler(path), blocking_levels={"INFO"}))
    for number in range(1500):
        log.info("%s %d", word, number)
    if word == "child":
        def later():
            for number in range(100):
                log.info("thread %d", number)
        threading.Thread(target=later).start()

if __name__ == "__main__":
    path, method = sys.argv[1:]
    log_some(path, "parent")
    context = multiprocessing.get_context(method)
    child = context.Process(target=log_some, args=(path, "child"))
    child.start()
    child.join(DEADLINE)
    assert child.exitcode == 0, child.exitcode
""".replace("DEADLINE", str(DEADLINE))
    )
    path = tmp_path / "out"
    subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", program, path, method],
        check=True,
        timeout=2 * DEADLINE,
        env=child_environment(),
    )
    found = sorted(lines(path))
    expected = [f"{word} {number}" for word in ("parent", "child") for number in range(1500)]
    expected += [f"thread {number}" for number in range(100)]

    assert found == sorted(expected)
