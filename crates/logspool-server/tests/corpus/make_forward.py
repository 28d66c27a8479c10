"""Make the Forward messages of fluent-logger for Python that the decoder is tested with.

    pip install fluent-logger==0.11.1 && python make_forward.py

Each line of `forward-python.txt` holds, between tabs: a name, the bytes of a connection in hex, and in JSON the tag and
the records as the service has to understand them. The bytes are those that reached a server.
"""

import json
import logging
import pathlib
import socket
import threading

from fluent import handler, sender

HERE = pathlib.Path(__file__).parent
SECONDS = 1_700_000_000
NANOSECONDS = SECONDS * 1_000_000_000


def sent(send):
    """Return the bytes that reach a server while `send` runs with its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    received = bytearray()

    def serve():
        connection, _ = listener.accept()
        with connection:
            while piece := connection.recv(65536):
                received.extend(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    send(listener.getsockname()[1])
    thread.join()
    listener.close()
    return bytes(received)


def emitted(time, data, **options):
    """Return what `FluentSender` sends."""

    def send(port):
        logger = sender.FluentSender("app", port=port, **options)
        logger.emit_with_time("follow", time, data)
        logger.close()

    return sent(send)


def handled(formatter, **options):
    """Return what `FluentHandler` sends for a record of `Logger.exception`."""
    formatter.hostname = "web-1"

    def send(port):
        handling = handler.FluentHandler("app.follow", port=port, **options)
        handling.setFormatter(formatter)
        record = logging.LogRecord("shop", logging.ERROR, "/srv/shop.py", 42, "took %d ms", (5,), None, "pay")
        record.created, record.exc_text = SECONDS + 0.125, "Traceback: \u20ac"
        handling.emit(record)
        handling.close()

    return sent(send)


def expected(time_ns, logger="app.follow", **parts):
    """Return a message with one record, as the service has to understand it."""
    record = {"time_ns": time_ns, "level": 0, "logger": logger, "message": "", **parts}
    return {"tag": "app.follow", "records": [record]}


# A formatter of `logging` puts the traceback behind the message.
FORMATTED = "took 5 ms\nTraceback: \u20ac"
FIELDS = {
    "from": "userA",
    "count": 3,
    "rate": 0.5,
    "none": None,
    "nested": {"list": [1, True, -(2**40)]},
    "large": 2**63,
}
READ = {**FIELDS, "large": str(2**63)}

CASES = {
    "seconds": (emitted(SECONDS, FIELDS), expected(NANOSECONDS, fields=READ)),
    "nanoseconds": (
        emitted(SECONDS + 0.125, FIELDS, nanosecond_precision=True),
        expected(NANOSECONDS + 125_000_000, fields=READ),
    ),
    "bytes": (
        emitted(SECONDS, {"message": b"caf\xe9", "wide": "\u20ac" * 40, "long": "x" * 70_000}),
        expected(NANOSECONDS, message="caf\ufffd", fields={"wide": "\u20ac" * 40, "long": "x" * 70_000}),
    ),
    "handler": (
        handled(handler.FluentRecordFormatter()),
        expected(
            NANOSECONDS, "shop", message=FORMATTED, host="web-1", fields={"sys_module": "shop", "tag": "app.follow"}
        ),
    ),
    "handler with a format": (
        handled(
            handler.FluentRecordFormatter(
                {
                    "host": "%(hostname)s",
                    "level": "%(levelname)s",
                    "pathname": "%(pathname)s",
                    "where": "%(module)s.%(funcName)s",
                    "stack_trace": "%(exc_text)s",
                }
            ),
            nanosecond_precision=True,
        ),
        expected(
            NANOSECONDS + 125_000_000,
            level=40,
            message=FORMATTED,
            host="web-1",
            file="/srv/shop.py",
            exception="Traceback: \u20ac",
            fields={"where": "shop.pay"},
        ),
    ),
}


def main():
    """Write the file."""
    lines = [f"{name}\t{frame.hex()}\t{json.dumps(meant)}\n" for name, (frame, meant) in CASES.items()]
    (HERE / "forward-python.txt").write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
