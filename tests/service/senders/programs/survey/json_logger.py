"""python-json-logger: JSON lines over TCP by the standard library's SocketHandler."""

import logging.handlers

import common
from pythonjsonlogger.json import JsonFormatter


class Lines(logging.handlers.SocketHandler):
    """Send the text of the formatter, a line for each record."""

    def makePickle(self, record):
        """Return the line."""
        return self.format(record).encode() + b"\n"


handler = Lines(common.HOST, common.TCP)
handler.setFormatter(JsonFormatter("{asctime}{levelname}{name}{message}", style="{", timestamp=True))
common.log_all(handler)
