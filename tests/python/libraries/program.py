"""Defines a program of these tests, and the beginning that most programs share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One program and its requirements."""

    name: str
    requires: tuple[str, ...]
    text: str
    # Runs on a pseudo terminal instead of pipes.
    terminal: bool = False
    # Patterns of text that differs between runs (a duration); it is replaced before the comparison.
    moving: tuple[bytes, ...] = ()


PRELUDE = """\
import logging, sys
from suite import side

def speak(log):
    log.debug("debug %d", 1)
    log.info("info %s %.2f", "text", 2.5)
    log.warning("warning without arguments")
    log.error("error %(key)s", {"key": "value"})
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("exception %s", "x")
    log.info("extra", extra={"request_id": 7})
    log.info("bad %d", "arguments") if False else None

def to_file(name="app.log", fmt="%(levelname)s %(name)s %(funcName)s:%(lineno)d %(message)s"):
    logging.basicConfig(filename=name, level=logging.DEBUG, format=fmt)

"""
