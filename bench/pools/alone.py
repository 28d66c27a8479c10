"""A measurement in a process of its own, with no other contender's memory and threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rounds import Round

#: Chosen: ten times the time that the slowest measurement needs on a busy machine.
SECONDS = 300.0


class Failed(Exception):
    """A process that gave no answer."""


def ask(module: str, *arguments: object) -> dict[str, Any]:
    """Have `measure` of a module of this package called in a fresh process and return its figures."""
    program = f"from pools import alone, {module}; alone.answer({module}.measure)"
    command = [sys.executable, "-c", program, json.dumps(arguments)]
    here = Path(__file__).resolve().parent.parent
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=here)
    except subprocess.TimeoutExpired:
        raise Failed(f"hangs: ended after {SECONDS:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise Failed(f"failed (exit code {done.returncode}): {last[:160]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def rounds(module: str, rows: Mapping[str, Sequence[object]]) -> Iterator[Round]:
    """Yield rounds in which each row is measured alone; a row that failed is not tried again."""
    failed: dict[str, str] = {}
    while True:
        found: Round = {}
        for name, arguments in rows.items():
            if name not in failed:
                try:
                    found[name] = ask(module, *arguments)
                    continue
                except Failed as error:
                    failed[name] = str(error)
            found[name] = failed[name]
        yield found


def answer(measure: Callable[..., dict[str, Any]]) -> None:
    """Be that process: measure, print, and leave at once, as how a peer ends is not measured here."""
    sys.stdout.write(json.dumps(measure(*json.loads(sys.argv[1]))) + "\n")
    sys.stdout.flush()
    os._exit(0)


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def threads() -> int:
    """Return how many threads of this process the system knows."""
    return len(os.listdir("/proc/self/task"))
