import threading

import pytest
from thread_handler_support import DEADLINE, HeldHandler, ListHandler, assert_balanced, new_logger, wait_until

from logspool.thread._handler import ThreadHandler

pytestmark = pytest.mark.every_interpreter


class Talkative(ListHandler):
    """Logs while it handles a record."""

    def __init__(self, echoes):
        super().__init__()
        self.echoes = echoes
        self.logger = None

    def emit(self, record):
        super().emit(record)
        if record.msg == "from outside":
            for _ in range(self.echoes):
                self.logger.error("from inside")


def test_records_from_the_handler_thread_are_accepted_while_there_is_room():
    wrapped = Talkative(3)
    handler = ThreadHandler(wrapped)
    wrapped.logger = new_logger("own", handler)
    wrapped.logger.info("from outside")
    handler.flush()
    handler.close()

    assert wrapped.messages == ["from outside"] + 3 * ["from inside"]


def test_records_from_the_handler_thread_never_wait_and_are_counted_when_refused():
    wrapped = Talkative(10)
    handler = ThreadHandler(wrapped, queue_size=4)
    wrapped.logger = new_logger("own", handler)
    wrapped.logger.info("from outside")
    wait_until(lambda: handler.stats().written == 4)
    stats = handler.stats()

    assert stats.refused == {"own_thread": {40: 7}}
    assert_balanced(stats)
    handler.close()


def test_a_handler_that_echoes_every_record_ends_with_close_at_the_deadline():
    class Echo(ListHandler):
        def emit(self, record):
            self.logger.info("again")

    wrapped = Echo()
    handler = ThreadHandler(wrapped, shutdown_timeout=0.2)
    wrapped.logger = new_logger("own", handler)
    wrapped.logger.info("first")
    thread = handler._writer.thread
    closer = threading.Thread(target=handler.close)
    closer.start()
    closer.join(DEADLINE)

    assert not closer.is_alive()
    wait_until(lambda: not thread.is_alive())
    assert_balanced(handler.stats())


def test_flush_and_close_on_the_handler_thread_do_not_deadlock():
    class Closing(HeldHandler):
        def emit(self, record):
            super().emit(record)
            results.append(handler.flush())
            handler.close()

    results = []
    wrapped = Closing()
    handler = ThreadHandler(wrapped)
    logger = new_logger("own", handler)
    logger.info("closes")
    logger.info("is drained")
    wrapped.go.set()
    wait_until(lambda: len(wrapped.records) == 2 and wrapped.closed)

    assert results[0] is False
    assert handler.stats().written == 2
