"""Rounds whose contenders have a process each, and what a process sees of itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import apart
from parts import Round


def rounds(module: str, rows: Mapping[str, Sequence[object]]) -> Iterator[Round]:
    """Yield rounds in which `measure` of a module of this package is called for each row; a failed row is left out."""
    failed: dict[str, str] = {}
    while True:
        found: Round = {}
        for name, arguments in rows.items():
            if name not in failed:
                try:
                    found[name] = apart.ask(f"pools.{module}", *arguments)
                    continue
                except apart.Failed as error:
                    failed[name] = str(error)
            found[name] = failed[name]
        yield found


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def threads() -> int:
    """Return how many threads of this process the system knows."""
    return len(os.listdir("/proc/self/task"))
