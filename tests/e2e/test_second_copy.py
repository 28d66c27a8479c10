"""Two copies of logspool in one process: the second one refuses, and the first one loses nothing."""

import json
import shutil
import signal
from pathlib import Path

import pytest

import logspool
from suite import lines, programs

pytestmark = pytest.mark.real

COUNT = 1_001
SECONDS = 60

PROGRAM = """\
import json, logging, os, signal, sys
import logspool
from logspool import _native

def make_handler():
    handler = logging.FileHandler("a.log")
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler

log = logging.getLogger("app")
log.setLevel(logging.INFO)
if sys.argv[2] != "unused":
    logspool.install(durability=sys.argv[2])
    log.addHandler(make_handler())
    log.info("main %d end", 0)

for name in [name for name in sys.modules if name.partition(".")[0] == "logspool"]:
    del sys.modules[name]
sys.path.insert(0, sys.argv[1])
import logspool as second
from logspool import _native as second_native

def log_through_second():
    log = logging.getLogger("second")
    log.addHandler(second.FileHandler("b.log"))
    log.warning("second")

told = {"files": [_native.__file__, second_native.__file__]}
for name, call in {
    "install": second.install,
    "handler": log_through_second,
    "recover": second.recover,
}.items():
    try:
        call()
        told[name] = None
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"
with open("told.json", "w") as file:
    json.dump(told, file)
if sys.argv[2] == "unused":
    log.addHandler(make_handler())
    log.info("main %d end", 0)
other = logging.getLogger("other")
other.addHandler(log.handlers[0])
other.setLevel(logging.INFO)
for number in range(1, int(sys.argv[3])):
    (other if number % 2 else log).info("main %d end", number)
if sys.argv[2] == "memory":
    sys.exit()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def run(tmp_path, queue_dir):
    """Give a function that runs the program with a second copy beside it, and returns the program's report."""
    shutil.copytree(Path(logspool.__file__).parent, tmp_path / "copy" / "logspool")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = programs.environment(programs.INSTALLED, queue_dir)

    def run(durability):
        arguments = [script, tmp_path / "copy", durability, str(COUNT)]
        outcome = programs.run(arguments, env=env, folder=tmp_path, deadline_seconds=SECONDS)
        assert outcome.status == (0 if durability == "memory" else -signal.SIGKILL), outcome.err.decode()
        text = "import logspool\nlogspool.recover()\n"
        programs.run(["-c", text], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()
        found = lines.count(tmp_path / "a.log")
        assert found.missing("main", range(COUNT)) == []
        assert found.doubled() == {}
        return json.loads((tmp_path / "told.json").read_text())

    return run


@pytest.mark.parametrize("durability", ["process", "memory"])
def test_a_second_copy_refuses_and_the_first_copy_loses_nothing(run, durability):
    told = run(durability)

    first, second = told["files"]
    assert first != second
    for name, kind in {"install": "RuntimeError", "handler": "RuntimeError", "recover": "OSError"}.items():
        assert told[name].startswith(f"{kind}: logspool is in this process twice: {second} "), told[name]
        assert f"that of {first} (fix: load one copy" in told[name]


def test_a_loaded_but_unused_copy_does_no_harm(run):
    told = run("unused")

    assert told["install"] is None
