"""`ThreadHandler` with `install()`: calls put their values into its queue natively."""

from thread_handler_support import run_python

START = """
import logging, threading, time
import logspool
from logspool import ThreadHandler
from thread_handler_support import DEADLINE, HeldHandler, ListHandler, assert_balanced, wait_until

def new(wrapped, **options):
    handler = ThreadHandler(wrapped, **options)
    log = logging.getLogger(f"installed.{len(logging.root.manager.loggerDict)}")
    log.propagate = False
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    return handler, log
"""


def test_records_have_the_attributes_of_stock_records():
    run_python(
        START
        + """
def calls(log):
    changing = [1]
    for _ in range(2):
        log.info("plain")
        log.warning("%s %d %.2f %s", "text", 3, 2.5, None)
        log.debug("%r", b"bytes")
        log.error("%(a)s", {"a": 1})
        log.info("%s", changing)
        changing.append(2)
        log.info("with extra", extra={"user": "ann"})
        log.info("at the caller", stacklevel=1)
        log.log(35, "own level %s", ("a", 1))
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("failed")

names = "name levelno levelname funcName lineno pathname module thread threadName process processName".split()
shown = []
for installs in (False, True):
    if installs:
        logspool.install()
    wrapped = ListHandler()
    handler, log = new(wrapped)
    log.name = "same"
    calls(log)
    assert handler.flush()
    shown.append([[getattr(record, name) for name in names] + [record.getMessage(), bool(record.exc_info),
        getattr(record, "user", None), type(record.created)] for record in wrapped.records])
    log.removeHandler(handler)
    handler.close()
assert len(shown[0]) == 18
assert shown[0] == shown[1], shown
"""
    )


def test_a_full_queue_counts_each_record_and_levels_that_wait_are_kept():
    run_python(
        START
        + """
logspool.install()
wrapped = HeldHandler()
handler, log = new(wrapped, queue_size=10)
for number in range(1000):
    log.info("%d", number)
waiting = threading.Thread(target=log.error, args=("kept",))
waiting.start()
wait_until(lambda: handler._queue.waiting == 1)
stats = handler.stats()
assert stats.accepted == 10 and stats.refused["queue_full"] == {logging.INFO: 990}, stats
assert_balanced(stats)
wrapped.go.set()
waiting.join(DEADLINE)
assert handler.flush()
assert handler.stats().accepted == handler.stats().written == 11
messages = [message for message in wrapped.messages if "dropped" not in message]
assert messages == [*map(str, range(10)), "kept"], messages
"""
    )


def test_the_next_record_sees_every_change_of_the_program():
    run_python(
        START
        + """
logspool.install()
wrapped = ListHandler()
handler, log = new(wrapped)
seen = []
log.info("before")
handler.addFilter(lambda record: seen.append(("filter", record.msg)) or True)
log.info("filtered")
handler.filters.clear()
handler.__dict__["emit"] = lambda record: seen.append(("emit", record.msg))
log.info("to emit")
del handler.__dict__["emit"]
handler.handle = lambda record: seen.append(("handle", record.msg))
log.info("to handle")
del handler.handle
handler.setLevel(logging.ERROR)
log.info("below the level")
handler.setLevel(0)
log.addFilter(lambda record: seen.append(("logger", record.msg)) or True)
log.info("through the logger's filter")
log.filters.clear()
stock = ThreadHandler.emit
ThreadHandler.emit = lambda self, record: seen.append(("class", record.msg))
log.info("to the class")
ThreadHandler.emit = stock
log.info("after")
assert handler.flush()
assert wrapped.messages == ["before", "filtered", "through the logger's filter", "after"], wrapped.messages
assert seen == [("filter", "filtered"), ("emit", "to emit"), ("handle", "to handle"),
    ("logger", "through the logger's filter"), ("class", "to the class")], seen
"""
    )


def test_an_adopted_handler_gets_every_record_in_order(tmp_path):
    path = tmp_path / "out.log"
    run_python(
        START
        + """
import sys
handler, log = new(logging.FileHandler(sys.argv[1]), queue_size=10_000)
logspool.install()
for number in range(5000):
    log.info("%d", number)
log.removeHandler(handler)
handler.close()
stats = handler.stats()
assert stats.accepted == stats.written == 5000, stats
""",
        path,
    )
    assert path.read_text().split() == [str(number) for number in range(5000)]
