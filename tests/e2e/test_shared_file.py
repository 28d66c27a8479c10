"""Several programs log to one file and are killed: every line whose call returned is in the file once.

`LOGSPOOL_SEED=N` replays; the seed of a run stands in the name of each test.
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
# Ten times what one round takes on a busy machine.
SECONDS = 60

PROGRAM = """\
import json, logging, os, sys
from suite import side

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
for number in range(10**9):
    log.info("%s %d end", what["who"], number)
    os.write(what["witness"], f"{what['who']} {number} end\\n".encode())
"""


class _Program:
    """One that logs until it is killed, and what it said to be accepted."""

    def __init__(self, script, folder, queue_dir, who):
        self._reader, writer = os.pipe()
        self.child = programs.start(
            [script, json.dumps({"who": who, "witness": writer})],
            env=programs.environment(programs.INSTALLED, queue_dir),
            folder=folder,
            pass_fds=[writer],
        )
        os.close(writer)
        self._seen = bytearray()

    def see(self, count):
        """Read until so many lines were accepted."""
        while self._seen.count(b"\n") < count:
            data = os.read(self._reader, 1 << 16)
            assert data, f"the program ended by itself with {self.child.wait()}"
            self._seen += data

    def kill(self):
        """Kill it, and return what was accepted."""
        self.child.kill()
        while data := os.read(self._reader, 1 << 16):
            self._seen += data
        os.close(self._reader)
        until(lambda: self.child.poll() is not None, SECONDS, "the end after SIGKILL")
        # The last witness may be torn: its call had returned, but its number is not known.
        return bytes(self._seen[: self._seen.rfind(b"\n") + 1])


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("number", range(ROUNDS), ids=lambda number: f"seed-{SEED}-round-{number}")
def test_every_witnessed_line_of_several_programs_is_in_their_file_once(number, tmp_path, queue_dir):
    choice = random.Random(f"{SEED}-{number}")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    witness = tmp_path / "witness"

    with witness.open("wb") as file, contextlib.ExitStack() as ends:

        def begin(who):
            started = _Program(script, tmp_path, queue_dir, who)
            ends.enter_context(programs.ended(started.child))
            return started

        running = [begin(f"program{who}") for who in range(PROGRAMS)]
        for started in running:
            started.see(1)
        for _ in range(2):
            choice.choice(running).see(choice.randrange(1, 500))
            file.write(running.pop(choice.randrange(len(running))).kill())
        # Takes over what the killed ones left, while two others go on.
        running.append(begin("late"))
        running[-1].see(choice.randrange(1, 500))
        for started in running:
            file.write(started.kill())
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    witnessed, written = lines.count(witness), lines.count(tmp_path / "app.log")
    missing = {who: lost[:10] for who, seen in witnessed.numbers.items() if (lost := written.missing(who, seen))}
    assert len(witnessed.numbers) == PROGRAMS + 1
    assert missing == {}
    assert written.doubled() == {}
    assert written.out_of_order() == {}
    assert written.other == []
    assert queue_folder.left_in(queue_dir) == []
