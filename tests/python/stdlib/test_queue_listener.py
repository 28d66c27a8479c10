"""After a wait for a `QueueListener` the lines are in the file, as CPython's `test_config_queue_handler` expects."""

import pytest

pytestmark = pytest.mark.real

PROGRAM = """\
import json, logging, logging.handlers, queue, sys
from suite import side

how, kind = sys.argv[1:3]
if "late" not in sys.argv:
    side.install()
records = {"Queue": queue.Queue, "SimpleQueue": queue.SimpleQueue}[kind]()
handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(message)s"))
listener = logging.handlers.QueueListener(records, handler)
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.QueueHandler(records))
missing = 0
written = 0
if "late" in sys.argv:
    listener.start()
    side.install()
    log.info("first")
    records.join()
    written += 1
else:
    listener.start()
for burst in (1, 2, 3, 50, 1, 400):
    for number in range(burst):
        log.info("%d", number)
    written += burst
    if how == "join":
        records.join()
    else:
        listener.stop()
    with open("app.log") as file:
        missing += written - len(file.readlines())
    if how == "stop":
        listener.start()
listener.stop()
print(json.dumps([missing, sum(1 for _ in open("app.log")) - written]))
"""


@pytest.mark.parametrize(
    ("how", "kind", "late"),
    [("join", "Queue", ""), ("stop", "Queue", ""), ("stop", "SimpleQueue", ""), ("join", "Queue", "late")],
)
def test_lines_are_in_the_file_when_the_queue_is_done(run_program, how, kind, late):
    outcome, _ = run_program(PROGRAM, how, kind, late)

    assert outcome.expect_success().out == b"[0, 0]\n"
