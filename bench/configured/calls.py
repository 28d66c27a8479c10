"""How programs call their loggers: fields, f-strings, adapters, a logger class of their own."""

import logging
from pathlib import Path

from case import LOGGER_NAME, TEMPLATE, Session
from cases.stock import file_handler, logger_with, with_handler
from configured.configuration import REQUEST_FORMAT, REQUEST_ID, Configuration

SUCCESS = 25


class ShopLogger(logging.Logger):
    """A logger class as programs write them: one more level."""

    def success(self, message: str, *args: object, **kwargs: object) -> None:
        """Log at the level SUCCESS."""
        if self.isEnabledFor(SUCCESS):
            self._log(SUCCESS, message, args, **kwargs)  # type: ignore[arg-type]


def _open_subclass(path: Path) -> Session:
    logging.setLoggerClass(ShopLogger)
    session = with_handler(file_handler)(path)
    assert isinstance(logging.getLogger(LOGGER_NAME), ShopLogger)
    return session


def _with_request(path: Path) -> logging.Handler:
    return file_handler(path, logging.Formatter(REQUEST_FORMAT))


def _open_adapter(path: Path) -> Session:
    handler = _with_request(path)
    return Session(logging.LoggerAdapter(logger_with(handler), {"request_id": REQUEST_ID}), handler.close)


CONFIGURATIONS = [
    Configuration("subclass", "own Logger class", _open_subclass),
    Configuration(
        "extra",
        "extra=, shown by the format",
        with_handler(_with_request),
        call=f'log.info("{TEMPLATE}", name, i, ms, extra={{"request_id": "{REQUEST_ID}"}})',
    ),
    Configuration(
        "f-string",
        "f-string as message",
        with_handler(file_handler),
        call='log.info(f"user {name} did {i} in {ms:.3f} ms")',
    ),
    Configuration("adapter", "LoggerAdapter", _open_adapter),
]
