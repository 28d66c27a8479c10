"""Where programs send their lines: files, streams, queues, and handlers of their own."""

import inspect
import logging
import logging.handlers
from pathlib import Path

from case import LINE_FORMAT, LOGGER_NAME, Session
from cases import CASES
from cases.stock import file_handler, logger_with, with_handler
from configured.configuration import Configuration

# Chosen: no turn in the run, which would measure the file system.
ROTATED_BYTES = 1_000_000_000


def _rotating(path: Path) -> logging.Handler:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=ROTATED_BYTES, backupCount=3)
    handler.setFormatter(logging.Formatter(LINE_FORMAT))
    return handler


def _open_root(path: Path) -> Session:
    logging.basicConfig(filename=path, level=logging.INFO, format=LINE_FORMAT)
    return Session(logging.getLogger(LOGGER_NAME), lambda: logging.shutdown())


class UnbufferedFile(logging.Handler):
    """A handler as programs write them: each line is one write of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.file = path.open("ab", buffering=0)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of the record."""
        try:
            self.file.write(f"{self.format(record)}\n".encode())
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        super().close()


def _own_handler(path: Path) -> logging.Handler:
    handler = UnbufferedFile(path)
    handler.setFormatter(logging.Formatter(LINE_FORMAT))
    return handler


class Intercept(logging.Handler):
    """The handler of loguru's documentation: it passes each record on to loguru."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the message again, with the place of the logging call."""
        from loguru import logger

        level: str | int
        try:
            level = logger.level(record.levelname).name
        except ValueError:
            level = record.levelno
        frame, depth = inspect.currentframe(), 0
        while frame and (depth == 0 or frame.f_code.co_filename == logging.__file__):
            frame = frame.f_back
            depth += 1
        logger.opt(depth=depth, exception=record.exc_info).log(level, record.getMessage())


def _open_loguru(path: Path) -> Session:
    from loguru import logger

    logger.remove()
    logger.add(path, format="{time:YYYY-MM-DD HH:mm:ss,SSS} {level} {name}:{function}:{line} {message}")
    return Session(logger_with(Intercept()), logger.remove)


CONFIGURATIONS = [
    Configuration("plain", "FileHandler", with_handler(file_handler)),
    Configuration("rotating", "RotatingFileHandler", with_handler(_rotating)),
    Configuration("stream", "StreamHandler to a file", CASES["stdlib-stream"].open),
    Configuration("root", "handler on the root logger", _open_root),
    Configuration("queue", "QueueHandler + QueueListener", CASES["stdlib-queue"].open),
    Configuration("own-handler", "own Handler class", with_handler(_own_handler)),
    Configuration("loguru", "loguru's InterceptHandler", _open_loguru, needs=("loguru",)),
]
