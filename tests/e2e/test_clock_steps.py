"""The wall clock is set an hour ahead, then two hours back: no line is lost, all keep their order, syncs continue."""

import struct

import preloaded
import pytest

from suite import lines, queue_folder

pytestmark = pytest.mark.real

#: Lines in each of the three times; a sync for each record takes its time.
LINES_OF = {"memory": 1000, "process": 1000, "interval": 1000, "checkpoint": 150, "sync": 20}
SECONDS = 60
HOUR = 3600

PROGRAM = """\
import logging, logging.handlers, os, struct, sys, time
import logspool

mode, count, wait = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
handlers = [
    logging.FileHandler("app.log"),
    logging.handlers.TimedRotatingFileHandler("stock.log", when="H"),
    logspool.TimedRotatingFileHandler("own.log", when="H", durability=mode),
]
logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers)
timed = logging.FileHandler("times.log")
timed.setFormatter(logging.Formatter("%(created)d"))
logging.getLogger("times").addHandler(timed)
logspool.install(durability=mode, sync_interval=0.05)
log, times = logging.getLogger("app"), logging.getLogger("times")
times.propagate = False

def until(condition, what):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < wait, what
        time.sleep(0.01)

def syncs():
    return sum(sink.syncs for sink in logspool.stats().sinks.values())

def shows_the_time():
    times.info("")
    assert logspool.flush(wait)
    with open("times.log") as file:
        return abs(int(file.read().splitlines()[-1]) - time.time()) < 600

for part, hours in enumerate((0, 1, -1)):
    with open(os.environ["CLOCK_STEP"], "r+b") as file:
        file.write(struct.pack("q", 3600 * hours))
    synced = syncs()
    for number in range(part * count, (part + 1) * count):
        log.info("main %d end", number)
    assert logspool.flush(wait)
    if mode not in ("memory", "process"):
        until(lambda: syncs() > synced, "a sync")
    until(shows_the_time, "the time of a record")
print(int(time.time()))
"""


@pytest.mark.parametrize("mode", LINES_OF)
def test_a_change_of_the_wall_clock_loses_no_line_and_delays_nothing(run_program, queue_dir, tmp_path, mode):
    step = tmp_path / "step"
    step.write_bytes(struct.pack("q", 0))
    count = LINES_OF[mode]
    outcome, folder = run_program(
        PROGRAM,
        mode,
        str(count),
        str(SECONDS / 2),
        deadline_seconds=2 * SECONDS,
        LD_PRELOAD=str(preloaded.build(tmp_path, "clock")),
        CLOCK_STEP=str(step),
    )

    ended = int(outcome.expect_success().out)
    assert outcome.err == b""
    assert lines.count(folder / "app.log").numbers == {"main": list(range(3 * count))}
    for name in ("stock.log", "own.log"):
        backups = sorted(folder.glob(f"{name}.*"))
        found = lines.count(*backups, folder / name)
        assert len(backups) == 1, "an hour has begun once"
        assert found.numbers == {"main": list(range(3 * count))}
        assert found.other == []
    seen = [int(line) for line in (folder / "times.log").read_text().splitlines()]
    assert (round((seen[0] - ended) / HOUR), round((seen[-1] - ended) / HOUR)) == (1, 0)
    assert queue_folder.left_in(queue_dir) == []
