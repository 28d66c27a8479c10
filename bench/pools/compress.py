"""Does the pool slow down jobs that work without the GIL? Lists of records, pickled and compressed.

The bar is the least cost of threads: each thread has its part of the jobs from the beginning.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing.pool
import pickle
import random
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, turns
from pools.part import STOCK, WORKERS, Row, Sizes, seconds
from pools.peer import fastthreadpool, taken

LEVEL = 6
LISTS, RECORDS = 64, 20
#: A round of a contender is cut into as many turns, so that a slow moment of the machine meets all of them.
TURNS = 6
SLICES = "threads over slices"
#: Like the slices, the caller waits once; with `result` after `result` it is woken for each job.
WAITED = "Pool.submit, then wait"

Records = list[dict[str, Any]]


def pack(records: Records) -> int:
    """Do one job: return the length of a list of records, pickled and compressed."""
    return len(zlib.compress(pickle.dumps(records), LEVEL))


def _records(dice: random.Random) -> Records:
    return [
        {
            "time": 1_790_000_000 + dice.random() * 1e6,
            "level": dice.choice(("DEBUG", "INFO", "INFO", "WARNING")),
            "logger": dice.choice(("shop.orders", "shop.basket", "shop.stock")),
            "message": f"order {dice.randrange(10**6)} took {dice.random() * 90:.3f} ms",
            "line": dice.randrange(400),
            "request": f"{dice.getrandbits(64):016x}",
        }
        for _ in range(RECORDS)
    ]


def _slices(jobs: list[Records]) -> int:
    lengths: list[int] = []

    def do(part: list[Records]) -> None:
        lengths.append(sum(map(pack, part)))

    each = -(-len(jobs) // WORKERS)
    threads = [threading.Thread(target=do, args=(jobs[n * each : (n + 1) * each],)) for n in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(lengths)


def _submit(pool: Any) -> Callable[[list[Records]], int]:
    return lambda jobs: sum([future.result() for future in [pool.submit(pack, records) for records in jobs]])


def _submit_and_wait(pool: Any, wait: Callable[[list[Any]], object]) -> Callable[[list[Records]], int]:
    def run(jobs: list[Records]) -> int:
        futures = [pool.submit(pack, records) for records in jobs]
        wait(futures)
        return sum([future.result() for future in futures])

    return run


def _peer_calls() -> dict[str, Callable[[list[Records]], int]]:
    peer = fastthreadpool.Pool(WORKERS)

    def submit(jobs: list[Records]) -> int:
        for records in jobs:
            peer.submit(pack, records)
        return taken(peer, len(jobs))

    def map_(jobs: list[Records]) -> int:
        peer.map(pack, jobs, unpack_args=False)
        return taken(peer, len(jobs))

    return {"fastthreadpool.submit": submit, "fastthreadpool.map": map_}


def _rounds(sizes: Sizes) -> Iterator[Round]:
    dice = random.Random(20)
    lists = [_records(dice) for _ in range(LISTS)]
    count = -(-sizes.compressed // TURNS)
    jobs = [lists[number % LISTS] for number in range(count)]
    expected = sum(map(pack, jobs))
    with (
        native.Pool(WORKERS) as own,
        concurrent.futures.ThreadPoolExecutor(WORKERS) as stock,
        multiprocessing.pool.ThreadPool(WORKERS) as simple,
    ):
        calls: dict[str, Callable[[list[Records]], int]] = {
            "for loop": lambda jobs: sum(map(pack, jobs)),
            SLICES: _slices,
            "Pool.submit": _submit(own),
            WAITED: _submit_and_wait(own, lambda _: own.wait_idle()),
            "Pool.map": lambda jobs: sum(own.map(pack, jobs)),
            STOCK: _submit(stock),
            f"{STOCK}, then wait": _submit_and_wait(stock, concurrent.futures.wait),
            "ThreadPoolExecutor.map": lambda jobs: sum(stock.map(pack, jobs)),
            "ThreadPool.map_async": lambda jobs: sum(simple.map_async(pack, jobs).get()),
        }
        if fastthreadpool is not None:
            calls.update(_peer_calls())
        rows = [Row(name, lambda _, call=call: call(jobs)) for name, call in calls.items()]  # type: ignore[misc]
        while True:
            took = dict.fromkeys(calls, 0.0)
            for _ in range(TURNS):
                for row in turns(rows):
                    took[row.name] += seconds(row, count, expected)
            yield {name: {"us": value / (TURNS * count) * 1e6} for name, value in took.items()}


PART = Part(
    "compress",
    f"{RECORDS} records pickled and compressed with zlib {LEVEL} (us per job)",
    (Column("us", "us per job", 1),),
    reference=SLICES,
    question="zlib works without the GIL, pickle with it. Who takes result after result is woken for each, and takes "
    "the workers' cores; `then wait` waits for all of them first.",
    measure=_rounds,
)
