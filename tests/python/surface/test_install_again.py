"""`install()` after `uninstall()` with other options: they take effect, or an error says why they cannot."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

PROGRAM = """\
import logging, os, sys
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
other = os.environ["LOGSPOOL_QUEUE_DIR"] + "/other"  # on a tmpfs, as a queue must be
os.mkdir(other, 0o700)
logspool.install(queue_dir=other) if sys.argv[1] == "before" else logspool.install()
if sys.argv[1] == "logged":
    logging.info("first")
logspool.uninstall()
try:
    logspool.install(queue_dir=other)
except RuntimeError as error:
    print("RuntimeError", error)
logging.info("second")
print(sorted(os.listdir(other)) != [], logspool.stats().installed)
logspool.uninstall()
logspool.install(shutdown_timeout=1.0, blocking_timeout=0.0, fallback=None)
logging.info("third")
"""


def test_a_queue_in_use_stays_where_it_is_and_install_says_so(run_program):
    outcome, folder = run_program(PROGRAM, "logged", side="stock")

    refused, where, *_ = outcome.expect_success().out.decode().splitlines()
    assert refused.startswith("RuntimeError queue_dir cannot change any more")
    assert where == "False False"
    assert (folder / "app.log").read_text().split() == ["first", "second", "third"]


def test_before_the_first_record_every_option_can_change(run_program):
    program = PROGRAM.replace("logspool.install(shutdown", "logspool.install(queue_dir=other, shutdown")
    outcome, folder = run_program(program, "silent", side="stock")

    assert outcome.expect_success().out.decode().splitlines() == ["True True"]
    assert (folder / "app.log").read_text().split() == ["second", "third"]
