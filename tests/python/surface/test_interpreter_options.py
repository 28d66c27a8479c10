"""With `python -b` and `-bb` the same texts warn or raise, with the same lines, as with stock logging."""

import re

import pytest

from suite import programs

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

PROGRAM = """\
import logging, logging.handlers, queue
from suite import side

def to_file(name, format="%(levelname)s %(message)s"):
    handler = logging.FileHandler(name + ".log")
    handler.setFormatter(logging.Formatter(format))
    log = logging.getLogger(name)
    log.addHandler(handler)
    log.propagate = False
    return log, handler

side.install()
plain, handler = to_file("plain")
fields, _ = to_file("fields", "%(message)s %(field)s")
queued, _ = to_file("queued")
records = queue.Queue()
listener = logging.handlers.QueueListener(records, *queued.handlers)
queued.handlers[:] = [logging.handlers.QueueHandler(records)]
listener.start()
for value in (b"bytes", bytearray(b"array"), [b"in a list"], "text", 3):
    plain.warning("argument %s", value)
    plain.warning("shown %r", value)
    plain.warning(value)
    fields.warning("field", extra={"field": value})
    logging.LoggerAdapter(fields, {"field": value}).warning("adapter")
    handler.handle(logging.LogRecord("own", 30, "path", 1, "handled %s", (value,), None))
    queued.warning("queued %s", value)
listener.stop()
logging.shutdown()
"""


@pytest.mark.parametrize("option", ["-b", "-bb"])
def test_bytes_in_texts_are_reported_as_by_stock_logging(run_program, option):
    found = []
    for side in programs.SIDES:
        outcome, folder = run_program(PROGRAM, side=side, options=(option,))
        outcome.expect_success()
        files = {file.name: file.read_bytes() for file in sorted(folder.glob("*.log"))}
        found.append((re.sub(rb"0x[0-9a-f]+", b"0x", outcome.err), files))

    stock, installed = found
    assert b"BytesWarning" in stock[0]
    assert installed[1] == stock[1]
    assert sorted(installed[0].splitlines()) == sorted(stock[0].splitlines())
