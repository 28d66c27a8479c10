"""Lines of one thread stay in order in a file, on a pipe and on a console, whichever handlers write there."""

import itertools
import json

import pytest

from suite import programs

pytestmark = pytest.mark.real

# Each kind of handler, and the name with which it opens the file.
KINDS = {
    "file": "app.log",
    "stream": "app.log",
    "watched": "app.log",
    "rotating": "app.log",
    "timed": "app.log",
    "file, hard link": "hard.log",
    "rotating, symbolic link": "symbolic.log",
}
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))
LINES = 400

PRELUDE = """\
import json, logging, logging.handlers, os, sys
from suite import side
logging.raiseExceptions = False

def make(kind, path, max_bytes=0):
    form = kind.partition(",")[0]
    if form == "file":
        handler = logging.FileHandler(path)
    elif form == "stream":
        handler = logging.StreamHandler(open(path, "a"))
    elif form == "watched":
        handler = logging.handlers.WatchedFileHandler(path)
    elif form == "rotating":
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=max_bytes, backupCount=50)
    else:
        handler = logging.handlers.TimedRotatingFileHandler(path, when="D")
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler

def pair(number, kinds, max_bytes=0):
    folder = f"pair-{number}"
    os.mkdir(folder)
    open(f"{folder}/app.log", "w").close()
    os.link(f"{folder}/app.log", f"{folder}/hard.log")
    os.symlink("app.log", f"{folder}/symbolic.log")
    logs = []
    for index, kind in enumerate(kinds):
        log = logging.getLogger(f"{folder}-{index}")
        log.propagate = False
        log.setLevel(logging.INFO)
        log.addHandler(make(kind, f"{folder}/{NAMES[kind]}", max_bytes))
        logs.append(log)
    return folder, logs

NAMES, LINES = json.loads(sys.argv[1]), int(sys.argv[2])
side.install()
"""

ALTERNATELY = (
    PRELUDE
    + """
for number, kinds in enumerate(json.loads(sys.argv[3])):
    _, logs = pair(number, kinds)
    for line in range(LINES):
        logs[line % 2].info("%d", line)
logging.shutdown()
"""
)


@pytest.fixture(scope="module")
def lines_of(tmp_path_factory):
    """Run all pairs in one program, and return the lines of each pair's file."""
    from suite import queue_folder

    folder = tmp_path_factory.mktemp("pairs")
    program = folder / "program.py"
    program.write_text(ALTERNATELY)
    with queue_folder.private() as queue_dir:
        outcome = programs.run(
            [program, json.dumps(KINDS), str(LINES), json.dumps(PAIRS)],
            env=programs.environment("installed", queue_dir),
            folder=folder,
            deadline_seconds=120,
        )
    outcome.expect_success()
    return {pair: (folder / f"pair-{number}" / "app.log").read_text().splitlines() for number, pair in enumerate(PAIRS)}


@pytest.mark.parametrize("pair", PAIRS, ids=" + ".join)
def test_two_handlers_of_one_file_keep_the_order_of_the_calls(lines_of, pair):
    assert lines_of[pair] == [str(number) for number in range(LINES)]


ROTATING = (
    PRELUDE
    + """
found = {}
for number, kinds in enumerate(json.loads(sys.argv[3])):
    folder, logs = pair(number, kinds, max_bytes=300)
    for line in range(LINES):
        logs[line % 3 % 2].info("line %d", line)
    for log in logs:
        log.handlers[0].close()
    found[" + ".join(kinds)] = {name: open(f"{folder}/{name}").read() for name in sorted(os.listdir(folder))}
print(json.dumps(found))
"""
)


def test_two_handlers_rotate_one_file_as_with_stock_logging(run_program):
    pairs = [pair for pair in PAIRS if any("rotating" in kind for kind in pair)]
    files = {}
    for side in programs.SIDES:
        outcome, _ = run_program(ROTATING, json.dumps(KINDS), "100", json.dumps(pairs), side=side)
        files[side] = json.loads(outcome.expect_success().out)

    # A `WatchedFileHandler` notices a rotation when it writes, after the call.
    for pair in pairs:
        name = " + ".join(pair)
        if "watched" not in pair:
            assert files["installed"][name] == files["stock"][name], name


COMING = (
    PRELUDE
    + """
folder, logs = pair(0, ["rotating", "file"])
for line in range(LINES):
    # Each time another handler of the file comes and goes.
    other = make(["file", "rotating", "timed"][line % 3], f"{folder}/app.log")
    logs[1].handlers[0].close()
    logs[1].handlers[:] = [other]
    logs[0].info("%d", 2 * line)
    logs[1].info("%d", 2 * line + 1)
logging.shutdown()
descriptors = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if name.isdigit()
               if os.path.exists(f"/proc/self/fd/{name}")]
print(json.dumps(sum(path.endswith("app.log") for path in descriptors)))
"""
)


def test_handlers_of_a_file_come_and_go(run_program):
    outcome, folder = run_program(COMING, json.dumps(KINDS), "300", deadline_seconds=120)
    outcome.expect_success()

    assert (folder / "pair-0" / "app.log").read_text().splitlines() == [str(number) for number in range(600)]
    assert json.loads(outcome.out) == 0


CONSOLE = """\
import logging, os, sys
from suite import side

class Printer(logging.Handler):
    def emit(self, record):
        print("printed", record.getMessage(), file=sys.stderr)

class ToDescriptor(logging.Handler):
    def emit(self, record):
        os.write(2, f"printed {record.getMessage()}\\n".encode())

kinds, rest = sys.argv[1], sys.argv[2:]
made = {"stdout": lambda: logging.StreamHandler(sys.stdout), "stderr": lambda: logging.StreamHandler(sys.stderr),
        "print": Printer, "descriptor": ToDescriptor}
if "rich" in kinds:
    from rich.logging import RichHandler
    from rich.console import Console
    made["rich"] = lambda: RichHandler(console=Console(stderr=True), show_time=False, show_path=False, show_level=False)
log = logging.getLogger("app")
log.propagate = False
log.setLevel(logging.INFO)
for index, kind in enumerate(kinds.split("+")):
    handler = made[kind]()
    handler.setFormatter(logging.Formatter(f"{kind} %(message)s" if kind == "rich" else f"{index} %(message)s"))
    log.addHandler(handler)
    if rest:
        handler.addFilter(lambda record, index=index: record.args[0] % 2 == index)
os.dup2(1, 2)
side.install()
for number in range(200):
    log.info("%d", number)
"""


@pytest.mark.parametrize("every", ["all records", "alternately"])
@pytest.mark.parametrize(
    "kinds", ["stdout+stderr", "stderr+print", "print+stderr", "stdout+descriptor", "descriptor+stdout", "stderr+rich"]
)
def test_lines_of_handlers_on_one_pipe_keep_the_order_of_the_calls(run_program, kinds, every):
    if "rich" in kinds:
        pytest.importorskip("rich")
    arguments = [] if every == "all records" else ["alternately"]
    out = {}
    for side in programs.SIDES:
        outcome, _ = run_program(CONSOLE, kinds, *arguments, side=side, PYTHONUNBUFFERED="")
        out[side] = outcome.expect_success().out

    assert out["installed"] == out["stock"]


KILLED = (
    PRELUDE
    + """
import signal
folder, logs = pair(0, json.loads(sys.argv[3]))
for line in range(LINES):
    logs[line % 2].info("%d", line)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


@pytest.mark.parametrize("kinds", [("file", "rotating"), ("rotating", "timed"), ("file", "stream")], ids=" + ".join)
@pytest.mark.parametrize("count", [10, 700, 3000])
def test_a_kill_leaves_each_line_once_and_in_order(run_program, kinds, count):
    killed, folder = run_program(KILLED, json.dumps(KINDS), str(count), json.dumps(kinds))
    assert killed.status == -9
    recovered, _ = run_program("import logspool; print(logspool.recover())")
    recovered.expect_success()

    assert (folder / "pair-0" / "app.log").read_text().splitlines() == [str(number) for number in range(count)]
