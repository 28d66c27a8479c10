import signal

import pytest
from thread_handler_support import run_python

from logspool.thread._queue import RecordQueue

pytestmark = pytest.mark.every_interpreter

START = """
import ctypes, logging, random, signal, sys, threading, time
from logspool.thread import _writer
from logspool.thread._handler import ThreadHandler

class Counting(logging.Handler):
    count = 0
    def handle(self, record):
        # Without the lock of stock handlers: an exception between its steps leaves it locked forever.
        self.count += record.name != "logspool"

def start(size):
    global wrapped, handler, log
    wrapped = Counting()
    handler = ThreadHandler(wrapped, queue_size=size, shutdown_timeout=20)
    log = logging.Logger("interrupted", logging.DEBUG)
    log.addHandler(handler)
    log.isEnabledFor(logging.ERROR)  # cached from now on, so that a call takes no lock of logging

def finish():
    assert handler.flush(20)
    stats = handler.stats()
    assert stats.queued == 0 and stats.accepted == stats.written, stats
    assert handler._queue.waiting == 0
    handler.close()

sys.setswitchinterval(1e-5)
"""


def test_exceptions_thrown_into_the_thread_leave_nothing_uncounted():
    run_python(
        START
        + """
threading.excepthook = lambda *_: None

def runs(thread):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code is not _writer.Writer._empty.__code__:
        frame = frame.f_back
    return frame is not None

throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
thrown, last = 0, None
for size in (1, 2, 50):
    start(size)
    for _ in range(300):
        for _ in range(20):
            log.error("own")
        thread = handler._writer.thread
        # Once into each thread: a second one may end the care for the first. Not before the thread runs our code: an
        # exception in the first or last steps of a thread leaves locks of `threading` taken.
        if thread is not None and thread is not last and runs(thread):
            last = thread
            thrown += throw(ctypes.c_ulong(thread.ident), ctypes.py_object(ValueError))
    finish()
assert thrown > 0
"""
    )


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer here")
def test_interrupted_callers_leave_the_queue_in_order():
    run_python(
        START
        + """
def interrupt(*_):
    if armed:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
for _ in range(400):
    start(random.choice((1, 2, 3, 50)))
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * 0.0003)
        for _ in range(50):
            log.error("own")
        armed = False
    except KeyboardInterrupt:
        interrupted += 1
    finish()
assert interrupted > 0
"""
    )


def test_records_arrive_even_if_new_threads_never_run():
    run_python(
        START
        + """
# An exception at the begin of 'with', in 'Thread.start', leaves it so: in CPython 3.14 at any KeyboardInterrupt there.
threading._active_limbo_lock.acquire()
start(2)
for _ in range(5):
    log.error("own")
assert handler.flush(20)
assert wrapped.count == 5, wrapped.count
for _ in range(5):
    log.error("own")
finish()
assert wrapped.count == 10, wrapped.count
threading._active_limbo_lock.release()
"""
    )


def test_a_reserved_slot_is_freed_when_its_caller_is_gone():
    queue = RecordQueue(1, 1 << 20)
    with queue.reserve():
        assert queue.waiting == 1
        assert queue.put("record", 1) == "queue_full"
    place = queue.reserve()
    place.__enter__()
    del place
    assert queue.waiting == 0
    assert queue.put("record", 1) == "wake"


def test_records_arrive_even_if_no_thread_can_be_started():
    run_python(
        START
        + """
begin = _writer.WriterThread.start
def begin_or_not(self):
    if random.random() < share:
        raise RuntimeError("can't start new thread")
    begin(self)
_writer.WriterThread.start = begin_or_not
for share in (0.5, 0.9, 1.0):
    for size in (1, 2, 50):
        start(size)
        def log_some():
            for number in range(200):
                log.error("%d", number)
                if number % 50 == 0:
                    assert handler.flush(20)
        others = [threading.Thread(target=log_some) for _ in range(3)]
        for other in others:
            other.start()
        for other in others:
            other.join(20)
            assert not other.is_alive()
        finish()
        assert wrapped.count == 600, wrapped.count
"""
    )
