"""Daemon threads log while the interpreter ends, and finalizers log: every program ends, with stock's lines.

CPython stops a daemon thread wherever it is. A thread that was stopped inside a handler kept the handler's lock, and
the finalizer waited for it forever; with stock logging, two to six of ten such programs hang.
"""

import collections
import itertools
import re
import subprocess
import sys
import time

import pytest

from suite import fixtures, lines, programs, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

KINDS = ("stream", "append", "truncate", "rotating", "own", "subclass")
THREADS = (1, 8)
FINALIZERS = {"cycle": "a finalizer logs", "task": "was destroyed but it is pending", "socket": "unclosed <socket"}
RUNS = 504 if fixtures.faults_full() else 36
AT_ONCE = 4
# A hundred times the duration of one program on a busy machine of two cores.
DEADLINE_SECONDS = 120

PROGRAM = """\
import asyncio, gc, logging, logging.handlers, socket, sys, threading, time, warnings
from suite import side

kind, threads, finalizer = sys.argv[1], int(sys.argv[2]), sys.argv[3]

class Own(logging.Handler):
    def __init__(self, path):
        super().__init__()
        self.file = open(path, "a")

    def emit(self, record):
        self.file.write(self.format(record) + "\\n")
        self.file.flush()

class Subclass(logging.FileHandler):
    def emit(self, record):
        super().emit(record)

handler = {
    "stream": lambda: logging.StreamHandler(open("app.log", "a")),
    "append": lambda: logging.FileHandler("app.log"),
    "truncate": lambda: logging.FileHandler("app.log", mode="w"),
    "rotating": lambda: logging.handlers.RotatingFileHandler("app.log", maxBytes=200_000, backupCount=500),
    "own": lambda: Own("app.log"),
    "subclass": lambda: Subclass("app.log"),
}[kind]()
log = logging.getLogger("app")
for name in ("app", "asyncio", "py.warnings"):
    logging.getLogger(name).addHandler(handler)
log.setLevel(logging.INFO)
side.install()

begun = threading.Barrier(threads + 1)

def work(thread):
    begun.wait()
    for number in range(sys.maxsize):
        log.info("line %d %d end", thread, number)

class Finalized:
    def __del__(self, log=log):
        log.error("a finalizer logs")

async def never():
    await asyncio.get_running_loop().create_future()

async def begin():
    task = asyncio.ensure_future(never())
    await asyncio.sleep(0)
    return task

# Only the collection at the end of the interpreter frees the cycle.
gc.set_threshold(0)
class Cycle:
    pass
cycle = Cycle()
cycle.itself = cycle
if finalizer == "cycle":
    cycle.part = Finalized()
elif finalizer == "task":
    cycle.part = asyncio.new_event_loop().run_until_complete(begin())
else:
    warnings.simplefilter("always")
    logging.captureWarnings(True)
    cycle.part = socket.socket()
del cycle
for thread in range(threads):
    threading.Thread(target=work, args=(thread,), daemon=True).start()
begun.wait()
time.sleep(0.02)
"""


def _begin(folder, queue_dir, case):
    folder.mkdir()
    variables = programs.environment(programs.INSTALLED, queue_dir)
    with (folder / "stderr").open("wb") as stderr:
        command = [sys.executable, "-c", PROGRAM, *map(str, case)]
        return subprocess.Popen(command, cwd=folder, env=variables, stdout=stderr, stderr=stderr)


def _status(program):
    try:
        return program.wait(DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
        return "hung"


def _rises(numbers):
    return all(number < following for number, following in itertools.pairwise(numbers))


def _faults(folder, case):
    kind, _, finalizer = case
    files = sorted(folder.glob("app.log*"), key=lambda file: int(file.suffix[1:]) if file.suffix != ".log" else 0)
    written = [line for file in reversed(files) for line in file.read_text().splitlines(keepends=True)]
    numbers = collections.defaultdict(list)
    for line in written:
        if line.startswith("line "):
            found = re.fullmatch(r"line (\d) (\d+) end\n", line)
            if found is None:
                return [f"half a line: {line!r}"]
            numbers[found[1]].append(int(found[2]))
    faults = [f"thread {each} has lines twice or out of order" for each in numbers if not _rises(numbers[each])]
    # On a starved machine a call may find its queue full. Then it is refused and told of. The last ones of a thread
    # leave no gap.
    errors = (folder / "stderr").read_bytes()
    told = lines.refusals_told([line.rstrip("\n").encode() for line in written], errors)
    missing = {each: max(found) + 1 - len(set(found)) for each, found in numbers.items()}
    if sum(missing.values()) > told:
        faults.append(f"lines are missing, and {told} of them were told: {missing}")
    # Stock logging opens a closed file again, unless it would truncate the file.
    expected = kind != "truncate"
    if expected != any(FINALIZERS[finalizer] in line for line in written):
        faults.append("the finalizer's line is missing" if expected else "the closed handler wrote a line")
    return faults + ([errors.decode()] if errors and not told else [])


def test_the_program_ends_with_the_line_of_its_finalizer(tmp_path, queue_dir, record_property):
    cases = itertools.islice(itertools.cycle(itertools.product(KINDS, THREADS, FINALIZERS)), RUNS)
    faults, begun = [], time.monotonic()
    for first, batch in enumerate(iter(lambda: list(itertools.islice(cases, AT_ONCE)), [])):
        running = [
            (case, tmp_path / f"{first}-{number}", _begin(tmp_path / f"{first}-{number}", queue_dir, case))
            for number, case in enumerate(batch)
        ]
        for case, folder, program in running:
            status = _status(program)
            found = [status] if status != 0 else []
            found += _faults(folder, case) if status == 0 else [(folder / "stderr").read_text()[-2000:]]
            faults += [(case, *found)] if found else []
    record_property("summary", f"{RUNS} programs in {time.monotonic() - begun:.0f} s")

    assert faults == []
    assert queue_folder.left_in(queue_dir) == []
