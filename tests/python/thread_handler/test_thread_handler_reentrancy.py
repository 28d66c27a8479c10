import gc
import signal
import threading

import pytest
from thread_handler_support import ListHandler, assert_balanced, new_logger, run_python

from logspool.thread._handler import ThreadHandler

pytestmark = pytest.mark.every_interpreter


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer here")
@pytest.mark.parametrize("queue_size", [2, 1000])
def test_a_signal_handler_that_logs_while_its_thread_logs_does_not_deadlock(queue_size):
    source = """
import logging, signal, sys, threading
from logspool.thread._handler import ThreadHandler
class Counting(logging.Handler):
    count = 0
    def emit(self, record):
        if record.name != "logspool":
            self.count += 1
wrapped = Counting()
handler = ThreadHandler(wrapped, queue_size=int(sys.argv[1]))
log = logging.Logger("signal", 10)
log.addHandler(handler)
nested = 0
def on_alarm(number, frame):
    global nested
    nested += 2
    log.error("nested, blocking")
    log.info("nested, dropping")
    stats = handler.stats()
    assert stats.offered == stats.accepted + stats.refused_total
    assert stats.accepted == stats.written + stats.queued + stats.dropped_total
    if armed:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
armed = True
signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.0003)
stop = threading.Event()
others = [0, 0]
def log_too(index):
    while not stop.is_set():
        log.error("other")
        others[index] += 1
threads = [threading.Thread(target=log_too, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
own = 0
while own < 3000 or nested < 400:
    log.error("own") if own % 2 else log.info("own")
    own += 1
armed = False
while any(signal.getitimer(signal.ITIMER_REAL)):
    threading.Event().wait(0.001)
stop.set()
for thread in threads:
    thread.join()
assert handler.flush(20)
stats = handler.stats()
assert stats.offered == own + nested + sum(others), (stats, own, nested, others)
assert stats.queued == 0
handler.close()
assert wrapped.count == stats.written, (wrapped.count, stats)
"""
    done = run_python(source, queue_size, check=False)

    assert done.returncode == 0, done.stderr


def test_finalizers_that_log_during_collections_do_not_deadlock():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, blocking_levels={"INFO"})
    logger = new_logger("gc", handler)

    class Loud:
        def __init__(self):
            self.me = self

        def __del__(self):
            logger.info("finalizer")
            handler.stats()

    def log():
        for _ in range(500):
            Loud()
            logger.info("caller")

    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        threads = [threading.Thread(target=log) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
    handler.flush()
    messages = wrapped.messages

    assert messages.count("caller") == 1500
    assert messages.count("finalizer") == 1500
    assert_balanced(handler.stats())
    handler.close()


def test_an_argument_that_logs_while_it_is_rendered_works():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("str", handler)

    class Loud:
        def __str__(self):
            logger.info("inside")
            return "outside"

    logger.info("%s", Loud())
    handler.close()

    assert wrapped.messages == ["inside", "outside"]


def test_a_wrapped_handler_that_logs_does_not_recurse_after_close():
    class Echo(ListHandler):
        def emit(self, record):
            super().emit(record)
            self.logger.error("echo")

    wrapped = Echo()
    handler = ThreadHandler(wrapped)
    wrapped.logger = new_logger("echo", handler)
    handler.close()
    wrapped.logger.error("late")

    assert wrapped.messages == ["late"]
    assert handler.stats().refused == {"recursion": {40: 1}}
    assert_balanced(handler.stats())
