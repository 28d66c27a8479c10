"""The pool's threads: started when needed, named, prepared, ended; and how the process ends with them."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from suite import programs

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool

from logspool.pool._pool import by_name  # noqa: E402
from pool.held import until  # noqa: E402


def test_threads_start_when_jobs_arrive_and_no_thread_is_idle():
    with Pool(3, thread_name_prefix="work") as pool:
        assert pool.stats().workers == 0
        for _ in range(5):
            pool.submit(int).result()
            until(lambda: pool.stats().busy == 0)
        assert pool.stats().workers == 1
        both = threading.Barrier(3, timeout=60)
        names = {future.result() for future in [pool.submit(lambda: both.wait() * 0 or name()) for _ in range(3)]}

    assert names == {"work_0", "work_1", "work_2"}


def name():
    return threading.current_thread().name


def test_the_operating_system_shows_the_thread_names():
    with Pool(1, thread_name_prefix="a-long-prefix") as pool:
        shown = pool.submit(lambda: Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text()).result()

    assert shown == "a-long-prefix_0"[:15] + "\n"


def test_idle_threads_end_and_new_ones_start():
    with Pool(2, idle_timeout=0.05) as pool:
        assert pool.submit(int, 1).result() == 1
        until(lambda: pool.stats().workers == 0)
        assert pool.submit(int, 2).result() == 2


def test_the_number_of_threads_can_be_changed():
    with Pool(1) as pool:
        go, both = threading.Event(), threading.Barrier(3, timeout=60)
        futures = [pool.submit(both.wait) for _ in range(3)]
        pool.resize(3)
        assert sorted(future.result(60) for future in futures) == [0, 1, 2]
        pool.resize(1)
        until(lambda: pool.stats().workers == 1)
        assert pool.submit(int, 5).result() == 5
        go.set()
        with pytest.raises(ValueError, match="max_workers must be greater than 0"):
            pool.resize(0)


def test_each_thread_runs_the_initializer_and_the_finalizer():
    local, ended = threading.local(), []

    def prepare(value):
        local.value = value

    with Pool(2, initializer=prepare, initargs=(7,), finalizer=lambda: ended.append(local.value)) as pool:
        assert {pool.submit(lambda: local.value).result() for _ in range(20)} == {7}
        workers = pool.stats().workers

    assert ended == [7] * workers


def test_the_pool_is_broken_if_the_initializer_fails(caplog):
    caplog.set_level(logging.CRITICAL, "concurrent.futures")
    pool = Pool(1, initializer=divmod, initargs=(1, 0))
    with pytest.raises(pool_module.BrokenPool, match="initializer failed"):
        pool.submit(int).result(60)
    until(lambda: pool._broken)
    with pytest.raises(pool_module.BrokenPool, match="initializer failed"):
        pool.submit(int)
    pool.shutdown()

    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("moment", ["before the thread", "beside it", "after its job"])
@pytest.mark.parametrize("others", [0, 1])
def test_ctrl_c_while_a_thread_starts_is_raised_and_the_pool_works(interrupted_start, moment, others):
    done, go = [], threading.Event()
    pool = Pool(1 + others)
    for _ in range(others):
        pool.push(go.wait, 60)
    with interrupted_start(moment, done), pytest.raises(KeyboardInterrupt):
        pool.push(done.append, 1)
    pool.push(done.append, 2)
    until(lambda: len(done) == 2)
    go.set()

    assert pool.wait_idle(60)
    pool.shutdown()
    assert sorted(done) == [1, 2]
    assert (pool.stats().workers, pool._threads) == (0, frozenset())


def test_waiters_see_an_interrupted_job_as_done(interrupted_start):
    done, pool = [], Pool(2)
    with interrupted_start("before the thread", done), pytest.raises(KeyboardInterrupt):
        pool.push(done.append, 1)

    assert pool.wait_idle(20)
    assert done == [1]
    assert pool.stats().workers == 1
    pool.shutdown()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_nothing_waits_for_workers_that_could_not_be_started(monkeypatch, kind):
    done, original = [], threading.Thread.start
    pool = Pool(4)
    starts = iter([original])

    def start(thread):
        begin = next(starts, None)
        if begin is None:
            raise kind
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    if kind is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            pool.push_many(done.append, range(4))
    else:
        assert pool.push_many(done.append, range(4)) == 4

    assert pool.wait_idle(60)
    assert sorted(done) == [0, 1, 2, 3]
    assert pool.stats().workers == 1
    monkeypatch.undo()
    pool.shutdown()


@pytest.fixture
def interrupted_start(monkeypatch):
    """Give a context that interrupts the start of a thread: before it, while it begins, or after its job."""
    original = threading.Thread.start

    @contextlib.contextmanager
    def interrupted(moment, done):
        def start(thread):
            if moment != "before the thread":
                original(thread)
            if moment == "after its job":
                until(lambda: done)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            yield

    return interrupted


def test_pools_can_be_listed_while_others_are_made():
    ended, before = threading.Event(), sys.getswitchinterval()
    # With 2,000 pools a call of `by_name()` takes long enough for another thread to run in between.
    held = [Pool(1) for _ in range(2000)]

    def make():
        while not ended.is_set():
            Pool(1)

    maker = threading.Thread(target=make)
    sys.setswitchinterval(1e-6)
    maker.start()
    try:
        for _ in range(500):
            assert len(by_name()) >= len(held)
    finally:
        ended.set()
        sys.setswitchinterval(before)
        maker.join()


def test_a_c_function_in_a_loop_lets_others_run():
    # `int` never checks whether another thread wants the interpreter.
    with Pool(1) as pool:
        for _ in range(200_000):
            pool.push(int)
        assert pool.wait_idle(60)


END = """
import sys, threading, time
from logspool.pool import Pool
def work(number):
    time.sleep(0.1)
    sys.stdout.write(f"{number}\\n")
def begin():
    pool = Pool(2, at_exit=sys.argv[1])
    for number in range(6):
        pool.push(work, number)
    return pool
pool = begin()
if sys.argv[2] == "dropped":
    del pool
print("end")
"""


@pytest.mark.parametrize("pool", ["held", "dropped"])
@pytest.mark.parametrize(("at_exit", "least", "most"), [("finish", 6, 6), ("cancel", 0, 2), ("abandon", 0, 2)])
def test_the_interpreter_exit_applies_the_chosen_behaviour(run_program, at_exit, least, most, pool):
    outcome, _ = run_program(END, at_exit, pool)
    lines = outcome.expect_success().out.decode().split()

    assert lines[0] == "end"
    assert least <= len(lines) - 1 <= most
    assert outcome.err == b""


def test_jobs_submitted_by_jobs_are_accepted_until_interpreter_exit_and_then_refused(run_program):
    body = """
import atexit, time
from logspool.pool import Pool
pool = Pool(1)
@atexit.register
def last():
    try:
        pool.submit(int)
    except RuntimeError as error:
        print(error)
pool.submit(time.sleep, 0.05)
"""
    outcome, _ = run_program(body)

    assert outcome.expect_success().out == b"cannot schedule new futures after interpreter shutdown\n"


def test_an_abandoned_stuck_job_does_not_delay_interpreter_exit(run_program):
    body = """
import threading
from logspool.pool import Pool
pool, begun = Pool(1, at_exit="abandon"), threading.Event()
pool.push(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
"""
    outcome, _ = run_program(body)

    outcome.expect_success()


def test_interpreter_exit_waits_for_the_configured_time(run_program):
    body = """
import threading
from logspool.pool import Pool
stuck, quick = Pool(1, "stuck", exit_timeout=0.2), Pool(1, "quick", exit_timeout=60)
begun = threading.Event()
stuck.push(lambda: (begun.set(), threading.Event().wait()))
stuck.push(print, "never")
begun.wait()
for number in range(3):
    quick.push(print, number)
"""
    outcome, _ = run_program(body)

    assert outcome.expect_success().out == b"0\n1\n2\n"
    said = b"did not end within exit_timeout=0.2 s: 1 jobs that run and 1 that wait are left undone"
    assert outcome.err.count(b"exit_timeout") == 1
    assert said in outcome.err


def test_interpreter_exit_waits_for_the_configured_time_also_for_an_unreferenced_pool(run_program):
    body = """
import threading
from logspool.pool import Pool
begun = threading.Event()
Pool(1, "stuck", exit_timeout=0.2).push(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
"""
    outcome, _ = run_program(body)

    undone = b"its pool has no references left and leaves jobs undone"
    assert b"the thread stuck_0 did not end within exit_timeout=0.2 s: " + undone in outcome.expect_success().err


@pytest.mark.parametrize("callback", [True, False])
def test_threads_that_return_into_an_exiting_interpreter_do_not_abort_it(run_program, callback):
    body = """
import sys, threading, time
from logspool.pool import Pool

class Late:
    def __del__(self, sleep=time.sleep):
        sleep(1)

class SlowToStart(Pool):
    def _start_worker(self, worker):
        starting.set()
        time.sleep(0.3)

# `sys` is cleared last: meanwhile a worker and the timer thread return to the interpreter.
sys.late = Late()
called, starting = threading.Event(), threading.Event()
if CALLBACK:
    pool = Pool(1, at_exit="abandon")
    limited = pool.options(timeout=0.01, failed_callback=lambda error: (called.set(), time.sleep(0.3)))
    limited.push(time.sleep, 0.4)
    called.wait()
else:
    pool = SlowToStart(1, at_exit="abandon")
    pool.submit_later(0.01, int)
    starting.wait()
""".replace("CALLBACK", str(callback))
    outcome, _ = run_program(body)

    assert outcome.expect_success().err == b""


def test_a_negative_exit_timeout_is_refused():
    with pytest.raises(ValueError, match="exit_timeout is -1, expected 0 or more seconds"):
        Pool(1, exit_timeout=-1)
    with pytest.raises(ValueError, match="exit_timeout must be a number of seconds or None, not nan"):
        Pool(1, exit_timeout=float("nan"))


FORK = """
import os, sys
from logspool.pool import BrokenPool, Pool
import threading
pool, go, begun = Pool(1), threading.Event(), threading.Event()
running = pool.submit(lambda: (begun.set(), go.wait(60))[1])
waiting = pool.submit(int, 1)
begun.wait(60)
child = os.fork()
if child == 0:
    try:
        waiting.result(10)
    except BrokenPool as error:
        print(error)
    print(pool.submit(int, 2).result(10), pool.stats().workers, flush=True)
    pool.shutdown()
    os._exit(0)
_, status = os.waitpid(child, 0)
go.set()
print(status, running.result(10), waiting.result(10), pool.submit(int, 3).result(10))
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_working_pool_and_the_parent_keeps_its_jobs(run_program):
    outcome, _ = run_program(FORK, options=("-W", "ignore::DeprecationWarning"))

    assert outcome.expect_success().out.decode().splitlines() == [
        "the process was forked while this job waited; it is done in the parent",
        "2 1",
        "0 True 1 3",
    ]


FORK_WHILE_HELD = """
import concurrent.futures, os, signal, threading, time
from logspool.pool import BrokenPool, Pool, Results

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")

class Thing:
    def __del__(self):
        say("freed", os.getpid() == parent)

def begin(pool):
    pool.push(lambda: (begun.release(), go.wait(60)))
    begun.acquire()
    future = pool.submit(lambda thing: None, Thing())
    future.add_done_callback(lambda _: say("told", os.getpid() == parent))
    pool.options(results=results, timeout=60).push(int)
    return future

def hold(future):
    with future._condition:
        begun.release()
        go.wait(60)

parent, go, begun, results = os.getpid(), threading.Event(), threading.Semaphore(0), Results()
pool = Pool(1)
futures = [begin(pool), begin(Pool(1))]
timer = pool.submit_later(1000, int, Thing())
for future in [*futures, timer]:
    threading.Thread(target=hold, args=(future,)).start()
    begun.acquire()
child = os.fork()
if child == 0:
    for future in [*futures, timer]:
        try:
            future.result(10)
        except BrokenPool:
            say("broken", len(concurrent.futures.wait([future], 10).done))
    say(list(results))
    os._exit(0)
deadline = time.monotonic() + 20
while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
    if time.monotonic() > deadline:
        os.kill(child, signal.SIGKILL)
    time.sleep(0.01)
say(ended[1])
go.set()
timer.cancel()
"""


def test_a_fork_waits_for_no_thread_of_the_parent_and_calls_nothing_in_the_child(run_program):
    outcome, _ = run_program(FORK_WHILE_HELD, options=("-W", "ignore::DeprecationWarning"))

    lines = outcome.expect_success().out.decode().splitlines()
    assert lines[:5] == ["broken 1"] * 3 + ["[]", "0"]
    assert sorted(lines[5:]) == ["freed True"] * 3 + ["told True"] * 2


FORK_AFTER_CANCEL = """
import concurrent.futures, os, signal, threading
from logspool.pool import Pool

def hold():
    with futures[1]._condition:
        held.set()
        go.wait(60)

pool, go, begun, held = Pool(1), threading.Event(), threading.Event(), threading.Event()
pool.push(lambda: (begun.set(), go.wait(60)))
begun.wait(60)
futures = [pool.submit(int), pool.submit(int), pool.options(timeout=60).submit(int)]
cancelled = [future.cancel() for future in futures]
threading.Thread(target=hold).start()
held.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(20)
    print(cancelled, len(concurrent.futures.wait(futures, 1).done), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
go.set()
"""


def test_jobs_cancelled_before_a_fork_have_ended_in_the_child(run_program):
    outcome, _ = run_program(FORK_AFTER_CANCEL, options=("-W", "ignore::DeprecationWarning"))

    assert outcome.expect_success().out.decode().splitlines() == ["[True, True, True] 3", "0"]


WAITS = {
    "result": "pool.submit(threading.Event().wait).result()",
    "wait_idle": "pool.push(threading.Event().wait); pool.wait_idle()",
    "map": "list(pool.map(lambda _: threading.Event().wait(), range(3)))",
    "acquire": "Semaphore(0).acquire()",
    "with": "Semaphore(0).__enter__()",
    "shutdown": "pool.push(threading.Event().wait); pool.shutdown()",
    "shutdown before a timer": "pool.submit_later(1000, int); pool.shutdown()",
    "results": "pool.options(results=(results := Results())).push(threading.Event().wait); next(results)",
    "get": "pool.options(results=(results := Results())).push(threading.Event().wait); results.get()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_every_wait(tmp_path: Path, queue_dir, wait):
    body = f"""
import threading
from logspool.pool import Pool, Results, Semaphore
pool = Pool(1, at_exit="abandon")
print("ready", flush=True)
try:
    {WAITS[wait]}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    script = tmp_path / "program.py"
    script.write_text(body)
    child = programs.start(
        [script],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        stdout=-1,
        stderr=-1,
    )
    with programs.ended(child):
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=30)

    assert (out, child.returncode) == (b"interrupted\n", 0), err.decode()
