"""logspool: installed under an unchanged program, and its handlers without `install()`."""

import logging
from collections.abc import Callable
from pathlib import Path

from case import JSON_LAYOUT, LATENCY, LINE_FORMAT, PACED, THREADS, THROUGHPUT, Case, Session
from cases.stock import ALL_MODES, file_handler, logger_with


def installed(make: Callable[[Path], logging.Handler]) -> Callable[[Path], Session]:
    """Open a case that builds its logger as ever and then calls `logspool.install()`."""

    def open_session(path: Path) -> Session:
        import logspool

        handler = make(path)
        log = logger_with(handler)
        logspool.install()
        return Session(log, lambda: _finish(handler), refused)

    return open_session


def refused() -> int:
    """Return how many records were refused until now, of all levels and for all reasons."""
    import logspool

    return sum(sum(level.refused.values()) for level in logspool.stats().levels.values())


def _finish(handler: logging.Handler) -> None:
    import logspool

    logspool.flush()
    handler.close()


def _open_handler(path: Path) -> Session:
    import logspool

    handler = logspool.FileHandler(path)
    handler.setFormatter(logging.Formatter(LINE_FORMAT))
    return Session(logger_with(handler), lambda: _finish(handler), refused)


def _json_handler(path: Path) -> logging.Handler:
    import logspool

    # The same work as the text line: its five attributes.
    fields = {"time": "time", "level": "level", "logger": "logger", "line": "lineno", "message": "message"}
    return file_handler(path, logspool.JSONFormatter(fields))


NEEDS = ("logspool",)

CASES = [
    Case("logspool", "**logspool, installed**", "logspool", installed(file_handler), needs=NEEDS, modes=ALL_MODES),
    Case(
        "logspool-handler",
        "logspool.FileHandler, not installed",
        "logspool",
        _open_handler,
        needs=NEEDS,
        modes=(THROUGHPUT, LATENCY, PACED, THREADS),
    ),
    Case(
        "logspool-json",
        "logspool, installed, JSONFormatter",
        "logspool",
        installed(_json_handler),
        needs=NEEDS,
        layout=JSON_LAYOUT,
        modes=(THROUGHPUT, LATENCY, PACED),
    ),
]
