"""An exception that ends a program (KeyboardInterrupt, SystemExit) leaves the logging call in which it is raised.

A signal handler raises wherever Python code runs next, also in functions that logspool calls for a record.
"""

import pytest

from suite import programs

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

PATCHED = """\
import asyncio, logging, multiprocessing, sys
from suite import side

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(processName)s %(message)s")
if sys.version_info >= (3, 12):
    logging.getLogger().handlers[0].setFormatter(logging.Formatter("%(processName)s %(taskName)s %(message)s"))
side.install()
log = logging.getLogger("app")
log.info("before")

def outcome(module, name, error):
    def stand_in(*arguments):
        raise error

    original = getattr(module, name)
    setattr(module, name, stand_in)
    try:
        log.info("%r", error)
    except BaseException as raised:
        return raised
    finally:
        setattr(module, name, original)

async def in_task():
    return outcome(asyncio, "current_task", SystemExit(3))

for error in KeyboardInterrupt(), SystemExit(3), ValueError():
    print(repr(outcome(multiprocessing, "current_process", error)))
print(repr(asyncio.run(in_task())))
log.info("after")
"""


def test_an_interrupt_while_a_call_reads_its_context_leaves_the_call(run_program):
    (stock, stock_folder), (installed, folder) = (run_program(PATCHED, side=side) for side in programs.SIDES)

    assert installed.expect_success().out == stock.expect_success().out
    assert installed.out.startswith(b"KeyboardInterrupt()\nSystemExit(3)\nNone\n")
    assert (folder / "app.log").read_text() == (stock_folder / "app.log").read_text()


FULL_PIPE = """\
import logging, os, signal, sys, threading, time
import logspool

reader, writer = os.pipe()
os.set_blocking(writer, False)
try:
    while os.write(writer, b"x" * 4096):
        pass
except BlockingIOError:
    os.set_blocking(writer, True)
stream = open(writer, "w")
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(stream))
logspool.install()

def end(number, frame):
    raise SystemExit(7)

def later():
    # The call waits by then; if not, the signal comes too early to show anything.
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, end)
threading.Thread(target=later, daemon=True).start()
stream.write("of the program itself, and it goes first")
try:
    log.info("behind it")
    time.sleep(10)
except SystemExit as ended:
    # Not by the interpreter's own end, which flushes the stream.
    os._exit(ended.code)
"""


def test_a_signal_ends_a_call_that_waits_for_output_of_the_program(run_program):
    outcome, _ = run_program(FULL_PIPE)

    assert outcome.status == 7, outcome.err
