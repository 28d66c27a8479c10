"""The first process of a container: signals without a handler do not end it, so they must not stop its logging."""

import json

import container
import pytest

from suite import lines, programs, queue_folder

pytestmark = pytest.mark.real

RECORDS = 200
SECONDS = 60

PROGRAM = """\
import json, logging, os, signal, sys, time
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
log = logging.getLogger("app")
log.info("main 0 end")
logspool.flush(30)
longest = 0.0
for number in range(1, int(sys.argv[1])):
    if number in (50, 100):
        os.kill(os.getpid(), signal.SIGTERM if number == 50 else signal.SIGHUP)
    began = time.monotonic()
    log.info("main %d end", number)
    longest = max(longest, time.monotonic() - began)
segments = [name for name in os.listdir(os.environ["LOGSPOOL_QUEUE_DIR"]) if name.endswith(".seg")]
child = os.fork()
if not child:
    for number in range(int(sys.argv[1])):
        log.info("child %d end", number)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
    os._exit(1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
with open("report", "w") as report:
    json.dump({"pid": os.getpid(), "longest": longest, "segments": len(segments), "child": status}, report)
"""


def test_ignored_signals_do_not_stop_the_logging_of_the_first_process_of_a_container(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = programs.environment(programs.INSTALLED, queue_dir)
    done = container.as_first(
        [script, str(RECORDS)], folder=tmp_path, env=env, capture_output=True, timeout=SECONDS, check=False
    )

    assert done.returncode == 0, done.stderr.decode()
    report = json.loads((tmp_path / "report").read_text())
    found = lines.count(tmp_path / "app.log")
    assert report["pid"] == 1
    assert report["longest"] < 1
    assert report["segments"] == 1
    # A child of it ends by them as any other program, with its file complete.
    assert report["child"] == -15
    assert found.numbers == {"main": list(range(RECORDS)), "child": list(range(RECORDS))}
    assert queue_folder.left_in(queue_dir) == []
