"""The worker processes, a pair for each interpreter, and the comparison of their answers."""

import os
import pickle
import select
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from formatting.worker import Answer, Batch
from suite import comparing, programs

WORKER = Path(__file__).with_name("worker.py")
# Ten times the duration of the slowest batch on a busy machine.
BATCH_SECONDS = 20


class Worker:
    """One process of one side."""

    def __init__(self, side: str, python: str, folder: Path, queue_dir: Path, package: str | None) -> None:
        self._name = f"{side} side of {python}"
        self._child = programs.start(
            [WORKER],
            env=programs.environment(side, queue_dir, package),
            folder=folder,
            python=python,
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
                raise programs.DeadlinePassed(f"no answer of the {self._name} within {BATCH_SECONDS} s")
            part = os.read(descriptor, size - len(data))
            if not part:
                raise AssertionError(f"the {self._name} ended with status {self._child.wait()}")
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
    """Logs a batch on both sides of each interpreter."""

    def __init__(
        self, folder: Path, queue_dir: Path, package: str | None = None, pythons: Sequence[str] = (sys.executable,)
    ) -> None:
        self._pythons = pythons
        self._made = folder, queue_dir, package
        self._workers: list[Worker] = []

    def __enter__(self) -> "Workers":
        self._workers = [Worker(side, python, *self._made) for python in self._pythons for side in programs.SIDES]
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()

    def log(self, batch: Batch) -> list[tuple[Answer, Answer]]:
        """Return the answers (stock, installed) of each interpreter; restart all workers if one hung or died."""
        data = pickle.dumps(batch)
        try:
            for worker in self._workers:
                worker.send(data)
            answers = iter([worker.answer() for worker in self._workers])
        except BaseException:
            self.__exit__()
            self.__enter__()
            raise
        return list(zip(answers, answers))


def difference(stock: Answer, installed: Answer) -> str:
    """Return how two answers differ, empty when they are equal."""
    nowhere = Path("/nowhere")
    return comparing.difference(stock.file, installed.file, "file") + comparing.difference(
        comparing.normalise(stock.err, nowhere), comparing.normalise(installed.err, nowhere), "stderr"
    )
