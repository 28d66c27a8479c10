"""Shared by the programs in Python: the records, the addresses, and a loop for loggers of the standard library.

PROGRAM RECORDS TCP-PORT UDP-PORT HTTP-PORT
"""

import json
import logging
import sys

HOST = "127.0.0.1"
TCP, UDP, HTTP = map(int, sys.argv[2:5])
URL = f"http://{HOST}:{HTTP}"
with open(sys.argv[1], encoding="utf-8") as lines:
    RECORDS = json.load(lines)


def fail():
    """Raise the exception of the record that has one."""
    raise ValueError("no such customer: Zoë")


def log_all(handler: logging.Handler, extra=lambda fields: fields) -> None:
    """Log all records with a handler, then close it."""
    logger = logging.getLogger("shop.cart")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    for record in RECORDS:
        level = getattr(logging, record["level"])
        if record["raises"]:
            try:
                fail()
            except ValueError:
                logger.log(level, record["message"], exc_info=True)
        else:
            logger.log(level, record["message"], extra=extra(record["fields"]))
    handler.close()
