"""Peers that have the interface of stock logging, or run after it."""

import logging
from pathlib import Path

from case import (
    LATENCY,
    LINE_FORMAT,
    LOGGER_NAME,
    OWN_LAYOUT_WITH_LINE,
    PACED,
    THREADS,
    THROUGHPUT,
    Case,
    Session,
    when_file_rests,
)
from cases.stock import file_handler, logger_with

MODES = (THROUGHPUT, LATENCY, PACED, THREADS)


def _open_backgroundlog(path: Path, blocking: bool) -> Session:
    from backgroundlog.handlers.thread_handler import ThreadHandler

    levels = {logging.INFO, logging.ERROR, logging.CRITICAL} if blocking else None
    handler = ThreadHandler(file_handler(path), blocking_levels=levels)
    # The handler has no way to wait for its queue before the interpreter ends.
    return Session(logger_with(handler), lambda: when_file_rests(path), lambda: handler.dropped_log_record_count)


def _open_picologging(path: Path) -> Session:
    import picologging

    handler = picologging.FileHandler(str(path))
    handler.setFormatter(picologging.Formatter(LINE_FORMAT))
    log = picologging.getLogger(LOGGER_NAME)
    log.setLevel(picologging.INFO)
    log.addHandler(handler)
    return Session(log, handler.close)


def _open_logxide(path: Path) -> Session:
    from logxide import logging as logxide

    handler = logxide.FileHandler(str(path))
    handler.setFormatter(logxide.Formatter(LINE_FORMAT))
    log = logxide.getLogger(LOGGER_NAME)
    log.setLevel(logxide.INFO)
    log.propagate = False
    log.addHandler(handler)

    def finish() -> None:
        handler.flush()
        handler.close()

    return Session(log, finish)


def _open_structlog(path: Path) -> Session:
    import structlog

    stream = path.open("w", encoding="utf-8")

    def render(_logger: object, _method: str, event: dict[str, object]) -> str:
        return f"{event['timestamp']} INFO {LOGGER_NAME}:{event['lineno']} {event['event']}"

    structlog.configure(
        processors=[
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S,%f", utc=False),
            structlog.processors.CallsiteParameterAdder({structlog.processors.CallsiteParameter.LINENO}),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    return Session(structlog.get_logger(), stream.close)


CASES = [
    Case(
        "backgroundlog",
        "backgroundlog ThreadHandler",
        "peer",
        lambda path: _open_backgroundlog(path, blocking=False),
        needs=("backgroundlog",),
        modes=MODES,
        note="its default: INFO is dropped when its queue of 1,000 is full",
    ),
    Case(
        "backgroundlog-blocking",
        "backgroundlog, INFO blocking",
        "peer",
        lambda path: _open_backgroundlog(path, blocking=True),
        needs=("backgroundlog",),
        modes=MODES,
        slow=True,
    ),
    Case(
        "picologging",
        "picologging FileHandler",
        "peer",
        _open_picologging,
        needs=("picologging",),
        layout=OWN_LAYOUT_WITH_LINE,
        modes=MODES,
        note="two threads on one handler deadlock; its release prints damaged times",
        limits=((THREADS, 15.0),),
    ),
    Case("logxide", "logxide FileHandler", "peer", _open_logxide, needs=("logxide",), modes=MODES),
    Case(
        "structlog",
        "structlog, text, caller's line",
        "peer",
        _open_structlog,
        needs=("structlog",),
        layout=OWN_LAYOUT_WITH_LINE,
        modes=MODES,
    ),
]
