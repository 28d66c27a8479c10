"""Sub-interpreters: logspool says that it does not work there, and logging does, there and in the main one."""

import sys

import pytest

from suite import lines, queue_folder

pytestmark = [
    pytest.mark.real,
    pytest.mark.every_interpreter,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="many modules of the library cannot be loaded in them"),
]

PROGRAM = """\
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

first, kind, use = sys.argv[1:]
INNER = '''
import logging
logging.basicConfig(filename="sub.log", level=logging.INFO, format="%(message)s")
before = [dict(vars(each)) for each in (logging.Logger, logging.Handler, logging.FileHandler)]
try:
    import logspool
    USE
except ImportError:
    logging.info("refused 0 end")
assert before == [dict(vars(each)) for each in (logging.Logger, logging.Handler, logging.FileHandler)]
for number in range(100):
    logging.info("sub %d end", number)
logging.shutdown()
'''

def log(part):
    import logging, logspool
    logging.basicConfig(filename="main.log", level=logging.INFO, format="%(message)s")
    logspool.install()
    for number in range(part * 100, part * 100 + 100):
        logging.info("main %d end", number)

if first == "main":
    log(0)
if kind == "default":
    inner = interpreters.create()
elif sys.version_info >= (3, 13):
    inner = interpreters.create("legacy")
else:
    inner = interpreters.create(isolated=False)
error = interpreters.run_string(inner, INNER.replace("USE", use))
assert error is None, error
interpreters.destroy(inner)
log(1)
"""


@pytest.mark.parametrize("use", ["logspool.install()", "logspool.FileHandler('own.log')"])
@pytest.mark.parametrize("kind", ["default", "legacy"])
@pytest.mark.parametrize("first", ["main", "sub"])
def test_a_subinterpreter_is_warned_and_logs_as_with_stock_logging(run_program, queue_dir, first, kind, use):
    outcome, folder = run_program(PROGRAM, first, kind, use)

    outcome.expect_success()
    assert lines.count(folder / "sub.log").numbers == {"refused": [0], "sub": list(range(100))}
    assert lines.count(folder / "main.log").numbers == {"main": list(range(0 if first == "main" else 100, 200))}
    assert queue_folder.left_in(queue_dir) == []
