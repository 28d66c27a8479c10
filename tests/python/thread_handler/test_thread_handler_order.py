import threading

import pytest
from thread_handler_support import ListHandler, new_logger

from logspool.thread._handler import ThreadHandler

pytestmark = pytest.mark.every_interpreter


def test_records_of_one_thread_arrive_in_order():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=7, blocking_levels={"INFO"})
    logger = new_logger("order", handler)
    for number in range(3000):
        logger.info("%d", number)
    handler.close()

    assert wrapped.messages == [str(number) for number in range(3000)]


def test_records_of_several_threads_are_complete_and_in_order_for_each_thread():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=50, blocking_levels={"INFO"})
    logger = new_logger("order", handler)

    def log(name):
        for number in range(1000):
            logger.info("%s %d", name, number)

    threads = [threading.Thread(target=log, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.close()

    assert len(wrapped.records) == 4000
    for name in "abcd":
        numbers = [m.split()[1] for m in wrapped.messages if m.startswith(name)]
        assert numbers == [str(number) for number in range(1000)]


def test_the_wrapped_handler_runs_on_one_thread_that_is_not_the_callers():
    idents = set()

    class Handler(ListHandler):
        def emit(self, record):
            idents.add(threading.get_ident())

    handler = ThreadHandler(Handler(), blocking_levels={"INFO"})
    logger = new_logger("order", handler)
    for _ in range(100):
        logger.info("where")
    handler.flush()

    assert len(idents) == 1
    assert threading.get_ident() not in idents
    handler.close()
