import threading
from dataclasses import dataclass
from time import monotonic

from thread_handler_support import DEADLINE, HeldHandler, hold, new_logger

from logspool.thread._handler import ThreadHandler
from logspool.thread._pace import LONGEST_PAUSE, Turn


@dataclass
class Counts:
    taken: int = 0
    missed: int = 0


def pause_after(seconds, taken, missed):
    """Return the pause after a turn of `seconds` in which `taken` records were taken and `missed` found no room."""
    counts = Counts(10, 10)
    turn = Turn(counts)
    turn.began = monotonic() - seconds
    counts.taken += taken
    counts.missed += missed
    return turn.pause(counts)


def test_a_handler_that_waits_pauses_only_when_most_records_find_no_room():
    assert pause_after(0.1, taken=100, missed=10_000) > 0
    assert pause_after(0.1, taken=100, missed=300) == 0
    assert pause_after(0.1, taken=100, missed=0) == 0


def test_a_handler_that_computes_or_needs_the_lock_rarely_does_not_pause():
    assert pause_after(0.1, taken=10_000, missed=1_000_000) == 0
    assert pause_after(10, taken=1, missed=1_000_000) == 0


def test_a_pause_is_limited():
    assert pause_after(0.1, taken=400, missed=1_000_000) <= (LONGEST_PAUSE + 1) * 0.1 + DEADLINE


def test_a_flush_or_a_waiting_caller_ends_a_pause(monkeypatch):
    # A pause of an hour, which would exceed every deadline here.
    monkeypatch.setattr(Turn, "is_over", lambda self: True)
    monkeypatch.setattr(Turn, "pause", lambda self, queue: 3600.0)
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=2, shutdown_timeout=DEADLINE)
    logger = new_logger("pause", handler)
    hold(logger, wrapped)
    logger.info("fills the queue")
    waiting = threading.Thread(target=logger.error, args=("waits",))
    waiting.start()
    wrapped.go.set()
    waiting.join(DEADLINE)
    assert not waiting.is_alive()
    logger.info("one more")
    assert handler.flush(DEADLINE)
    assert wrapped.messages == ["in hand", "fills the queue", "waits", "one more"]
    handler.close()
