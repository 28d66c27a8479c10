import random
import threading

from thread_handler_support import ListHandler, assert_balanced, new_logger

from logspool.thread._handler import ThreadHandler


def test_the_accounting_is_exact_at_random_moments_under_load():
    class Uneven(ListHandler):
        """Sometimes slow, so that the queue is sometimes full."""

        def emit(self, record):
            if random.random() < 0.02:
                threading.Event().wait(0.001)
            self.records.append(None)

    wrapped = Uneven()
    handler = ThreadHandler(wrapped, queue_size=20, blocking_timeout=0.001)
    logger = new_logger("accounting", handler)
    calls = 1500

    def log():
        for number in range(calls):
            logger.log(random.choice((10, 20, 30, 40)), "%d", number)

    threads = [threading.Thread(target=log) for _ in range(3)]
    for thread in threads:
        thread.start()
    last = handler.stats()
    looks = 0
    while any(thread.is_alive() for thread in threads) or looks < 100:
        stats = handler.stats()
        assert_balanced(stats)
        assert stats.queued <= 20
        assert last.offered <= stats.offered <= 3 * calls
        assert last.accepted <= stats.accepted
        assert last.written <= stats.written
        last = stats
        looks += 1
    handler.flush()
    stats = handler.stats()

    assert stats.offered == 3 * calls
    assert stats.queued == 0
    assert stats.refused_total > 0
    handler.close()
    summaries = len(wrapped.records) - stats.written
    assert summaries >= 1
    assert_balanced(handler.stats())


def test_counters_are_exact_when_every_thread_is_refused():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=1)
    logger = new_logger("accounting", handler)
    with wrapped.lock:
        logger.info("in hand")

        def log():
            for _ in range(2000):
                logger.info("refused")

        threads = [threading.Thread(target=log) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert handler.stats().refused == {"queue_full": {20: 8000}}
    handler.close()


def test_stats_name_reasons_and_levels():
    handler = ThreadHandler(ListHandler())
    logger = new_logger("accounting", handler)
    logger.info("one")
    handler.flush()
    stats = handler.stats()

    assert (stats.offered, stats.accepted, stats.written, stats.handled) == (1, 1, 1, 1)
    assert (stats.queued, stats.queued_bytes) == (0, 0)
    assert (stats.refused, stats.dropped) == ({}, {})
    handler.close()
