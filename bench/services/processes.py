"""The resources of processes: processor time and memory, as Linux reports them."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process, of its threads and of its children that have ended."""
    return sum(map(int, _stat(process)[11:15])) / TICKS


def children(process: int) -> list[int]:
    """Return the children of a process."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def family_cpu_seconds(process: int) -> float:
    """Return the processor time of a process and of all children that it has or had."""
    total = cpu_seconds(process)
    for child in children(process):
        try:
            total += cpu_seconds(child)
        except OSError:  # It ended meanwhile.
            continue
    return total


def memory_mb(process: int) -> float:
    """Return the memory of a process that is in RAM."""
    return _status_mb(process, "VmRSS")


def peak_memory_mb(process: int) -> float:
    """Return the most memory that a process ever had in RAM."""
    return _status_mb(process, "VmHWM")


def threads(process: int) -> int:
    """Return how many threads a process has."""
    return len(os.listdir(f"/proc/{process}/task"))


def _status_mb(process: int, name: str) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


def _stat(process: int) -> list[str]:
    """Return the fields after the name of the program, which may contain spaces."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
