"""Runs a sequence through the handler of the interpreter that runs this."""

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
    """Stock logging lost a record with an error: nothing to compare with."""


def rules() -> dict:
    """Tell which rules the handlers of this interpreter follow, as the adoption of a handler has to."""
    size = logging.handlers.RotatingFileHandler.shouldRollover.__code__
    times = logging.handlers.TimedRotatingFileHandler.doRollover.__code__
    return {
        "rotating": "early" if "seek" in size.co_names else "current",
        "timed": "early" if "newRolloverAt" in times.co_varnames else "current",
    }


def prepare(sequence, folder: Path) -> None:
    """Put the files into `folder` that exist before the handler is made."""
    folder.mkdir()
    for name, content in sequence.before.items():
        path = folder / name
        path.write_bytes(content.encode())
        os.utime(path, (sequence.start, sequence.start))


def make_handler(sequence, folder: Path) -> logging.Handler:
    """Make the handler; where its first rollover would depend on today, on `sequence.start` instead."""
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
    """Take the steps, with the time of each record on the clock.

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
    """Do what another process does. Returns whether there was something to do it to."""
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
