"""A service of the comparison: the release build, on ports of its own, with stores of its own."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from services import processes
from services.part import Wrong, wait

DEADLINE = 60.0
#: Between two samples of the memory.
SAMPLE_SECONDS = 0.01


class Service:
    """A service that runs."""

    def __init__(self, binary: Path, *options: str, config: str = "", before: Sequence[str] = ()):
        """Start it, with `config` as its configuration file, and wait until it is ready.

        `before` is put before its command: a program that runs it.
        """
        listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.files = contextlib.ExitStack()
        log = self.files.enter_context(tempfile.NamedTemporaryFile("r"))
        if config:
            file = self.files.enter_context(tempfile.NamedTemporaryFile("w", suffix=".toml"))
            file.write(config)
            file.flush()
            listen += ["--config", file.name]
        with open(log.name, "w") as output:
            # Not into a pipe: a pipe that is not read would fill.
            self.process = subprocess.Popen([*before, binary, "serve", *listen, *options], stderr=output)
        until = time.monotonic() + DEADLINE
        while "ready: " not in (said := Path(log.name).read_text()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the service does not start: {said}")
            time.sleep(0.02)
        listening = re.findall(r"listening at (\w+)://127\.0\.0\.1:(\d+)(\?protocol=http)?", said)
        self.ports = {"http" if http else scheme: int(port) for scheme, port, http in listening}

    @property
    def tcp(self) -> str:
        """Return where senders connect."""
        return f"127.0.0.1:{self.ports['tcp']}"

    def stats(self) -> dict[str, Any]:
        """Return its counts."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/api/stats", timeout=60) as answer:
            return dict(json.load(answer))

    def stored(self) -> int:
        """Return how many records are committed in each of its stores."""
        return min(store["records_stored"] for store in self.stats()["stores"])

    def wait_stored(self, records: int) -> None:
        """Wait until each store has committed `records` records."""
        wait(f"{records} records stored", lambda: self.stored() >= records)

    def cpu_seconds(self) -> float:
        """Return its processor time."""
        return processes.cpu_seconds(self.process.pid)

    def memory_mb(self) -> float:
        """Return its resident memory."""
        return processes.memory_mb(self.process.pid)

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[float]]:
        """Sample its resident memory, in MB, while the block runs."""
        samples, ended = [self.memory_mb()], threading.Event()

        def sample() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                samples.append(self.memory_mb())

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield samples
        finally:
            ended.set()
            thread.join()

    def stop(self) -> None:
        """End it; everything that came is stored."""
        self.process.terminate()
        try:
            code = self.process.wait(DEADLINE * 2)
        finally:
            self.process.kill()
            self.process.wait()
            self.files.close()
        if code != 0:
            raise Wrong(f"the service ended with {code}")


@contextlib.contextmanager
def serving(binary: Path, *options: str, config: str = "", before: Sequence[str] = ()) -> Iterator[Service]:
    """Run a service; at the end of the block it has stored all that came, and is gone."""
    service = Service(binary, *options, config=config, before=before)
    try:
        yield service
    except BaseException:
        with contextlib.suppress(Wrong):
            service.stop()
        raise
    service.stop()
