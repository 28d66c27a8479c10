"""The server that is measured: FastAPI under uvicorn, in a process of its own: `python server.py MODE WORKLOAD TARGET`.

A thread beside the event loop obeys one command a line on stdin and answers with a line of JSON on stdout. It keeps
answering while a logger blocks the event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import models
import modes
import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response

CLASSIFY, GENERATE, TOKENS = "classify", "generate", "tokens"
PATHS = {CLASSIFY: "/classify", GENERATE: "/generate", TOKENS: "/generate"}
#: Tokens of an answer, and rows that the engine decodes at once.
ANSWER_TOKENS, MOST_ROWS = 32, 16
#: Seconds between two looks at the lateness of the event loop.
LOOK = 0.005


class Lag:
    """How late the event loop runs a timer. Also counts a look that is still due."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.due = 0.0

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            self.due = time.perf_counter() + LOOK
            await asyncio.sleep(LOOK)
            self.late.append(time.perf_counter() - self.due)

    def take(self) -> dict[str, float]:
        """Return the figures since the last call, in milliseconds."""
        late, self.late = self.late, []
        late.append(max(0.0, time.perf_counter() - self.due))
        late.sort()
        return {"lag_p99_ms": late[int((len(late) - 1) * 0.99)] * 1e3, "lag_max_ms": late[-1] * 1e3}


class Engine:
    """Continuous batching: a thread decodes one token for each active row in each step; new rows join between steps."""

    def __init__(self, service: Service, *, per_token: bool) -> None:
        self.service = service
        self.per_token = per_token
        self.new: queue.SimpleQueue[Row] = queue.SimpleQueue()
        self.session = models.language_model()
        threading.Thread(target=self.run, name="engine", daemon=True).start()

    def run(self) -> None:
        """Decode for ever."""
        rows: list[Row] = []
        while True:
            while len(rows) < MOST_ROWS and (not rows or not self.new.empty()):
                rows.append(self.new.get())
            tokens, states = self.session.run(
                None, {"token": np.array([row.token for row in rows]), "state": np.stack([row.state for row in rows])}
            )
            emit = self.service.emit
            remaining = []
            for row, token, state in zip(rows, tokens.tolist(), states):
                row.token, row.state = token, state
                row.position += 1
                if emit is not None and self.per_token:
                    emit(modes.TOKEN, next(self.service.numbers), row.request, row.position, token)
                if row.position < ANSWER_TOKENS:
                    remaining.append(row)
                else:
                    row.loop.call_soon_threadsafe(row.done.set_result, None)
            rows = remaining


class Row:
    """One answer that is being generated."""

    def __init__(self, request: str) -> None:
        self.request = request
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.token, self.position = 1, 0
        self.state = np.zeros(models.HIDDEN, np.float32)


class Service:
    """The application, its logger and its counts."""

    def __init__(self, mode: modes.Mode, workload: str, target: str) -> None:
        self.mode = mode
        self.workload = workload
        self.stream = _opened(target)
        #: The function that logs; None while the server runs without logging.
        self.emit: modes.Emit | None = None
        self._emit: modes.Emit | None = None
        self.numbers = itertools.count()
        self.requests = 0
        self.lag = Lag()

    def app(self) -> FastAPI:
        """Return the application."""
        app = FastAPI(lifespan=self.lifespan)
        if self.workload == CLASSIFY:
            self.session = models.classifier()
            self.features = np.linspace(-1, 1, models.INPUTS, dtype=np.float32)[None]
            app.post("/classify")(self.classify)
        else:
            self.engine = Engine(self, per_token=self.workload == TOKENS)
            app.post("/generate")(self.generate)
        return app

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Watch the loop while the server runs."""
        watching = asyncio.create_task(self.lag.watch())
        yield
        watching.cancel()

    async def classify(self, request: Request) -> Response:
        """Two records: one before and one after the model."""
        body = await request.body()
        name = f"r{self.requests:07d}"
        emit = self.emit
        if emit is None:
            kind, _ = self.classified()
        else:
            with self.mode.context(name):
                emit(modes.RECEIVED, next(self.numbers), name, len(body))
                kind, score = self.classified()
                emit(modes.CLASSIFIED, next(self.numbers), name, kind, score)
        self.requests += 1
        return Response(b'{"class":%d}' % kind, media_type="application/json")

    def classified(self) -> tuple[int, float]:
        """Run the model for one input."""
        scores = self.session.run(None, {"x": self.features})[0][0]
        kind = int(scores.argmax())
        return kind, float(scores[kind])

    async def generate(self, request: Request) -> Response:
        """Two records, and one for each token from the thread of the engine if the workload says so."""
        body = await request.body()
        row = Row(f"r{self.requests:07d}")
        emit = self.emit
        if emit is not None:
            emit(modes.RECEIVED, next(self.numbers), row.request, len(body))
        self.engine.new.put(row)
        await row.done
        if emit is not None:
            emit(modes.GENERATED, next(self.numbers), row.request, row.position, row.token)
        self.requests += 1
        return Response(b'{"token":%d}' % row.token, media_type="application/json")

    # -- commands --------------------------------------------------------------------------

    def obey(self, command: str) -> dict[str, Any]:
        """Do what one line of stdin says."""
        return getattr(self, f"do_{command}")()

    def do_on(self) -> dict[str, Any]:
        """Log from now on. The first time, the logger is made."""
        if self._emit is None:
            self._emit = self.mode.open(self.stream)
        self.mode.switch(True)
        self.emit = self._emit
        return {}

    def do_off(self) -> dict[str, Any]:
        """Log nothing from now on."""
        self.emit = None
        self.mode.switch(False)
        return {}

    def do_snap(self) -> dict[str, Any]:
        """Return the counts."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory = pages * os.sysconf("SC_PAGESIZE")
        return {"requests": self.requests, "cpu": time.process_time(), "memory": memory, **self.lag.take()}

    def do_finish(self) -> dict[str, Any]:
        """Write the queued records; return how many records were logged, and the logger's counts."""
        self.mode.close()
        self.stream.close()
        return {"offered": next(self.numbers), **self.mode.counts()}


def _opened(target: str) -> TextIO:
    if target.isdigit():
        return open(int(target), "w", encoding="utf-8")
    return open(target, "a", encoding="utf-8")


def main() -> None:
    """Serve until stdin ends."""
    mode_name, workload, target = sys.argv[1:4]
    mode = modes.MODES[mode_name]
    service = Service(mode, workload, target)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        service.app(), access_log=mode.logs_access, log_config=None, log_level="warning", timeout_keep_alive=3600
    )
    server = uvicorn.Server(config)

    def obey() -> None:
        while not server.started:
            time.sleep(0.005)
        answers.write(json.dumps({"port": listening.getsockname()[1]}) + "\n")
        for line in sys.stdin:
            try:
                answer = service.obey(line.strip())
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
        answers.flush()
        os._exit(0)  # everything is written, and a stuck logger must not keep the process

    threading.Thread(target=obey, name="commands", daemon=True).start()
    if mode.logs_access:
        # uvicorn looks at the handlers when a connection begins. Without a handler it would never log.
        import logging

        access = logging.getLogger("uvicorn.access")
        access.addHandler(logging.NullHandler())
        access.propagate = False
        access.setLevel(logging.CRITICAL)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
