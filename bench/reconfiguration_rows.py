"""The ways in which programs reconfigure logging, one function for each row of `reconfiguration.py`.

A row gets a folder and the number of operations. It returns the seconds that the operations took, the number of
records logged and the files that must hold them. It works on stock logging; `logspool.install()` is called before.
"""

from __future__ import annotations

import logging
import logging.config
import logging.handlers
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LINE = "%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"
TEXT = "user %s did %d in %.3f ms"

#: Called before a measurement and after it: waits until every record logged until then is in its file.
Settle = Callable[[], None]


@dataclass(frozen=True)
class Measured:
    """The result of a row."""

    seconds: float
    records: int
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Row:
    """One operation, how often it is done, and the promise about it."""

    name: str
    title: str
    operations: int
    run: Callable[[Path, int, Settle], Measured]
    #: Most microseconds of one operation.
    at_most_us: float | None = None
    #: Most time of one operation, as a multiple of stock logging's in the same round.
    at_most_ratio: float | None = None
    #: Least speed, as a multiple of stock logging's in the same round.
    at_least_speed: float | None = None


def _logger(path: Path) -> tuple[logging.Logger, logging.FileHandler]:
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter(LINE))
    log = logging.getLogger("bench.part")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers[:] = [handler]
    return log, handler


def _timed(operation: Callable[[int], None], count: int, settle: Settle) -> float:
    """Return the seconds of `count` operations, done after a few that are not measured."""
    for number in range(WARM_UP):
        operation(number)
    settle()
    begin = time.perf_counter()
    for number in range(count):
        operation(number)
    return time.perf_counter() - begin


# Chosen: more than any cache of the standard library or of logspool needs before it answers.
WARM_UP = 20


def _handle(folder: Path, count: int, settle: Settle) -> Measured:
    path = folder / "file.log"
    log, handler = _logger(path)
    record = log.makeRecord(log.name, logging.INFO, __file__, 1, TEXT, ("somebody", 1, 0.25), None, "call")
    seconds = _timed(lambda _: handler.handle(record), count, settle)
    handler.close()
    return Measured(seconds, count + WARM_UP, (path,))


def _listener(folder: Path, count: int, settle: Settle) -> Measured:
    path = folder / "file.log"
    log, handler = _logger(path)
    records: queue.Queue[logging.LogRecord] = queue.Queue(-1)
    log.handlers[:] = [logging.handlers.QueueHandler(records)]
    listener = logging.handlers.QueueListener(records, handler)
    listener.start()
    for number in range(WARM_UP):
        log.info(TEXT, "somebody", number, 0.25)
    settle()
    begin = time.perf_counter()
    for number in range(count):
        log.info(TEXT, "somebody", number, 0.25)
    listener.stop()
    handler.close()
    return Measured(time.perf_counter() - begin, count + WARM_UP, (path,))


def _flush(folder: Path, count: int, settle: Settle) -> Measured:
    path = folder / "file.log"
    log, handler = _logger(path)

    def operation(number: int) -> None:
        log.info(TEXT, "somebody", number, 0.25)
        handler.flush()

    seconds = _timed(operation, count, settle)
    handler.close()
    return Measured(seconds, count + WARM_UP, (path,))


def _open_and_close(path_of: Callable[[Path, int], Path]) -> Callable[[Path, int, Settle], Measured]:
    def run(folder: Path, count: int, settle: Settle) -> Measured:
        log, first = _logger(folder / "unused.log")
        log.removeHandler(first)
        first.close()
        formatter = logging.Formatter(LINE)
        paths: dict[Path, None] = {}

        def operation(number: int) -> None:
            path = path_of(folder, len(paths))
            paths[path] = None
            handler = logging.FileHandler(path)
            handler.setFormatter(formatter)
            log.addHandler(handler)
            log.info(TEXT, "somebody", number, 0.25)
            log.removeHandler(handler)
            handler.close()

        seconds = _timed(operation, count, settle)
        return Measured(seconds, count + WARM_UP, tuple(paths))

    return run


def _dict_config(folder: Path, count: int, settle: Settle) -> Measured:
    path, errors = folder / "file.log", folder / "errors.log"
    # Chosen: about the configuration of a web service; a logger for each of its libraries.
    libraries = [f"library{number}" for number in range(20)]
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": LINE}, "short": {"format": "%(levelname)s %(message)s"}},
        "filters": {"name": {"name": "bench"}},
        "handlers": {
            "file": {"class": "logging.FileHandler", "filename": str(path), "formatter": "line", "filters": ["name"]},
            "errors": {
                "class": "logging.handlers.RotatingFileHandler",
                "filename": str(errors),
                "maxBytes": 100_000_000,
                "backupCount": 3,
                "formatter": "short",
                "level": "ERROR",
            },
        },
        "loggers": {
            "bench": {"handlers": ["file", "errors"], "level": "INFO", "propagate": False},
            **{name: {"handlers": ["file"], "level": "WARNING"} for name in libraries},
        },
    }

    def operation(number: int) -> None:
        logging.config.dictConfig(config)
        logging.getLogger("bench").info(TEXT, "somebody", number, 0.25)

    seconds = _timed(operation, count, settle)
    logging.shutdown()
    return Measured(seconds, count + WARM_UP, (path,))


def _change(change: Callable[[logging.Logger, logging.Handler, int], object]) -> Callable[..., Measured]:
    def run(folder: Path, count: int, settle: Settle) -> Measured:
        path = folder / "file.log"
        log, handler = _logger(path)

        def operation(number: int) -> None:
            change(log, handler, number)
            log.info(TEXT, "somebody", number, 0.25)

        seconds = _timed(operation, count, settle)
        handler.close()
        return Measured(seconds, count + WARM_UP, (path,))

    return run


def _set_level(log: logging.Logger, handler: logging.Handler, number: int) -> None:
    log.setLevel(logging.INFO if number % 2 else logging.DEBUG)


_formatters = (logging.Formatter(LINE), logging.Formatter("%(levelname)s %(message)s"))


def _set_formatter(log: logging.Logger, handler: logging.Handler, number: int) -> None:
    handler.setFormatter(_formatters[number % 2])


def _propagate(log: logging.Logger, handler: logging.Handler, number: int) -> None:
    # The root logger has no handler, so each record still goes to one file.
    log.propagate = bool(number % 2)


def _add_and_remove(folder: Path, count: int, settle: Settle) -> Measured:
    path, other = folder / "file.log", folder / "other.log"
    log, handler = _logger(path)
    second = logging.FileHandler(other)
    second.setFormatter(logging.Formatter(LINE))

    def operation(number: int) -> None:
        log.addHandler(second)
        log.info(TEXT, "somebody", number, 0.25)
        log.removeHandler(second)

    seconds = _timed(operation, count, settle)
    handler.close()
    second.close()
    return Measured(seconds, 2 * (count + WARM_UP), (path, other))


def _anonymous(folder: Path, count: int, settle: Settle) -> Measured:
    path = folder / "file.log"
    _, handler = _logger(path)

    def operation(number: int) -> None:
        log = logging.Logger("anonymous", logging.INFO)
        log.addHandler(handler)
        log.info(TEXT, "somebody", number, 0.25)

    seconds = _timed(operation, count, settle)
    handler.close()
    return Measured(seconds, count + WARM_UP, (path,))


ROWS = {
    row.name: row
    for row in (
        Row("handle", "handler.handle(record)", 3000, _handle, at_most_ratio=1.0),
        Row("listener", "QueueHandler + QueueListener, end to end", 10_000, _listener, at_least_speed=1.5),
        Row("flush", "log, then handler.flush()", 2000, _flush, at_most_us=40),
        Row(
            "open-close",
            "open a FileHandler, log once, close",
            300,
            _open_and_close(lambda folder, _: folder / "file.log"),
            at_most_us=300,
        ),
        Row(
            "open-close-new",
            "the same, each time another file",
            300,
            _open_and_close(lambda folder, number: folder / f"file-{number}.log"),
            # Making a file takes stock logging longer than all of the row above.
            at_most_ratio=2.0,
        ),
        Row("dict-config", "dictConfig and one record", 100, _dict_config, at_most_ratio=2.0),
        Row("set-level", "setLevel, then log", 2000, _change(_set_level), at_most_us=30),
        Row("set-formatter", "setFormatter, then log", 2000, _change(_set_formatter), at_most_us=30),
        Row("propagate", "set propagate, then log", 2000, _change(_propagate), at_most_us=30),
        Row("add-remove", "add a handler, log, remove it", 1000, _add_and_remove, at_most_ratio=3.0),
        Row("anonymous", "anonymous Logger, one record", 1000, _anonymous, at_most_ratio=3.0),
    )
}
