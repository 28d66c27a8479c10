"""Runs one cell: one logger, one workload and one sink, in a new server under load of a new client.

The server alternates between no logging and the logger. Each slice with the logger is between two slices without, and
its ratios are to their mean. Between slices a bad sink is healthy again, so that records in a logger's queue disturb no
slice without logging.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apart
from inference import sinks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONNECTIONS = 32
PATHS = {"classify": "/classify", "generate": "/generate", "tokens": "/generate"}
#: Part of the rate of the closed loop at which the open loop sends.
OPEN_LOAD = 0.4
#: Seconds after which a process that does not answer is stuck.
PATIENCE = 40.0


class CellError(apart.Failed):
    """A cell could not be measured; the text says why."""


@dataclass(frozen=True)
class Sizes:
    """How long a cell is measured."""

    seconds: float = 1.2
    repeats: int = 2


@dataclass
class Slice:
    """The measurements of one slice."""

    load: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def cpu_us(self) -> float:
        """CPU of the server for a request, in microseconds."""
        return (self.after["cpu"] - self.before["cpu"]) / max(self.load["requests"], 1) * 1e6


class Process:
    """A process that answers each line on its stdin with a line of JSON."""

    def __init__(self, name: str, command: list[str], **options: Any) -> None:
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self._rest = b""

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line, and return the answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise CellError(f"the {self.name} has ended") from None
        return self.answer(line)

    def answer(self, asked: str = "its start") -> dict[str, Any]:
        """Return the next answer.

        Raises:
            CellError: it says that something failed, it has ended, or it does not answer.
        """
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise CellError(f"the {self.name} is stuck: no answer to {asked!r} within {PATIENCE:g} s")
            data = os.read(descriptor, 65_536)
            if not data:
                raise CellError(f"the {self.name} ended with exit code {self.process.wait()} at {asked!r}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise CellError(f"{self.name}: {answer['error']}")
        return answer

    def kill(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Cell:
    """A server, its client and its sink."""

    def __init__(self, mode: str, workload: str, kind: str, sizes: Sizes, stack: ExitStack) -> None:
        self.kind = kind
        self.sizes = sizes
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.sink = sinks.Sink(kind, folder)
        stack.callback(self.sink.kill)
        path = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
        kept = () if self.sink.descriptor is None else (self.sink.descriptor,)
        command = [sys.executable, str(HERE / "server.py"), mode, workload, self.sink.target]
        environment = {**os.environ, "PYTHONPATH": path}
        self.server = Process("server", command, pass_fds=kept, env=environment)
        stack.callback(self.server.kill)
        self.sink.server_has_it()
        port = self.server.answer()["port"]
        command = [sys.executable, str(HERE / "client.py"), str(port), PATHS[workload], str(2 * CONNECTIONS)]
        self.client = Process("client", command)
        stack.callback(self.client.kill)
        self.client.answer()

    def slice(self, *, logs: bool, rate: float = 0) -> Slice:
        """Measure one slice, with the logger or without."""
        self.client.ask("{}")
        if logs:
            self.sink.be("bad")
            self.server.ask("on")
        before = self.server.ask("snap")
        asked = {"seconds": self.sizes.seconds, "rate": rate, "connections": CONNECTIONS}
        load = self.client.ask(json.dumps(asked))
        after = self.server.ask("snap")
        if logs:
            self.server.ask("off")
            self.sink.be("healthy")
            time.sleep(0.25)
        return Slice(load, before, after)

    def warm_up(self) -> None:
        """Load the server before the first slice, with the logger too, so that imports and caches count nowhere."""
        asked = json.dumps({"seconds": 0.3, "rate": 0, "connections": CONNECTIONS})
        self.client.ask(asked)
        self.client.ask("{}")
        self.server.ask("on")
        self.client.ask(asked)
        self.server.ask("off")


def measure(mode: str, workload: str, kind: str, sizes: Sizes) -> dict[str, Any]:
    """Run one cell and return its figures.

    Raises:
        CellError: the server or the client was stuck or has failed.
    """
    with ExitStack() as stack:
        cell = Cell(mode, workload, kind, sizes, stack)
        cell.warm_up()
        closed = [cell.slice(logs=bool(number % 2)) for number in range(2 * sizes.repeats + 1)]
        rate = OPEN_LOAD * statistics.median(slice.load["rate"] for slice in closed[::2])
        paced = [cell.slice(logs=bool(number % 2), rate=max(1.0, rate)) for number in range(2 * sizes.repeats + 1)]
        finished = cell.server.ask("finish")
        cell.client.kill()
        cell.server.kill()
        received = cell.sink.finish()
    return {**_compared(closed, paced), **_accounted(finished, received)}


def _compared(closed: list[Slice], paced: list[Slice]) -> dict[str, Any]:
    """Compare each slice with the logger with the mean of the two slices around it."""
    ratios, added, p99, plain_p99 = [], [], [], []
    for number in range(1, len(closed), 2):
        before, slice, after = closed[number - 1 : number + 2]
        ratios.append(slice.load["rate"] / _mean(before.load["rate"], after.load["rate"]))
        added.append(slice.cpu_us - _mean(before.cpu_us, after.cpu_us))
        before, slice, after = paced[number - 1 : number + 2]
        p99.append(slice.load["p99_ms"])
        plain_p99.append(_mean(before.load["p99_ms"], after.load["p99_ms"]))
    with_logger = closed[1::2] + paced[1::2]
    plain = [slice.load["rate"] for slice in closed[::2]]
    return {
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "none_rate": statistics.median(plain),
        "none_spread": (max(plain) - min(plain)) / statistics.median(plain),
        "none_cpu_us": statistics.median(slice.cpu_us for slice in closed[::2]),
        "added_us": statistics.median(added),
        "p99_ms": statistics.median(p99),
        "none_p99_ms": statistics.median(plain_p99),
        "p99_ratio": statistics.median(mine / other for mine, other in zip(p99, plain_p99)),
        "lag_p99_ms": statistics.median(slice.after["lag_p99_ms"] for slice in with_logger),
        "lag_max_ms": max(slice.after["lag_max_ms"] for slice in with_logger),
        "none_lag_max_ms": max(slice.after["lag_max_ms"] for slice in closed[::2] + paced[::2]),
        "grown_mb": (paced[-2].after["memory"] - closed[0].after["memory"]) / 1e6,
        "unanswered": sum(slice.load["unanswered"] for slice in paced[1::2]),
    }


def _accounted(finished: dict[str, Any], received: sinks.Received) -> dict[str, Any]:
    """Compare the logged records, the logger's counts and the records that arrived."""
    offered = finished.pop("offered")
    kept = received.records / offered if offered else 1.0
    found: dict[str, Any] = {
        "offered": offered,
        "received": received.records,
        "kept": kept,
        "doubled": received.doubled,
    }
    if finished:
        found["counts"] = finished
        gone = sum(finished.get(name, 0) for name in ("dropped", "queued", "uncertain"))
        all_offered = finished["accepted"] + finished["refused"]
        # Records beyond the numbered ones are the access log, of which nothing may be missing. Further lines are
        # summaries of dropped records, which no logger counts as records of the program.
        found["exact"] = (
            "yes"
            if finished["accepted"] == finished["written"] + gone
            and offered <= all_offered
            and received.records + all_offered - offered <= received.lines
            and finished["written"] - (all_offered - offered) == received.records
            and not received.doubled
            else f"{finished}, {received}, offered {offered}"
        )
    return found


def _mean(first: float, second: float) -> float:
    return (first + second) / 2 or 1e-9
