"""Send records by each handler of the standard library, and print the attributes of the records.

stdlib.py RECORDS TCP-PORT UDP-PORT HTTP-PORT UNIX-SOCKET
"""

import json
import logging
import logging.handlers
import socket
import sys

file, tcp, udp, http, unix = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
HOST = "127.0.0.1"
HANDLERS = {
    "socket": logging.handlers.SocketHandler(HOST, int(tcp)),
    "datagram": logging.handlers.DatagramHandler(HOST, int(udp)),
    "http-post": logging.handlers.HTTPHandler(f"{HOST}:{http}", "/log", method="POST"),
    "http-get": logging.handlers.HTTPHandler(f"{HOST}:{http}", "/log"),
    "syslog-udp": logging.handlers.SysLogHandler((HOST, int(udp))),
    "syslog-tcp": logging.handlers.SysLogHandler((HOST, int(tcp)), socktype=socket.SOCK_STREAM),
    "syslog-unix": logging.handlers.SysLogHandler(unix),
}


class Remember(logging.Handler):
    """Keeps the attributes of a record, before other handlers see it."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        names = ("created", "pathname", "lineno", "funcName", "process", "processName", "thread", "threadName")
        self.records.append({name: getattr(record, name) for name in names})


def fail():
    raise ValueError("no such customer: Zoë")


def log(logger):
    for record in RECORDS:
        logger.log(getattr(logging, record["level"]), record["message"], extra=record["fields"])
    logger.warning("%d of %s", 3, "fünf")
    try:
        fail()
    except ValueError:
        logger.exception("cannot pay", extra={"order": 8})


made = {}
for name, handler in HANDLERS.items():
    logger = logging.getLogger(f"stdlib.{name}")
    logger.setLevel(logging.DEBUG)
    remember = Remember()
    logger.addHandler(remember)
    # SysLogHandler shows what its formatter makes of a record; each other handler has its own way.
    if name.startswith("syslog"):
        handler.setFormatter(logging.Formatter(f"{name}: %(message)s"))
    logger.addHandler(handler)
    log(logger)
    handler.close()
    made[name] = remember.records
logging.shutdown()
json.dump(made, sys.stdout)
