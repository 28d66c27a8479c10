"""The memory of the queue's tmpfs that a process uses, and the behaviour of its threads when the tmpfs is full."""

import pytest

from suite import lines, mounts

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

KIB = 1024

FEW_RECORDS = """\
import glob, logging, os, sys, threading
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
together = threading.Barrier(int(sys.argv[1]))

def log(number):
    logging.info("thread %d", number)
    together.wait()

threads = [threading.Thread(target=log, args=(number,)) for number in range(1, together.parties)]
for thread in threads:
    thread.start()
log(0)
for thread in threads:
    thread.join()
logspool.flush()
print(sum(os.stat(path).st_blocks * 512 for path in glob.glob(os.environ["LOGSPOOL_QUEUE_DIR"] + "/*")))
"""


@pytest.mark.parametrize(("threads", "most"), [(1, 128 * KIB), (4, 256 * KIB)])
def test_a_process_that_logs_little_takes_little_memory(run_program, threads, most):
    outcome, folder = run_program(FEW_RECORDS, str(threads), side="stock")

    assert int(outcome.expect_success().out) <= most
    assert len((folder / "app.log").read_text().splitlines()) == threads


#: Processes that need more than the tmpfs has: each has several threads that need a lane, and long bursts.
MANY_PROCESSES = """\
import logging, os, sys, threading
import logspool

PROCESSES, THREADS, RECORDS = 24, 4, 500
logspool.install(blocking_levels={logging.INFO}, blocking_timeout=float("inf"))
begin_read, begin_write = os.pipe()
there_read, there_write = os.pipe()
children = {}
for process in range(PROCESSES):
    child = os.fork()
    if child:
        children[child] = process
        continue
    handler = logging.FileHandler(f"{process}.log")
    logger = logging.Logger("own")
    logger.addHandler(handler)
    logger.info("first")
    os.close(begin_write)
    os.write(there_write, b"x")
    os.read(begin_read, 1)  # returns once the parent has seen all of them

    def log(thread):
        for number in range(RECORDS):
            logger.info("t%d %d end", thread, number)

    threads = [threading.Thread(target=log, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logging.shutdown()
    os._exit(0)
for _ in children:
    os.read(there_read, 1)
os.close(begin_write)
ended = [os.waitpid(child, 0)[1] for child in children]
print(ended)
"""


def test_processes_that_fill_their_tmpfs_lose_no_record_and_none_dies(run_program, tmp_path):
    with mounts.small(tmp_path / "shm", "2m") as shm:
        queue_dir = shm / "queue"
        queue_dir.mkdir(0o700)
        outcome, folder = run_program(MANY_PROCESSES, side="stock", LOGSPOOL_QUEUE_DIR=str(queue_dir))

    assert outcome.expect_success().out.decode().split() == str([0] * 24).split()
    for process in range(24):
        count = lines.count(folder / f"{process}.log")
        assert count.other == [b"first"]
        assert [count.missing(f"t{thread}", range(500)) for thread in range(4)] == [[]] * 4
        assert count.doubled() == count.out_of_order() == {}


#: After the tmpfs is full, every table of the queue grows beyond its first page.
GROWS_WHILE_FULL = """\
import logging, os, threading
import logspool

logspool.install(blocking_levels={logging.INFO}, blocking_timeout=float("inf"), queue_total_bytes=1 << 20)
queue_dir = os.environ["LOGSPOOL_QUEUE_DIR"]

def logger_to(file, name):
    logger = logging.Logger(name)
    logger.addHandler(file)
    return logger

first = logging.FileHandler("sites.log")
logger = logger_to(first, "first")
logger.info("before")
with open(queue_dir + "/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(b"x" * 4096):
            pass
    except OSError:
        pass

lines = "\\n".join(f"    logger.info('s {line} end')" for line in range(1500))
scope = {"logger": logger}
exec("def many_sites():\\n" + lines, scope)
scope["many_sites"]()

for number in range(1200):
    logger_to(first, f"logger {number}").info("l %d end", number)

files = [logging.FileHandler(f"file{number}.log") for number in range(20)]
for number, file in enumerate(files):
    logger_to(file, "files").info("f %d end", number)

def log(thread):
    for number in range(200):
        logger.info("t%d %d end", thread, number)
    together.wait()

together = threading.Barrier(12)
threads = [threading.Thread(target=log, args=(thread,)) for thread in range(together.parties)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(logspool.stats().queue.lanes)
logging.shutdown()
"""


def test_tables_that_grow_while_the_tmpfs_is_full_lose_no_record(run_program, tmp_path):
    with mounts.small(tmp_path / "shm", "1100k") as shm:
        outcome, folder = run_program(GROWS_WHILE_FULL, side="stock", LOGSPOOL_QUEUE_DIR=str(shm))
        lanes = int(outcome.expect_success().out)

    count = lines.count(folder / "sites.log")
    wanted = {"s": 1500, "l": 1200} | {f"t{thread}": 200 for thread in range(12)}
    assert {who: count.missing(who, range(number)) for who, number in wanted.items()} == {who: [] for who in wanted}
    assert count.other == [b"before"]
    assert count.doubled() == count.out_of_order() == {}
    assert [(folder / f"file{n}.log").read_bytes() for n in range(20)] == [b"f %d end\n" % n for n in range(20)]
    assert lanes == 8, "seven that threads share, and that of the first thread"
