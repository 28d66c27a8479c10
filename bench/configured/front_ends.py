"""Other loggers than `logging`'s: each on its own road to a file, and through logspool's module for it."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import Session
from configured.configuration import Configuration
from configured.record_libraries import STRUCTLOG_CALL

# The ISO times of masked lines: one time in a million has no fraction.
_ISO_TIMES = (re.compile(rb"0000-00-00T00:00:00(?:\.000000)?Z"),)


def _structlog(renderer: str) -> Callable[[Path], Session]:
    def open_structlog(path: Path) -> Session:
        import structlog

        file = path.open("w", encoding="utf-8")
        module = structlog.dev if renderer == "ConsoleRenderer" else structlog.processors
        render = getattr(module, renderer)
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                render(colors=False) if renderer == "ConsoleRenderer" else render(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            logger_factory=structlog.WriteLoggerFactory(file),
            cache_logger_on_first_use=True,
        )
        return Session(structlog.get_logger(), file.close)

    return open_structlog


def _structlog_by_logspool(renderer: str) -> Callable[[Path], Session]:
    def open_structlog(path: Path) -> Session:
        import structlog

        import logspool.structlog as native

        factory = native.LoggerFactory(path)
        render: Any = getattr(native, renderer)
        structlog.configure(
            processors=[structlog.processors.add_log_level, native.TimeStamper(), render()],
            wrapper_class=native.make_filtering_bound_logger(logging.INFO),
            logger_factory=factory,
            cache_logger_on_first_use=True,
        )
        return Session(structlog.get_logger(), factory.handler.close)

    return open_structlog


def _open_loguru(path: Path) -> Session:
    from loguru import logger

    logger.remove()
    logger.add(path)
    return Session(logger, logger.remove)


def _open_loguru_by_logspool(path: Path) -> Session:
    from loguru import logger

    import logspool.loguru

    logger.remove()
    logger.add(logspool.loguru.sink(path))
    return Session(logger, logger.remove)


CONFIGURATIONS = [
    Configuration(
        "loguru-file",
        "loguru to a file, default format",
        _open_loguru,
        open_own=_open_loguru_by_logspool,
        call='log.info("user {} did {} in {:.3f} ms", name, i, ms)',
        needs=("loguru",),
    ),
    *(
        Configuration(
            name,
            f"structlog: {renderer}",
            _structlog(renderer),
            open_own=_structlog_by_logspool(renderer),
            call=STRUCTLOG_CALL,
            needs=("structlog",),
            moving=_ISO_TIMES,
        )
        for name, renderer in (
            ("structlog-json", "JSONRenderer"),
            ("structlog-key-values", "KeyValueRenderer"),
            ("structlog-console", "ConsoleRenderer"),
        )
    ),
]
