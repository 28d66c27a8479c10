"""Lines of one thread stay whole and in order while another thread closes the sink of their handler."""

import json
import os

import pytest

pytestmark = pytest.mark.real

LINES = 20

PROGRAM = """\
import array, fcntl, json, logging, os, select, sys, termios, threading, time
import logspool

how, LINES = sys.argv[1], int(sys.argv[2])
# It is unread until all lines are queued, so the sink of the handler is stuck.
end = os.open("fifo", os.O_RDWR)
reached, renews = threading.Event(), threading.Event()

def wait_until_another_thread_closes_the_sink():
    reached.set()
    renews.wait()
    # Nothing shows from outside that the other thread has taken the sink out. Where this is too short, both orders of
    # the two threads are tested by other tests.
    time.sleep(0.2)

class Waits(logging.Formatter):
    def format(self, record):
        if record.msg == "last" and not reached.is_set():
            wait_until_another_thread_closes_the_sink()
        # Only Python's own file can encode this text.
        return super().format(record) + ("\\udc80" if record.msg == "last" else "")

handler = logging.FileHandler("fifo", errors="backslashreplace")
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(handler)
logspool.install(shutdown_timeout=60)

def change():
    reached.wait()
    stock = logging.Handler.handle
    # Stock logging serves the handler from now on, so this thread closes its sink.
    logging.Handler.handle = lambda *arguments: stock(*arguments)
    renews.set()
    log.info("renewed")

def read():
    renews.wait()
    time.sleep(0.5)
    while received.count(b"\\n") < LINES + 2:
        select.select([end], [], [])
        with reading:
            received.extend(os.read(end, 1 << 20))

def in_pipe():
    found = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, found)
    return found[0]

received, reading = bytearray(), threading.Lock()
others = [threading.Thread(target=each) for each in (change, read)]
for each in others:
    each.start()
for number in range(LINES):
    log.info("first %d %s", number, "x" * 20_000)
written = None
if how == "past the queue":
    handler.setFormatter(Waits("%(message)s"))
    log.info("last")
else:
    wait_until_another_thread_closes_the_sink()
    handler.flush()
    with reading:
        written = len(received) + in_pipe()
    log.info("last")
for each in others:
    each.join()
print(json.dumps([[line.split(" x")[0] for line in received.decode().splitlines()], written]))
"""


@pytest.mark.parametrize("how", ["past the queue", "flush"])
def test_nothing_overtakes_lines_whose_sink_another_thread_closes(run_program, tmp_path, how):
    folder = tmp_path / "installed"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    outcome, _ = run_program(PROGRAM, how, str(LINES), deadline_seconds=60)

    found, written = json.loads(outcome.expect_success().out)
    first = [f"first {number}" for number in range(LINES)]
    last = "last\\udc80" if how == "past the queue" else "last"
    assert found[:LINES] == first
    assert sorted(found[LINES:]) == sorted([last, "renewed"])
    if how == "flush":
        assert written >= sum(len(line) + len(" \n") + 20_000 for line in first)
