"""ecs-logging: JSON lines of the Elastic Common Schema over TCP."""

import logging.handlers

import common
import ecs_logging


class Lines(logging.handlers.SocketHandler):
    """Send the text of the formatter, a line for each record."""

    def makePickle(self, record):
        """Return the line."""
        return self.format(record).encode() + b"\n"


handler = Lines(common.HOST, common.TCP)
handler.setFormatter(ecs_logging.StdlibFormatter())
common.log_all(handler)
