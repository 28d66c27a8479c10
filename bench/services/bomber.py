"""Connects many times at once, and sends one bomb over each connection.

    python bomber.py PORT CONNECTIONS NAME

Prints `ready`, waits for a line, sends, waits until the service has answered or closed each connection or has taken
everything, and prints one JSON object: how many connections were answered, were closed and stayed open.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import sys
import time

from bomb import BOMBS

#: Seconds without a change of any connection, after which the remaining connections are left.
QUIET_SECONDS = 3.0
DEADLINE = 120.0


def send(target: tuple[str, int], count: int, data: bytes) -> dict[str, float]:
    """Send the data over all connections side by side."""
    selector = selectors.DefaultSelector()
    sent = {}
    for _ in range(count):
        connection = socket.socket()
        connection.connect(target)
        connection.setblocking(False)
        sent[connection] = 0
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
    answered = closed = 0
    view = memoryview(data)
    began = changed = time.monotonic()
    while sent and time.monotonic() - began < DEADLINE:
        events = selector.select(0.1)
        now = time.monotonic()
        if events:
            changed = now
        elif now - changed > QUIET_SECONDS:
            break
        for key, mask in events:
            connection = key.fileobj
            try:
                if mask & selectors.EVENT_READ:
                    if connection.recv(4096):
                        answered += 1
                    else:
                        closed += 1
                    selector.unregister(connection)
                    sent.pop(connection)
                    connection.close()
                elif mask & selectors.EVENT_WRITE:
                    sent[connection] += connection.send(view[sent[connection] : sent[connection] + (1 << 18)])
                    if sent[connection] == len(data):
                        selector.modify(connection, selectors.EVENT_READ)
            except OSError:
                closed += 1
                selector.unregister(connection)
                sent.pop(connection)
                connection.close()
    return {
        "answered": answered,
        "closed": closed,
        "open": len(sent),
        "unsent_bytes": sum(len(data) - done for done in sent.values()),
        "seconds": changed - began,
    }


def main() -> None:
    """Send."""
    port, count, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(send(("127.0.0.1", port), count, BOMBS[name])), flush=True)


if __name__ == "__main__":
    main()
