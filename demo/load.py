"""A few seconds of load on one address: connections that are kept open, each with one request under way."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator

CONNECTIONS = 8
REPLY_SECONDS = 10.0


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> bytes:
    """Send one request and return the body of its reply."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {head.splitlines()[0].decode()}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.split(b":")[1]))


async def _connection(port: int, numbers: Iterator[int], seconds: list[float], done: Callable[[], None]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for number in numbers:
            begin = time.perf_counter()
            await asyncio.wait_for(_request(reader, writer, f"/orders/{number}"), REPLY_SECONDS)
            seconds.append(time.perf_counter() - begin)
            done()
    finally:
        writer.close()


async def _run(port: int, numbers: range, done: Callable[[], None]) -> list[float]:
    seconds: list[float] = []
    shared = iter(numbers)
    await asyncio.gather(*(_connection(port, shared, seconds, done) for _ in range(CONNECTIONS)))
    return seconds


def orders(port: int, numbers: range, done: Callable[[], None]) -> list[float]:
    """Ask for each order once and return the duration of each request."""
    return asyncio.run(_run(port, numbers, done))


def call_times(port: int) -> list[int]:
    """Return the durations of the measured logging calls of the service, in nanoseconds."""

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        try:
            return await _request(reader, writer, "/call-times")
        finally:
            writer.close()

    return list(json.loads(asyncio.run(ask())))
