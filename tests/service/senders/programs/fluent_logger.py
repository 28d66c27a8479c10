"""Send records by fluent-logger: by its sender, and by its handler with three formatters.

fluent_logger.py RECORDS PORT
"""

import json
import logging
import sys

from fluent import handler, sender

file, port = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
ADDRESS = {"host": "127.0.0.1", "port": int(port)}


def fail():
    raise ValueError("no such customer: Zoë")


for precise in (False, True):
    tag = "precise" if precise else "seconds"
    emitter = sender.FluentSender("app", nanosecond_precision=precise, **ADDRESS)
    for record in RECORDS:
        data = {"message": record["message"], "level": record["level"], **record["fields"]}
        assert emitter.emit(tag, data), emitter.last_error
    emitter.close()

NAMED = {"level": "%(levelname)s", "logger": "%(name)s", "host": "%(hostname)s", "line": "%(lineno)d"}
EXCLUDED = """
    args asctime created exc_info filename levelname module msecs msg relativeCreated stack_info taskName
""".split()
for tag, formatter in {
    "default": handler.FluentRecordFormatter(),
    "named": handler.FluentRecordFormatter(NAMED),
    "everything": handler.FluentRecordFormatter(exclude_attrs=EXCLUDED),
}.items():
    formatter.hostname = "web-1"
    handling = handler.FluentHandler(f"handler.{tag}", nanosecond_precision=True, **ADDRESS)
    handling.setFormatter(formatter)
    logger = logging.getLogger(f"shop.{tag}")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handling)
    for record in RECORDS:
        logger.log(getattr(logging, record["level"]), record["message"], extra=record["fields"])
    # Its own way to send fields.
    logger.warning({"message": "with fields", **RECORDS[0]["fields"]})
    try:
        fail()
    except ValueError:
        logger.exception("cannot pay %d", 8)
    handling.close()
