"""Runs a program on both sides and compares all that it leaves."""

import re

from suite import programs

#: Programs begin with this. `to_file(name)` makes a logger with a file of its own.
BEGIN = """\
import logging, sys
from suite import side

def to_file(name, format="%(levelname)s %(funcName)s:%(lineno)d %(message)s", **options):
    handler = logging.FileHandler(name + ".log", **options)
    handler.setFormatter(logging.Formatter(format))
    log = logging.getLogger(name)
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    log.propagate = False
    return log

"""

#: Differs from run to run: addresses, and the lines of the package in tracebacks to standard error.
_ADDRESS = re.compile(rb"0x[0-9a-f]+")


def compared(run_program, body, **options):
    """Return the files of a program by name, and its standard error; they are the same on both sides."""
    found = []
    for side in programs.SIDES:
        outcome, folder = run_program(BEGIN + body, side=side, **options)
        outcome.expect_success()
        files = {file.name: _ADDRESS.sub(b"0x", file.read_bytes()) for file in sorted(folder.glob("*.log"))}
        found.append((files, _ADDRESS.sub(b"0x", outcome.err), outcome.out))

    stock, installed = found
    assert any(stock[0].values())
    assert stock == installed
    return {name: text.decode() for name, text in stock[0].items()}, stock[1].decode()
