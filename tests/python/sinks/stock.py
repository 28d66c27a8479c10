"""Runs a sequence with the handler of the running interpreter."""

import datetime
import logging
import logging.handlers
import os
import time
from pathlib import Path

CLASSES = {
    "rotating": logging.handlers.RotatingFileHandler,
    "timed": logging.handlers.TimedRotatingFileHandler,
    "watched": logging.handlers.WatchedFileHandler,
}


class StockFailed(Exception):
    """Stock logging lost a record with an error, so there is no output to compare with."""


def rules() -> dict:
    """Return the rules of this interpreter's handlers, as logspool has to find them when it adopts a handler."""
    size = logging.handlers.RotatingFileHandler.shouldRollover.__code__
    times = logging.handlers.TimedRotatingFileHandler.doRollover.__code__
    return {
        "rotating": "early" if "seek" in size.co_names else "current",
        "timed": "early" if "newRolloverAt" in times.co_varnames else "current",
    }


def prepare(sequence, folder: Path) -> None:
    """Write the files that exist before the handler is made to `folder`."""
    folder.mkdir()
    for name, content in sequence.before.items():
        path = folder / name
        path.write_bytes(content.encode())
        os.utime(path, (sequence.start, sequence.start))


def make_handler(sequence, folder: Path) -> logging.Handler:
    """Make the handler; if its first rollover would depend on the current time, compute it from `sequence.start`."""
    options = dict(sequence.options, filename=folder / sequence.options["filename"], encoding="utf-8")
    if options.get("atTime") is not None:
        hours, rest = divmod(options["atTime"], 3600)
        options["atTime"] = datetime.time(hours, rest // 60, rest % 60)
    handler = CLASSES[sequence.kind](**options)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.terminator = sequence.terminator
    if sequence.kind == "timed" and sequence.options["filename"] not in sequence.before:
        handler.rolloverAt = handler.computeRollover(sequence.start)
    return handler


def run(sequence, handler: logging.Handler, folder: Path) -> list:
    """Run the steps; during a step the clock shows the time of its record.

    Returns:
        For each step, whether it had an effect.

    Raises:
        StockFailed: The handler raised or reported an error.
    """

    def failed(record):
        raise StockFailed(record.getMessage())

    handler.handleError = failed
    genuine = time.time
    effects = []
    try:
        for step in sequence.steps:
            if step[0] == "line":
                time.time = lambda now=step[1]: now + 0.75
                handler.handle(logging.makeLogRecord({"msg": step[2]}))
                effects.append(True)
            else:
                effects.append(step[0] == "chunk" or interfere(step, folder))
    finally:
        time.time = genuine
        handler.close()
    return effects


def interfere(step, folder: Path) -> bool:
    """Make the change of another process. Returns whether the file for it existed."""
    kind, *names = step
    if kind == "append":
        with open(folder / names[0], "ab") as file:
            file.write(names[1].encode())
        return True
    if not (folder / names[0]).exists():
        return False
    if kind == "rename":
        os.rename(folder / names[0], folder / names[1])
    else:
        os.remove(folder / names[0])
    return True


def contents(folder: Path) -> dict:
    """Read every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
