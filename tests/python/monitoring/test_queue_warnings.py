"""The queue warns in the log at 50, 80 and 100 %, once per rise, and never because of its own warnings."""

import json

import pytest

from suite import mounts

pytestmark = pytest.mark.real

# The FIFO is read only after each filling of the queue. The program's thread never writes a warning: it logs only
# records of 1,000 characters, and the queue's own thread adds the warnings.
PROGRAM = """\
import json, logging, os, threading
import logspool

os.mkfifo("fifo")
opened = []
reader = threading.Thread(target=lambda: opened.append(os.open("fifo", os.O_RDONLY)))
reader.start()
handler = logging.FileHandler("fifo", "w")
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
reader.join()
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install()
logging.info("begins")
LIMIT = logspool.stats().queue.overflow_limit_bytes
assert LIMIT <= 8 * 1024 * 1024

lines = bytearray()
def read_until_empty():
    leave = []
    def read():
        while not leave:
            lines.extend(os.read(opened[0], 1 << 16))
    thread = threading.Thread(target=read)
    thread.start()
    logspool.flush()
    # The warning that was due at a full queue is written with the next records.
    logging.info("flushed")
    logspool.flush()
    leave.append(True)
    logging.info("leave")
    thread.join()

def used():
    return logspool.stats().queue.overflow_bytes

def refused():
    return sum(sum(level.refused.values()) for level in logspool.stats().levels.values())

for is_full in (False, True, True):
    if is_full:
        before = refused()
        while refused() == before:
            if used() < LIMIT * 85 // 100:
                # On a busy machine the lane may be full before the collector has moved its records.
                before = refused()
            logging.info("x" * 1000)
    else:
        while used() < LIMIT * 6 // 10:
            logging.info("x" * 1000)
    read_until_empty()
    assert used() < LIMIT * 4 // 10
    print(json.dumps([line for line in lines.decode().splitlines() if " logspool " in line]), flush=True)
    lines.clear()
os.set_blocking(opened[0], False)
logspool.uninstall()
"""


def test_each_rise_has_one_warning_per_threshold(run_program, tmp_path):
    with mounts.small(tmp_path / "shm", "32m") as shm:
        outcome, _ = run_program(PROGRAM, deadline_seconds=120, LOGSPOOL_QUEUE_DIR=str(shm / "queue"))

    first, *full = [json.loads(line) for line in outcome.expect_success().out.splitlines()]
    assert len(first) == 1 and first[0].startswith("WARNING logspool the queue is 50 % full: "), first
    for told in full:
        warnings = [line for line in told if "records dropped" not in line]
        assert [line.partition(":")[0] for line in warnings] == [
            "WARNING logspool the queue is 50 % full",
            "WARNING logspool the queue is 80 % full",
            "WARNING logspool the queue is full",
        ], told
        assert all("(fix: " in line for line in warnings)
