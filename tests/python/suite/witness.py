"""Reads from a pipe one line for each call of a program that has returned, until the program is killed."""

import os
import subprocess
from collections.abc import Callable


def of(child: subprocess.Popen, reader: int, writer: int, after: int, kill: Callable[[], object]) -> bytes:
    """Call `kill` after `after` lines; return all whole lines once no process holds the other end. Closes both ends.

    The last line may be torn: its call had returned, but its number is not known.
    """
    seen = bytearray()
    with os.fdopen(reader, "rb", buffering=0) as lines:
        os.close(writer)
        while seen.count(b"\n") < after:
            data = lines.read(1 << 16)
            assert data, f"the program ended by itself with {child.wait()}"
            seen += data
        kill()
        while data := lines.read(1 << 16):
            seen += data
    return bytes(seen[: seen.rfind(b"\n") + 1])
