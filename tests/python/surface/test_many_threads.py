"""More threads live at one time than the queue has lanes."""

import collections

import pytest

from suite import programs, queue_folder

pytestmark = pytest.mark.real

THREADS, LINES = 1_000, 200

PROGRAM = """\
import logging, sys, threading
from suite import side

threads, lines = int(sys.argv[1]), int(sys.argv[2])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
threading.stack_size(128 * 1024)
begun, ended = threading.Barrier(threads), threading.Barrier(threads)

def work(thread):
    begun.wait()
    for number in range(lines):
        logging.info("%d %d", thread, number)
    ended.wait()

running = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
"""


def test_a_burst_of_a_thousand_live_threads_loses_no_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with queue_folder.private() as queue_dir:
        outcome = programs.run(
            [program, str(THREADS), str(LINES)],
            env=programs.environment("installed", queue_dir),
            folder=tmp_path,
            deadline_seconds=120,
        )
    outcome.expect_success()
    of_thread = collections.defaultdict(list)
    for line in (tmp_path / "app.log").read_text().splitlines():
        thread, number = map(int, line.split())
        of_thread[thread].append(number)

    assert {thread: list(range(LINES)) for thread in range(THREADS)} == of_thread
