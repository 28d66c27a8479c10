"""Make the GELF messages of graypy that the decoder is tested with.

    pip install graypy==2.1.0 && python make_gelf.py

Each line of `gelf-python.txt` holds, between tabs: a name, in hex the datagrams with the length of each in two bytes
before it, and in JSON the record as the service has to understand it. The datagrams are those that reached a server.
"""

import json
import logging
import pathlib
import random
import socket

import graypy

HERE = pathlib.Path(__file__).parent
SECONDS = 1_700_000_000


def sent(message, level=logging.WARNING, exception=None, extra=None, **options):
    """Return the datagrams that `GELFUDPHandler` sends for a record."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(1)
        handler = graypy.GELFUDPHandler("127.0.0.1", server.getsockname()[1], localname="web-1", **options)
        record = logging.LogRecord(
            "shop", level, "/srv/shop.py", 42, message, (5,) if "%" in message else (), None, "pay"
        )
        record.created, record.process, record.thread, record.exc_text = SECONDS + 0.125, 4711, 12, exception
        vars(record).update(extra or {})
        handler.handle(record)
        handler.close()
        datagrams = []
        try:
            while True:
                datagrams.append(server.recv(65536))
                server.settimeout(0.2)
        except TimeoutError:
            return b"".join(len(datagram).to_bytes(2, "big") + datagram for datagram in datagrams)


def expected(message, level=30, **parts):
    """Return a record as the service has to understand it."""
    return {
        "time_ns": SECONDS * 1_000_000_000 + 125_000_000,
        "level": level,
        "logger": "shop",
        "message": message,
        "host": "web-1",
        **parts,
    }


# What no compression makes short.
LONG = random.Random(1).randbytes(4000).hex()
TRACEBACK = "Traceback (most recent call last):\nValueError: \u20ac"
EXTRA = {"user": 7, "rate": 0.5, "none": None, "list": [1, 2]}
DEBUG = {
    "file": "/srv/shop.py",
    "line": 42,
    "function": "pay",
    "process": 4711,
    "process_name": "MainProcess",
    "thread_name": "MainThread",
}

CASES = {
    "extras": (
        sent("took %d ms", extra=EXTRA),
        expected("took 5 ms", **DEBUG, fields=EXTRA),
    ),
    "exception": (
        sent("failed", logging.ERROR, exception=TRACEBACK),
        expected("failed", 40, **DEBUG, exception=TRACEBACK),
    ),
    "nothing more": (
        sent("\u20ac", debugging_fields=False, extra_fields=False, facility="own"),
        expected("\u20ac", logger="own", fields={"logger": "shop"}),
    ),
    "in parts": (sent(LONG, logging.CRITICAL), expected(LONG, 50, **DEBUG, fields={"severity": "crit"})),
    "in parts, not compressed": (sent(LONG, compress=False), expected(LONG, **DEBUG)),
}


def main():
    """Write the file."""
    lines = [f"{name}\t{frame.hex()}\t{json.dumps(meant)}\n" for name, (frame, meant) in CASES.items()]
    (HERE / "gelf-python.txt").write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
