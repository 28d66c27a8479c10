"""The outputs that the records go to: a file, and pipes whose reader is slow, stalls, is choked or does not read.

The trouble is made on the other side of the descriptor, so that it meets loggers written in Python and native ones
alike. The reader is a process of its own: `python sinks.py KIND FD FILE`. It copies everything that arrives into FILE.
Each line on its stdin, `healthy` or `bad`, changes how it reads. It ends when all writers have closed the pipe.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

FILE, SLOW, STALLED, CHOKED, FROZEN = "file", "slow", "stalled", "choked", "frozen"
KINDS = {
    FILE: "a file",
    SLOW: "1 ms a write",
    STALLED: "stalls 200 ms once a second",
    CHOKED: "pipe read at 64 KiB/s",
    FROZEN: "pipe that nobody reads",
}
BAD = (SLOW, STALLED, CHOKED, FROZEN)

#: Size of one page, the smallest size of a pipe.
PAGE = 4096
_F_SETPIPE_SZ = 1031
_SEQUENCE = re.compile(rb'seq"?[=:] ?(\d+)')


class Sink:
    """One output of one server. `target` is the argument that the server opens: a path or a descriptor's number."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.path = folder / "out.log"
        self.descriptor: int | None = None
        self._reader: subprocess.Popen[str] | None = None
        self.path.touch()
        if kind == FILE:
            return
        reading, self.descriptor = os.pipe()
        # The smallest pipe, so that a logger meets the trouble within a short slice.
        fcntl.fcntl(self.descriptor, _F_SETPIPE_SZ, PAGE)
        if kind == SLOW:
            # In packet mode a read takes what one write has written, at most a page. With room for one packet, each
            # write waits for the reader, as on a device that needs a millisecond for a page or a part of it.
            fcntl.fcntl(self.descriptor, fcntl.F_SETFL, os.O_DIRECT)
        command = [sys.executable, __file__, kind, str(reading), str(self.path)]
        self._reader = subprocess.Popen(command, pass_fds=[reading], stdin=subprocess.PIPE, text=True, bufsize=1)
        os.close(reading)

    @property
    def target(self) -> str:
        """The path or descriptor that the server opens."""
        return str(self.path) if self.descriptor is None else str(self.descriptor)

    def be(self, state: str) -> None:
        """Let the reader read in another way: `healthy` or `bad`."""
        if self._reader is not None and self._reader.stdin is not None:
            self._reader.stdin.write(state + "\n")

    def server_has_it(self) -> None:
        """Close the copy of this process, so that the reader ends with the server."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def finish(self) -> Received:
        """Wait for the reader and count the lines that have arrived."""
        if self._reader is not None:
            self._reader.communicate(timeout=60)
        return counted(self.path.read_bytes())

    def kill(self) -> None:
        """End the reader, if it has not ended."""
        self.server_has_it()
        if self._reader is not None and self._reader.poll() is None:
            self._reader.kill()
            self._reader.wait()


@dataclass(frozen=True)
class Received:
    """What arrived: lines of any kind, numbered records, numbers that came twice."""

    lines: int
    records: int
    doubled: int


def counted(data: bytes) -> Received:
    """Count lines, and records by their numbers."""
    numbers = [int(number) for number in _SEQUENCE.findall(data)]
    return Received(data.count(b"\n"), len(set(numbers)), len(numbers) - len(set(numbers)))


def read(kind: str, descriptor: int, path: str) -> None:
    """Read as the sink of this kind does, until the pipe ends."""
    healthy = threading.Event()
    healthy.set()

    def obey() -> None:
        for line in sys.stdin:
            (healthy.set if line.strip() == "healthy" else healthy.clear)()
        healthy.set()  # the controller has ended

    threading.Thread(target=obey, daemon=True).start()
    began = time.monotonic()
    with open(path, "ab", buffering=0) as file:
        while True:
            if not healthy.is_set():
                if kind == FROZEN:
                    healthy.wait()
                elif kind == SLOW:
                    time.sleep(0.001)
                elif kind == CHOKED:
                    healthy.wait(PAGE / 65_536)
                elif (phase := (time.monotonic() - began) % 1) < 0.2:
                    healthy.wait(0.2 - phase)
            data = os.read(descriptor, PAGE)
            if not data:
                return
            file.write(data)


if __name__ == "__main__":
    read(sys.argv[1], int(sys.argv[2]), sys.argv[3])
