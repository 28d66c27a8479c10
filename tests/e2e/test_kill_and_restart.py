"""SIGKILL at a random moment, then a start of the same program: every line whose call returned is in the file once.

`LOGSPOOL_SEED=N` replays; the name of each test has the seed of the run.
"""

import contextlib
import json
import os
import random

import pytest

from suite import fixtures, lines, programs, queue_folder, witness
from suite.waiting import until

KILLS = 100 if fixtures.faults_full() else 20
# All workers of one run of pytest-xdist must name the tests alike: their seed comes from the run's own id.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or random.SystemRandom().random()
SEED = int(os.environ.get("LOGSPOOL_SEED", random.Random(_RUN).randrange(10**6)))
# Ten times the duration of one run of the program on a busy machine.
SECONDS = 30

PROGRAM = """\
import json, logging, logging.handlers, os, sys, threading
from suite import side

what = json.loads(sys.argv[1])
logging.basicConfig(
    level=logging.DEBUG,
    handlers=[
        logging.FileHandler("app.log"),
        *([logging.FileHandler("second.log")] if what["handlers"] > 1 else []),
    ],
    format="%(message)s",
)
side.install()
log = logging.getLogger("app")

def run(who, witness):
    for number in range(10**9):
        log.log((10, 20, 30, 40)[number % 4], "%s %d end", who, number)
        if witness is not None:
            os.write(witness, f"{who} {number} end\\n".encode())
        if number == what["count"]:
            break

names = [f"life{what['life']}-{each}" for each in range(what["threads"])]
threads = [threading.Thread(target=run, args=(who, what["witness"])) for who in names[1:]]
for thread in threads:
    thread.start()
run(names[0], what["witness"])
for thread in threads:
    thread.join()
side.settle()
"""


def _kill_one_life(script, folder, queue_dir, choice, life, package=None):
    """Start the program, kill it after some witnessed lines, and return the witness's bytes."""
    after = choice.choice([1, 10, 100, choice.randrange(1, 3000), choice.randrange(1, 3000)])
    reader, writer = os.pipe()
    what = {
        "life": life,
        "threads": choice.choice([1, 1, 3]),
        "handlers": choice.choice([1, 1, 2]),
        "witness": writer,
        "count": 10**8,
    }
    child = programs.start(
        [script, json.dumps(what)],
        env=programs.environment(programs.INSTALLED, queue_dir, package),
        folder=folder,
        pass_fds=[writer],
    )
    with programs.ended(child):
        seen = witness.of(child, reader, writer, after, child.kill)
        until(lambda: child.poll() is not None, SECONDS, "the end after SIGKILL")
    return seen, what


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("number", range(KILLS), ids=lambda number: f"seed-{SEED}-kill-{number}")
def test_every_witnessed_line_is_in_the_file_after_the_next_start(number, tmp_path, queue_dir):
    choice = random.Random(f"{SEED}-{number}")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    told = tmp_path / "witness"

    lives = choice.choice([1, 1, 1, 2])
    handlers = 1
    with told.open("wb") as file:
        for life in range(lives):
            seen, what = _kill_one_life(script, tmp_path, queue_dir, choice, life)
            handlers = max(handlers, what["handlers"])
            file.write(seen)
    last = {"life": "last", "threads": 1, "handlers": handlers, "witness": None, "count": 9}
    programs.run(
        [script, json.dumps(last)],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        deadline_seconds=SECONDS,
    ).expect_success()

    witnessed = lines.count(told)
    written = lines.count(tmp_path / "app.log")
    assert witnessed.numbers
    written.expect_each_once(witnessed.numbers)
    assert written.numbers["lifelast-0"] == list(range(10))
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.real
def test_records_without_a_matching_handler_at_the_next_start_are_kept_and_listed_by_doctor(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    (tmp_path / "other").mkdir()

    # A target that takes no data, so that records are queued when the kill comes.
    os.mkfifo(tmp_path / "app.log")
    holder = os.open(tmp_path / "app.log", os.O_RDWR | os.O_NONBLOCK)
    try:
        # Full from the start: otherwise a program that is killed early could have written all its records.
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(holder, bytes(4096))
        seen, _ = _kill_one_life(script, tmp_path, queue_dir, random.Random(f"{SEED}-fifo"), 0)
    finally:
        os.close(holder)
    left = queue_folder.left_in(queue_dir)
    last = {"life": "last", "threads": 1, "handlers": 1, "witness": None, "count": 9}
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(
        [script, json.dumps(last)], env=env, folder=tmp_path / "other", deadline_seconds=SECONDS
    ).expect_success()
    doctor = programs.run(["-m", "logspool", "doctor"], env=env, folder=tmp_path, deadline_seconds=SECONDS)

    assert seen
    assert left != []
    assert queue_folder.left_in(queue_dir) != []
    assert str(tmp_path / "app.log") in doctor.out.decode()
