"""How programs log exceptions: with a traceback, a cause, a note; through a filter; of a missing attribute."""

import logging
from collections.abc import Callable
from pathlib import Path

from case import TEMPLATE, Session
from cases.stock import file_handler, logger_with
from configured.configuration import Configuration
from configured.filters import MessageFilter

TRACEBACK = b"Traceback (most recent call last):\n"


def _fail(frames: int) -> None:
    if frames > 1:
        return _fail(frames - 1)
    raise LookupError("no such user")


def _seven() -> None:
    # With the function that logs, the traceback has seven frames.
    _fail(5)


def _chained() -> None:
    try:
        _fail(4)
    except LookupError as error:
        raise RuntimeError("no session") from error


def _attribute() -> None:
    # Since Python 3.12 the text suggests a similar name.
    return logging.levell  # type: ignore[attr-defined]


def _logging(fail: Callable[[], None], filtered: bool = False) -> Callable[[Path], Session]:
    def on(path: Path) -> Session:
        handler = file_handler(path)
        log = logger_with(handler)
        if filtered:
            log.addFilter(MessageFilter())

        # A new exception for each record, as in a program; raising it takes a hundredth of its traceback.
        def failing(name: str, number: int, ms: float) -> None:
            try:
                fail()
            except Exception:
                log.exception(TEMPLATE, name, number, ms)

        return Session(failing, handler.close)

    return on


def _row(name: str, title: str, opened: Callable[[Path], Session], once: bytes = TRACEBACK) -> Configuration:
    return Configuration(name, title, opened, call="log(name, i, ms)", once=once)


CONFIGURATIONS = [
    _row("exception", "log.exception, seven frames", _logging(_seven)),
    _row("exception-cause", "log.exception with a cause", _logging(_chained), b"\nThe above exception was"),
    _row("exception-filter", "log.exception, a filter by message", _logging(_seven, filtered=True)),
    _row("exception-attribute", "log.exception of a missing attribute", _logging(_attribute)),
]
