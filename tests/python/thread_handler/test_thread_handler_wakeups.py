import threading
import time

from thread_handler_support import HeldHandler, ListHandler, new_logger, wait_until

from logspool.thread._handler import ThreadHandler


def count_rings(handler):
    queue = handler._queue
    ring = queue.bell
    rings = []

    class Bell:
        def acquire(self, *arguments):
            return ring.acquire(*arguments)

        def release(self):
            rings.append(threading.get_ident())
            ring.release()

    queue.bell = Bell()
    return rings


def test_a_burst_does_not_wake_the_thread_for_each_record():
    handler = ThreadHandler(ListHandler(), queue_size=1000, blocking_levels={"INFO"})
    logger = new_logger("wake", handler)
    logger.info("starts the thread")
    handler.flush()
    rings = count_rings(handler)
    for number in range(20_000):
        logger.info("%d", number)
    in_loop = len(rings)
    handler.flush()

    # Two rings for each half queue of 500 records would be 80.
    assert in_loop <= 200
    handler.close()


def test_a_steady_load_wakes_the_thread_a_few_times_for_many_records():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=1000)
    logger = new_logger("wake", handler)
    logger.info("starts the thread")
    handler.flush()
    queue = handler._queue
    bell = queue.bell
    naps = []

    class Bell:
        def acquire(self, *arguments):
            naps.append(arguments)
            return bell.acquire(*arguments)

        def release(self):
            bell.release()

    queue.bell = Bell()
    began = time.monotonic()
    for number in range(400):
        logger.info("%d", number)
        time.sleep(0.001)
    seconds = time.monotonic() - began
    handler.flush()

    # With naps of 4 ms there would be some 220 in a second, with naps of 32 ms 30. The first few naps are shorter.
    assert len(naps) <= 60 * seconds + 15
    assert [str(number) for number in range(400)] == [record.getMessage() for record in wrapped.records[1:]]
    assert 401 == handler.stats().written
    handler.close()


def test_a_queue_whose_bytes_are_full_wakes_the_thread():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=1000, queue_bytes=4096, flush_interval=3600)
    logger = new_logger("wake", handler)
    logger.info("starts the thread")
    handler.flush()
    rings = count_rings(handler)
    for number in range(2000):
        logger.info("%d %s", number, "x" * 2000)
    handler.flush()

    stats = handler.stats()
    assert 2001 == stats.written + stats.refused_total
    assert {"queue_bytes"} == set(stats.refused)
    assert len(rings) < stats.refused_total
    assert len(wrapped.records) >= stats.written
    handler.close()


def test_a_waiting_caller_is_not_woken_for_each_removed_record():
    handler = ThreadHandler(ListHandler(), queue_size=1000, blocking_levels={"INFO"})
    logger = new_logger("wake", handler)
    queue = handler._queue
    opened = []
    gates = queue.gates

    class Gates:
        def __len__(self):
            return len(gates)

        def popleft(self):
            opened.append(1)
            return gates.popleft()

        def append(self, gate):
            gates.append(gate)

        def remove(self, gate):
            gates.remove(gate)

    queue.gates = Gates()
    threads = [threading.Thread(target=lambda: [logger.info("%d", n) for n in range(5000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # Four threads that are each woken once for every half queue would be 160 wake-ups; slow machines have more.
    assert len(opened) <= 1000
    handler.close()


def test_an_idle_handler_wakes_up_only_once_per_flush_interval():
    handler = ThreadHandler(ListHandler(), flush_interval=100)
    logger = new_logger("wake", handler)
    logger.info("x")
    handler.flush()
    wait_until(lambda: handler._queue.wake_at == 1)
    logger.info("wakes it")
    wait_until(lambda: handler.stats().written == 2)
    handler.close()


def test_a_half_full_queue_wakes_a_napping_thread():
    wrapped = HeldHandler()
    wrapped.go.set()
    handler = ThreadHandler(wrapped, queue_size=4, flush_interval=100)
    logger = new_logger("wake", handler)
    for _ in range(49):
        logger.error("one more")
    assert handler.flush()
    assert handler.stats().written == 49
    handler.close()
