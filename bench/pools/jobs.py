"""The cost of a job that does next to nothing.

`work` is a Python function that returns its argument, and all results are summed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing.pool
from collections.abc import Callable, Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, turns
from pools.part import STOCK, WORKERS, Row, Sizes, seconds
from pools.peer import fastthreadpool, taken

#: Factor for the number of cheap jobs: a short measurement would show the processor's speed of one moment.
CHEAP = 10.0


def work(number: int) -> int:
    """Be the least a job in Python can do."""
    return number


def _loop(jobs: int) -> int:
    results = []
    for number in range(jobs):
        results.append(work(number))
    return sum(results)


def _submit(pool: Any) -> Callable[[int], int]:
    def run(jobs: int) -> int:
        return sum([future.result() for future in [pool.submit(work, number) for number in range(jobs)]])

    return run


def _completed(pool: Any, as_completed: Callable[..., Any]) -> Callable[[int], int]:
    def run(jobs: int) -> int:
        return sum([future.result() for future in as_completed([pool.submit(work, n) for n in range(jobs)])])

    return run


def _push(pool: native.Pool) -> Callable[[int], int]:
    done: list[int] = []

    def run(jobs: int) -> int:
        done.clear()
        push, note = pool.push, done.append
        for number in range(jobs):
            push(note, number)
        pool.wait_idle()
        return sum(done)

    return run


def _gather(call: Callable[[int], Any]) -> Callable[[int], int]:
    async def main(jobs: int) -> int:
        return sum(await asyncio.gather(*[call(number) for number in range(jobs)]))

    return lambda jobs: asyncio.run(main(jobs))


def _gather_alone(jobs: int) -> int:
    async def main() -> int:
        asyncio_loop = asyncio.get_running_loop()
        futures = [asyncio_loop.create_future() for _ in range(jobs)]

        def end() -> None:
            for number, future in enumerate(futures):
                future.set_result(number)

        asyncio_loop.call_soon(end)
        return sum(await asyncio.gather(*futures))

    return asyncio.run(main())


def _peer_rows() -> list[Row]:
    peer = fastthreadpool.Pool(WORKERS)

    def submit(jobs: int) -> int:
        give = peer.submit
        for number in range(jobs):
            give(work, number)
        return taken(peer, jobs)

    def map_(jobs: int) -> int:
        peer.map(work, range(jobs), unpack_args=False)
        return taken(peer, jobs)

    return [Row("fastthreadpool.submit", submit), Row("fastthreadpool.map", map_, CHEAP)]


def _rounds(sizes: Sizes) -> Iterator[Round]:
    with (
        native.Pool(WORKERS) as own,
        concurrent.futures.ThreadPoolExecutor(WORKERS) as stock,
        multiprocessing.pool.ThreadPool(WORKERS) as simple,
    ):

        def in_executor(number: int) -> Any:
            return asyncio.get_running_loop().run_in_executor(stock, work, number)

        rows = [
            Row("for loop", _loop, CHEAP),
            Row("Pool.submit", _submit(own)),
            Row("Pool.push", _push(own)),
            Row("Pool.map", lambda jobs: sum(own.map(work, range(jobs))), CHEAP),
            Row("as_completed, native", _completed(own, native.as_completed)),
            Row("as_completed, stdlib's on Pool", _completed(own, concurrent.futures.as_completed), 0.1),
            Row("Pool.run, gather", _gather(lambda number: own.run(work, number)), 0.2),
            Row(STOCK, _submit(stock), 0.2),
            Row("ThreadPoolExecutor.map", lambda jobs: sum(stock.map(work, range(jobs))), 0.2),
            Row("as_completed, stdlib", _completed(stock, concurrent.futures.as_completed), 0.1),
            Row("run_in_executor, gather", _gather(in_executor), 0.2),
            Row("gather, no threads", _gather_alone, 0.2),
            Row("ThreadPool.map_async", lambda jobs: sum(simple.map_async(work, range(jobs)).get()), CHEAP),
        ]
        if fastthreadpool is not None:
            rows += _peer_rows()
        while True:
            took = {}
            for row in turns(rows):
                count = int(sizes.jobs * row.share)
                took[row.name] = seconds(row, count, count * (count - 1) // 2) / count * 1e6
            found: Round = {name: {"us": value} for name, value in took.items()}
            over = took["as_completed, native"] - took["Pool.submit"]
            found["as_completed, native"] = {"us": took["as_completed, native"], "over_submit_us": over}
            yield found


PART = Part(
    "jobs",
    "A job that does next to nothing (us per job)",
    (Column("us", "us per job", 3),),
    reference=STOCK,
    question="gather, no threads: futures that the loop ends itself; what asyncio alone takes, with any pool.",
    measure=_rounds,
)
