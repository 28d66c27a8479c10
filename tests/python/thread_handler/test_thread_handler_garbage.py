import gc
import logging
import weakref

import pytest
from thread_handler_support import HeldHandler, ListHandler, hold, new_logger, wait_until

from logspool.thread import _hooks
from logspool.thread._handler import ThreadHandler
from logspool.thread._queue import RecordQueue

pytestmark = pytest.mark.every_interpreter


def test_an_unreferenced_thread_handler_drains_its_queue_and_ends_its_thread():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("garbage", handler)
    hold(logger, wrapped)
    logger.info("second")
    writer = handler._writer
    thread = writer.thread
    del handler, logger
    gc.collect()
    wrapped.go.set()
    wait_until(lambda: not thread.is_alive())

    assert wrapped.messages == ["in hand", "second"]
    assert writer not in _hooks.writers
    assert wrapped.closed == 0


def test_an_unused_thread_handler_leaves_no_thread_and_no_objects():
    handler = ThreadHandler(ListHandler())
    writer = handler._writer
    del handler
    gc.collect()

    assert writer not in _hooks.writers


def test_a_closed_handler_leaves_no_thread_and_no_objects():
    handler = ThreadHandler(ListHandler())
    new_logger("garbage", handler).info("x")
    handler.close()

    assert handler._writer not in _hooks.writers


def test_a_queue_and_a_record_that_refer_to_each_other_are_freed():
    queue = RecordQueue(4, 1 << 20)
    record = logging.makeLogRecord({"msg": "x", "queue": queue})
    assert queue.put(record, 1) == "wake"
    freed = weakref.ref(record)
    del queue, record
    gc.collect()

    assert freed() is None
