"""Send records by the handlers of graypy: compressed and not, in datagrams and on a connection.

graypy_handlers.py RECORDS TCP-PORT UDP-PORT
"""

import json
import logging
import sys

import graypy
from graypy.handler import LAN_CHUNK, GELFWarningChunker

file, tcp, udp = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
HOST = "127.0.0.1"
LARGE = GELFWarningChunker(LAN_CHUNK)
HANDLERS = {
    "compressed": graypy.GELFUDPHandler(HOST, int(udp), localname="web-1"),
    "plain": graypy.GELFUDPHandler(HOST, int(udp), localname="web-1", compress=False, gelf_chunker=LARGE),
    "tcp": graypy.GELFTCPHandler(HOST, int(tcp), localname="web-1"),
    "facility": graypy.GELFTCPHandler(HOST, int(tcp), localname="web-1", facility="shop", debugging_fields=False),
}


def fail():
    raise ValueError("no such customer: Zoë")


for name, handler in HANDLERS.items():
    logger = logging.getLogger(f"graypy.{name}")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    for record in RECORDS:
        logger.log(getattr(logging, record["level"]), record["message"], extra=record["fields"])
    try:
        fail()
    except ValueError:
        logger.exception("cannot pay")
    handler.close()
