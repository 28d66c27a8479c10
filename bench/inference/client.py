"""The load on the server, from a process of its own: `python client.py PORT PATH CONNECTIONS`.

Each line on its stdin is a slice of load as JSON; its answer is a line of JSON on stdout. `{}` waits for the answers to
all requests of the slice before.

Closed loop: each connection sends its next request when the last one is answered. Open loop: requests are due at a
fixed rate, and latency counts from the time that a request was due, also where it had to wait for a connection. So a
server that hangs is charged for all requests that were due meanwhile. A request without an answer at the end of
a slice counts with the time that it has waited until then.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from typing import Any

BODY = b"x" * 64
#: Longest wait for the answers of the slice before, in seconds.
PATIENCE = 30.0


class Connection(asyncio.Protocol):
    """One connection with at most one request on its way."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.due = 0.0
        self.received = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send(self, due: float) -> None:
        """Send a request that was due at that time."""
        self.due = due
        self.transport.write(self.load.request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.endswith(b"}"):  # the answer is one small JSON object
            answer, self.received = self.received, b""
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the server answered {answer[:200]!r}")
            self.load.answered(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.load.lost += 1


class Load:
    """All connections, and the figures of the present slice."""

    def __init__(self, path: str) -> None:
        head = f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: {len(BODY)}\r\n\r\n"
        self.request = head.encode() + BODY
        self.idle: deque[Connection] = deque()
        self.busy: set[Connection] = set()
        self.waiting: deque[float] = deque()
        self.latencies: list[float] = []
        self.is_closed_loop = False
        self.end = 0.0
        self.lost = 0

    async def connect(self, port: int, connections: int) -> None:
        """Open all connections."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
            self.idle.append(connection)

    def answered(self, connection: Connection) -> None:
        """Note an answer, and send the next request."""
        now = time.perf_counter()
        if now < self.end:
            self.latencies.append(now - connection.due)
            if self.is_closed_loop:
                connection.send(now)
                return
            if self.waiting:
                connection.send(self.waiting.popleft())
                return
        self.busy.discard(connection)
        self.idle.append(connection)

    def send(self, due: float) -> None:
        """Send a request on an idle connection, or let it wait for one."""
        if self.idle:
            connection = self.idle.popleft()
            self.busy.add(connection)
            connection.send(due)
        else:
            self.waiting.append(due)

    async def settle(self) -> dict[str, Any]:
        """Wait until every request of the slice before is answered."""
        patience = time.perf_counter() + PATIENCE
        while self.busy:
            if time.perf_counter() > patience:
                return {"error": f"{len(self.busy)} requests are not answered after {PATIENCE:g} s"}
            await asyncio.sleep(0.01)
        return {}

    async def run(self, seconds: float, rate: float, connections: int) -> dict[str, Any]:
        """Run one slice: a closed loop if `rate` is 0."""
        self.latencies = []
        began = time.perf_counter()
        self.end = began + seconds
        self.is_closed_loop = not rate
        sent = 0
        if self.is_closed_loop:
            for _ in range(min(connections, len(self.idle))):
                self.send(began)
            await asyncio.sleep(seconds)
        else:
            while (now := time.perf_counter()) < self.end:
                while (due := began + sent / rate) <= now:
                    self.send(due)
                    sent += 1
                await asyncio.sleep(max(0.0, due - now))
        now = time.perf_counter()
        self.end = 0.0
        answered = len(self.latencies)
        unanswered = [now - connection.due for connection in self.busy] + [now - due for due in self.waiting]
        self.waiting.clear()
        ordered = sorted(self.latencies + unanswered)
        return {
            "requests": answered,
            "rate": answered / (now - began),
            "unanswered": len(unanswered),
            "p50_ms": _at(ordered, 0.5),
            "p99_ms": _at(ordered, 0.99),
            "max_ms": _at(ordered, 1),
            "lost_connections": self.lost,
        }


def _at(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1e3 if ordered else 0.0


async def main() -> None:
    """Answer each line of stdin."""
    port, path, connections = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    load = Load(path)
    await load.connect(port, connections)
    loop = asyncio.get_running_loop()
    print(json.dumps({"connected": connections}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        found = await (load.run(**asked) if asked else load.settle())
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
