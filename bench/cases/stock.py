"""The standard library as it is, with each handler that writes or queues for one file."""

import logging
import logging.handlers
import queue
from collections.abc import Callable
from pathlib import Path

from case import (
    BURST,
    DISABLED,
    LATENCY,
    LINE_FORMAT,
    LOGGER_NAME,
    PACED,
    THREADS,
    THROUGHPUT,
    Case,
    Session,
)

ALL_MODES = (THROUGHPUT, LATENCY, PACED, THREADS, BURST, DISABLED)


def logger_with(handler: logging.Handler) -> logging.Logger:
    """Return the logger of the comparison with this handler alone."""
    log = logging.getLogger(LOGGER_NAME)
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers[:] = [handler]
    return log


def file_handler(path: Path, formatter: logging.Formatter | None = None) -> logging.FileHandler:
    """Return a stock file handler with the layout of the comparison."""
    handler = logging.FileHandler(path)
    handler.setFormatter(formatter or logging.Formatter(LINE_FORMAT))
    return handler


def with_handler(make: Callable[[Path], logging.Handler]) -> Callable[[Path], Session]:
    """Turn a way to make a handler into a way to open a case."""

    def open_session(path: Path) -> Session:
        handler = make(path)
        return Session(logger_with(handler), handler.close)

    return open_session


def _open_stream(path: Path) -> Session:
    stream = path.open("w", encoding="utf-8")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(LINE_FORMAT))
    return Session(logger_with(handler), stream.close)


def _open_memory(path: Path) -> Session:
    target = file_handler(path)
    handler = logging.handlers.MemoryHandler(1000, target=target)

    def finish() -> None:
        handler.close()
        target.close()

    return Session(logger_with(handler), finish)


def _open_queue(path: Path) -> Session:
    target = file_handler(path)
    records: queue.Queue[logging.LogRecord] = queue.Queue(-1)
    listener = logging.handlers.QueueListener(records, target)
    listener.start()

    def finish() -> None:
        listener.stop()
        target.close()

    return Session(logger_with(logging.handlers.QueueHandler(records)), finish)


CASES = [
    Case("stdlib-file", "stdlib FileHandler", "stock", with_handler(file_handler), modes=ALL_MODES),
    Case("stdlib-stream", "stdlib StreamHandler(file)", "stock", _open_stream),
    Case("stdlib-memory", "stdlib MemoryHandler(1000)", "stock", _open_memory),
    Case(
        "stdlib-queue",
        "stdlib QueueHandler + QueueListener",
        "stock",
        _open_queue,
        modes=(THROUGHPUT, LATENCY, PACED, THREADS, BURST),
    ),
]
