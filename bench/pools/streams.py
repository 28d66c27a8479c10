"""The cost of a value that a generator yields in a worker and the main thread takes."""

from __future__ import annotations

import concurrent.futures
import queue
from collections.abc import Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, turns
from pools.part import WORKERS, Row, Sizes, seconds
from pools.peer import fastthreadpool, taken

VALUES = 100
#: Values that wait at most in the rows with one generator, as `Pool.stream` has it.
PLACES = 1_000
QUEUE = "ThreadPoolExecutor, SimpleQueue"
STREAM, BOUNDED_QUEUE = "Pool.stream", f"ThreadPoolExecutor, Queue({PLACES})"
_END = object()


def generate(count: int) -> Iterator[int]:
    """Yield numbers."""
    yield from range(count)


def _loop(generators: int) -> int:
    return sum(value for _ in range(generators) for value in generate(VALUES))


def _results(pool: native.Pool, generators: int) -> int:
    results: native.Results[int] = native.Results()
    giving = pool.options(results=results)
    for _ in range(generators):
        giving.push(generate, VALUES)
    return sum(results)


def _put(values: Any, count: int) -> None:
    for value in generate(count):
        values.put(value)
    values.put(_END)


def _queue(pool: concurrent.futures.Executor, generators: int) -> int:
    values: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(generators):
        pool.submit(_put, values, VALUES)
    total, left = 0, generators
    while left:
        value = values.get()
        if value is _END:
            left -= 1
        else:
            total += value
    return total


def _bounded_queue(pool: concurrent.futures.Executor, generators: int) -> int:
    values: queue.Queue[Any] = queue.Queue(PLACES)
    pool.submit(_put, values, generators * VALUES)
    return sum(iter(values.get, _END))


def _rounds(sizes: Sizes) -> Iterator[Round]:
    with native.Pool(WORKERS) as own, concurrent.futures.ThreadPoolExecutor(WORKERS) as stock:
        many = [
            Row("for loop", _loop),
            Row("Results", lambda count: _results(own, count)),
            Row(QUEUE, lambda count: _queue(stock, count)),
        ]
        if fastthreadpool is not None:
            peer = fastthreadpool.Pool(WORKERS)

            def submit(generators: int) -> int:
                for _ in range(generators):
                    peer.submit(generate, VALUES)
                return taken(peer, generators * VALUES)

            many.append(Row("fastthreadpool.submit", submit))
        one = [
            Row(STREAM, lambda count: sum(own.stream(generate, count * VALUES))),
            Row(BOUNDED_QUEUE, lambda count: _bounded_queue(stock, count), 0.1),
        ]
        while True:
            found: Round = {}
            for row in turns(many + one):
                count = max(1, int(sizes.generators * row.share))
                values = count * VALUES
                sum_each = VALUES * (VALUES - 1) // 2
                expected = values * (values - 1) // 2 if row in one else count * sum_each
                found[row.name] = {"us": seconds(row, count, expected) / values * 1e6}
            yield found


PART = Part(
    "streams",
    f"Generators of {VALUES} values in the workers, all values taken by one thread (us per value)",
    (Column("us", "us per value", 3),),
    reference=QUEUE,
    question=f"{STREAM} and {BOUNDED_QUEUE}: one long generator, at most {PLACES:,} values wait; others have no limit.",
    measure=_rounds,
)
