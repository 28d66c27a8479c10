"""`handler.handle(record)` and `handler.emit(record)` outside a logging call, and handlers of a `QueueListener`."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# The FIFO is read only at the end; a call that waited for it would take `shutdown_timeout`.
UNREAD = """\
import logging, os, time
import logspool

os.mkfifo("fifo")
reader = os.open("fifo", os.O_RDWR | os.O_NONBLOCK)
handler = logging.FileHandler("fifo")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
logspool.install(shutdown_timeout=60.0)
for number in range(2000):
    log.info("logged %d %s", number, "x" * 100)
begun = time.monotonic()
for number in range(20):
    record = log.makeRecord("app", logging.INFO, "path", 1, "direct %d", (number,), None)
    (handler.handle if number % 2 else handler.emit)(record)
print(time.monotonic() - begun)

lines = b""
while lines.count(b"\\n") < 2020:
    try:
        lines += os.read(reader, 1 << 16)
    except BlockingIOError:
        time.sleep(0.001)
expected = [f"logged {number} {'x' * 100}" for number in range(2000)] + [f"direct {number}" for number in range(20)]
print(lines.decode().splitlines() == expected)
handler.close()
"""

LISTENER = """\
import logging, logging.handlers, queue
import logspool

handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
records = queue.Queue()
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.QueueHandler(records))
logspool.install()
listener = logging.handlers.QueueListener(records, handler)
listener.start()
for number in range(5000):
    log.info("number %d", number)
listener.stop()
handler.flush()
with open("app.log") as file:
    print(file.read().splitlines() == [f"INFO number {number}" for number in range(5000)])
stock = logging.handlers.QueueHandler.prepare
logspool.uninstall()
print(stock is logging.handlers.QueueHandler.prepare)
"""


def test_a_direct_call_is_queued_like_a_logging_call_and_does_not_wait_for_the_write(run_program):
    outcome, _ = run_program(UNREAD)

    outcome.expect_success()
    seconds, in_order = outcome.out.decode().split()
    assert float(seconds) < 30
    assert in_order == "True"


def test_records_of_a_listener_are_in_the_file_after_a_flush_and_uninstall_restores_its_handler(run_program):
    outcome, _ = run_program(LISTENER)

    outcome.expect_success()
    assert outcome.out.decode().split() == ["True", "False"]
