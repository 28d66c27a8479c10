"""seqlog: events of Seq."""

import logging
import threading

import common
from seqlog.structured_logging import SeqLogHandler, StructuredLogger

handler = SeqLogHandler(common.URL, batch_size=len(common.RECORDS))
handler.setFormatter(logging.Formatter())
logger = StructuredLogger("shop.cart", logging.DEBUG)
logger.addHandler(handler)
for record in common.RECORDS:
    level = getattr(logging, record["level"])
    if record["raises"]:
        try:
            common.fail()
        except ValueError:
            logger.log(level, record["message"], exc_info=True)
    else:
        logger.log(level, "{Text}", Text=record["message"], **record["fields"])
handler.close()
# The handler posts on a thread, and its `close` does not wait for it.
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join(30)
