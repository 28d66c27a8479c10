"""Several programs log to one file and are killed: every line whose call returned is in the file once.

`LOGSPOOL_SEED=N` replays; the name of each test has the seed of the run.
"""

import contextlib
import json
import os
import random

import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

ROUNDS = 50 if fixtures.faults_full() else 5
PROGRAMS = 4
# All workers of one run of pytest-xdist must name the tests alike: their seed comes from the run's own id.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or random.SystemRandom().random()
SEED = int(os.environ.get("LOGSPOOL_SEED", random.Random(_RUN).randrange(10**6)))
# Ten times the duration of one round on a busy machine.
SECONDS = 60

PROGRAM = """\
import json, logging, os, sys
from suite import side

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability=what["durability"])
log = logging.getLogger("app")
for number in range(10**9):
    log.info("%s %d end", what["who"], number)
    os.write(what["witness"], f"{what['who']} {number} end\\n".encode())
"""


class _Program:
    """A program that logs until it is killed, and the records that it reported as accepted."""

    def __init__(self, script, folder, queue_dir, who, durability):
        self._reader, writer = os.pipe()
        self.child = programs.start(
            [script, json.dumps({"who": who, "witness": writer, "durability": durability})],
            env=programs.environment(programs.INSTALLED, queue_dir),
            folder=folder,
            pass_fds=[writer],
        )
        os.close(writer)
        self._seen = bytearray()

    def see(self, count):
        """Read until `count` lines were accepted."""
        while self._seen.count(b"\n") < count:
            data = os.read(self._reader, 1 << 16)
            assert data, f"the program ended by itself with {self.child.wait()}"
            self._seen += data

    def kill(self):
        """Kill it, and return the accepted lines."""
        self.child.kill()
        while data := os.read(self._reader, 1 << 16):
            self._seen += data
        os.close(self._reader)
        until(lambda: self.child.poll() is not None, SECONDS, "the end after SIGKILL")
        # The last witness may be torn: its call had returned, but its number is not known.
        return bytes(self._seen[: self._seen.rfind(b"\n") + 1])


def _rounds():
    """Return the parameters of each round: most rounds have the default durability."""
    rounds = [("process", number) for number in range(ROUNDS)]
    rounds += [(other, number) for other in ("interval", "checkpoint", "sync") for number in range(1 + ROUNDS // 10)]
    return [pytest.param(*each, id=f"{each[0]}-seed-{SEED}-round-{each[1]}") for each in rounds]


def _run(number, folder, queue_dir, durability):
    """Let several programs log to one file, kill them, deliver the rest. Return the witnessed and the written lines."""
    choice = random.Random(f"{SEED}-{number}")
    # With a sync for each record it takes far longer.
    most = 20 if durability == "sync" else 500
    script = folder / "program.py"
    script.write_text(PROGRAM)
    witness = folder / "witness"

    with witness.open("wb") as file, contextlib.ExitStack() as ends:

        def begin(who):
            started = _Program(script, folder, queue_dir, who, durability)
            ends.enter_context(programs.ended(started.child))
            return started

        running = [begin(f"program{who}") for who in range(PROGRAMS)]
        for started in running:
            started.see(1)
        for _ in range(2):
            choice.choice(running).see(choice.randrange(1, most))
            file.write(running.pop(choice.randrange(len(running))).kill())
        # Takes over the records of the killed programs, while two others continue.
        running.append(begin("late"))
        running[-1].see(choice.randrange(1, most))
        for started in running:
            file.write(started.kill())
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=folder, deadline_seconds=SECONDS).expect_success()
    return lines.count(witness), lines.count(folder / "app.log")


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize(("durability", "number"), _rounds())
def test_every_witnessed_line_of_several_programs_is_in_their_file_once(tmp_path, queue_dir, durability, number):
    witnessed, written = _run(number, tmp_path, queue_dir, durability)

    missing = {who: lost[:10] for who, seen in witnessed.numbers.items() if (lost := written.missing(who, seen))}
    assert len(witnessed.numbers) == PROGRAMS + 1
    assert missing == {}
    assert written.doubled() == {}
    assert written.out_of_order() == {}
    assert written.other == []
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.xdist_group("kills")
def test_without_shared_memory_each_kill_loses_the_newest_lines_and_tears_at_most_one(tmp_path, queue_dir):
    witnessed, written = _run(0, tmp_path, queue_dir, "memory")

    holes = {
        who: lost for who, there in written.numbers.items() if (lost := written.missing(who, range(there[-1] + 1)))
    }
    assert len(witnessed.numbers) == PROGRAMS + 1
    # A torn line also spoils the line of another program that follows it without a line end.
    assert sum(map(len, holes.values())) <= len(written.other) <= PROGRAMS + 1
    assert written.doubled() == {}
    assert written.out_of_order() == {}
    assert queue_folder.left_in(queue_dir) == []
