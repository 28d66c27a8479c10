"""Sends one record at a time by Forward, and measures how long its ack takes.

    python ack_probe.py PORT ADDRESS NAME

Prints `ready`, waits for a line, sends until its input ends, and prints one JSON object: the milliseconds of each ack,
and how many records were acknowledged.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

from bomb import binary, text

DEADLINE = 60.0


def main() -> None:
    """Send and wait."""
    port, source, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    connection = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE, source_address=(source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print("ready", flush=True)
    sys.stdin.readline()
    times = []
    number = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        number += 1
        message = text("message") + text(f"{name} {number}")
        entry = b"\x92\xce" + struct.pack(">I", int(time.time())) + b"\x82" + message + text("logger") + text("honest")
        frame = b"\x93" + text("honest") + binary(entry) + b"\x81" + text("chunk") + text(str(number))
        began = time.perf_counter()
        connection.sendall(frame)
        answer = b""
        while len(answer) < len(b"\x81" + text("ack") + text(str(number))):
            part = connection.recv(4096)
            if not part:
                raise SystemExit(f"the service closed the connection after {number - 1} acks")
            answer += part
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.002)
    print(json.dumps({"times": times, "records": number}), flush=True)


if __name__ == "__main__":
    main()
