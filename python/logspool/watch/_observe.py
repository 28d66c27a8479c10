"""Finds the queues of other processes and reads their counters, from outside of these processes.

The segment of a queue is shared memory, so nothing has to run in the process that is observed: this also works for one
that hangs. Error texts, durations and ages are in the memory of the process and cannot be seen.
"""

from __future__ import annotations

import os

from logspool import _native

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


class NotObserved(Exception):
    """A process cannot be observed. The text says why, and what to do."""


def processes(folder: str | None) -> list[dict[str, Any]]:
    """Return the queues of the running processes in a queue folder whose counters can be read.

    Each is a dict with `pid`, `command`, `overflow_bytes` and `counters`. Raises OSError if the folder cannot be read.
    """
    found = []
    for queue in _native.running(folder):
        if isinstance(queue["counters"], str):
            continue
        command = command_of(queue["pid"]) if queue["is_of_this_namespace"] else "in another pid namespace"
        found.append({**queue, "command": command})
    return sorted(found, key=lambda queue: queue["pid"])


def process(pid: int) -> dict[str, Any]:
    """Return the queue of one process, wherever it is.

    Raises:
        NotObserved: there is no such process, or it has no queue that can be read.
    """
    if pid == os.getpid():
        raise NotObserved("this is the process of this command itself (fix: name another process)")
    mapped = _mapped(pid)
    for path in mapped:
        if f"-{pid}-" in os.path.basename(path) and path.endswith(".seg"):
            try:
                counters = _native.segment_counters(path)
            except OSError as error:
                raise NotObserved(f"the queue of process {pid} cannot be read: {error}") from error
            if counters is not None:
                return _found(pid, counters, _overflow_bytes(path))
    if any(path.startswith("/memfd:logspool") for path in mapped):
        for descriptor in _descriptors(pid):
            try:
                counters = _native.segment_counters(descriptor)
            except OSError:
                continue
            if counters is not None:
                # Its overflow files are descriptors, too, and cannot be told apart.
                return _found(pid, counters, 0)
    if any("logspool-core" in path for path in mapped):
        raise NotObserved(
            f"process {pid} uses logspool but has no queue that another process can read: it has logged nothing yet, "
            "or its queue is in plain memory (fix: wait for its first record; give it another durability than "
            '"memory"; or serve its metrics, see docs/how-to/monitor.md)'
        )
    raise NotObserved(
        f"process {pid} ({command_of(pid)}) does not use logspool (fix: call logspool.install() in it, or start it by "
        "python -m logspool run)"
    )


def _mapped(pid: int) -> list[str]:
    """Return the names of the mappings of a process."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
            # Address, access, offset, device, inode, name.
            parts = [line.split(maxsplit=5) for line in file]
    except PermissionError:
        raise NotObserved(
            f"process {pid} may not be read by this user (fix: run this command as the user of the process, or as root "
            "with CAP_SYS_PTRACE)"
        ) from None
    except (FileNotFoundError, ProcessLookupError):
        raise NotObserved(_ended(pid)) from None
    if not parts:
        # A process that has ended and was not waited for, or a thread of the kernel.
        raise NotObserved(_ended(pid))
    return [line[5].rstrip("\n") for line in parts if len(line) == 6]


def _ended(pid: int) -> str:
    try:
        waiting = sum(orphan["waiting"] for orphan in _native.orphans(None) if orphan["pid"] == pid)
    except OSError:
        waiting = 0
    if waiting:
        return (
            f"process {pid} has ended, and {waiting} of its records are not in their files yet (fix: "
            "python -m logspool recover)"
        )
    return f"no process with the id {pid} runs (fix: without --pid, this command lists those that use logspool)"


def _found(pid: int, counters: Mapping[str, Any], overflow_bytes: int) -> dict[str, Any]:
    return {"pid": pid, "command": command_of(pid), "overflow_bytes": overflow_bytes, "counters": counters}


def _overflow_bytes(segment: str) -> int:
    """Return the bytes of the overflow files beside a segment."""
    folder, name = os.path.split(segment)
    start = name.removesuffix("seg") + "over-"
    total = 0
    try:
        for entry in os.scandir(folder):
            if entry.name.startswith(start):
                total += entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:
        pass
    return total


def _descriptors(pid: int) -> list[str]:
    """Return the paths of a process's descriptors of files in memory that logspool made."""
    folder = f"/proc/{pid}/fd"
    found = []
    try:
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.readlink(path).startswith("/memfd:logspool "):
                found.append(path)
    except OSError:
        pass
    return found


def command_of(pid: int) -> str:
    """Return the command line of a process, or its name if it has no command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return " ".join(os.fsdecode(word) for word in words)
        with open(f"/proc/{pid}/comm", "rb") as file:
            return os.fsdecode(file.read().strip())
    except OSError:
        return "ended"


def of_this_group() -> list[dict[str, Any]]:
    """Return the queues of the other processes of this process group: the workers of one server."""
    own = os.getpgrp()
    found = []
    try:
        queues = _native.running(None)
    except OSError:
        # The folder cannot be read, so this process has no queue there either.
        return []
    for queue in queues:
        if not queue["is_of_this_namespace"] or isinstance(queue["counters"], str):
            continue
        try:
            if os.getpgid(queue["pid"]) == own:
                found.append(queue)
        except ProcessLookupError:
            continue
    return found


def by_name(sinks: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the sums of sinks by name: a file that was closed and opened again is one sink."""
    found: dict[str, dict[str, Any]] = {}
    for sink in sinks:
        total = found.setdefault(
            sink["name"],
            {"written": 0, "waiting": 0, "dropped": 0, "bytes_written": 0, "errors": 0, "closed": True},
        )
        total["written"] += sum(sink["written"].values())
        total["dropped"] += sum(sum(levels.values()) for levels in sink["dropped"].values())
        for counter in ("waiting", "bytes_written", "errors"):
            total[counter] += sink[counter]
        total["closed"] = total["closed"] and sink["closed"]
    return found
