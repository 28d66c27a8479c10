"""The pair of worker processes and the comparison of their answers."""

import os
import pickle
import select
import struct
import subprocess
import time
from pathlib import Path

from formatting.worker import Answer, Batch
from suite import comparing, programs

WORKER = Path(__file__).with_name("worker.py")
# Ten times the slowest batch on a busy machine.
BATCH_SECONDS = 20


class Worker:
    """One process of one side."""

    def __init__(self, side: str, folder: Path, queue_dir: Path, package: str | None = None) -> None:
        self._side = side
        self._child = programs.start(
            [WORKER],
            env=programs.environment(side, queue_dir, package),
            folder=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, data: bytes) -> None:
        self._child.stdin.write(struct.pack("<Q", len(data)) + data)
        self._child.stdin.flush()

    def answer(self) -> Answer:
        until = time.monotonic() + BATCH_SECONDS
        size = struct.unpack("<Q", self._read(8, until))[0]
        return pickle.loads(self._read(size, until))

    def _read(self, size: int, until: float) -> bytes:
        data = b""
        descriptor = self._child.stdout.fileno()
        while len(data) < size:
            if not select.select([descriptor], [], [], max(0, until - time.monotonic()))[0]:
                raise programs.DeadlinePassed(f"no answer of the {self._side} side within {BATCH_SECONDS} s")
            part = os.read(descriptor, size - len(data))
            if not part:
                raise AssertionError(f"the {self._side} side ended with status {self._child.wait()}")
            data += part
        return data

    def end(self) -> None:
        with programs.ended(self._child) as child:
            child.stdin.close()
            try:
                child.wait(BATCH_SECONDS)
            except subprocess.TimeoutExpired:
                pass


class Workers:
    """Logs a batch on both sides."""

    def __init__(self, folder: Path, queue_dir: Path, package: str | None = None) -> None:
        self._made = folder, queue_dir, package
        self._pair: list[Worker] = []

    def __enter__(self) -> "Workers":
        self._pair = [Worker(side, *self._made) for side in programs.SIDES]
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._pair:
            worker.end()

    def log(self, batch: Batch) -> tuple[Answer, Answer]:
        """Return the answers (stock, installed); start anew after a worker that hung or died."""
        data = pickle.dumps(batch)
        try:
            for worker in self._pair:
                worker.send(data)
            stock, installed = (worker.answer() for worker in self._pair)
        except BaseException:
            self.__exit__()
            self.__enter__()
            raise
        return stock, installed


def difference(stock: Answer, installed: Answer) -> str:
    """Return how two answers differ, empty when they are equal."""
    nowhere = Path("/nowhere")
    return comparing.difference(stock.file, installed.file, "file") + comparing.difference(
        comparing.normalise(stock.err, nowhere), comparing.normalise(installed.err, nowhere), "stderr"
    )
