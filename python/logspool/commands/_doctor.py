"""Report the problems of this machine and this process that would affect logspool.

As a command, it inspects the machine. Inside a program, `findings()` also inspects the program's loggers and handlers.
"""

from __future__ import annotations

import os
import sys

from logspool import _native
from logspool.adoption import _own_classes
from logspool.base import _interpreter, _options
from logspool.commands import _messages
from logspool.process import _configuration, _keeper
from logspool.watch import _advice, _stats

# `typing` is slow to import; type checkers recognise this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, TextIO

#: A write that takes longer counts as hanging. Chosen: a hundred times as long as a write to a busy disk.
STUCK_SECONDS = 1.0


class Finding:
    """One problem that `findings()` found.

    Attributes:
        place: the folder, file or logger concerned.
        text: the problem.
        fix: the action to take; empty if no action is needed.
    """

    def __init__(self, place: str, text: str, fix: str = "") -> None:
        self.place = place
        self.text = text
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" + (f" (fix: {self.fix})" if self.fix else "")


def main(arguments: Sequence[str]) -> int:
    """Print the findings. Return 0 if there is no problem, else 1."""
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        return _messages.usage("doctor", f"takes one folder at most, not {' '.join(arguments)!r} (fix: --help)")
    if _interpreter.without_core:
        return _without_core()
    folder = arguments[0] if arguments else queue_dir()
    if arguments and not os.path.isdir(folder):
        return _messages.usage("doctor", f"cannot look into {folder!r}: no such folder (fix: name the queue folder)")
    named = bool(arguments) or _is_named()
    found = [
        *_machine(folder, named),
        *_missing_calls(forks=True),
        *_python(),
        *_leftovers(folder),
        *_sidecars(folder),
    ]
    _show(found, sys.stdout)
    if not found:
        print(f"{_messages.coloured('ok', 'green', sys.stdout)}: nothing found in {folder} that would hurt")
    python = f"{sys.implementation.name} {sys.version.split()[0]}"
    print(f"{_messages.coloured('version', 'bold', sys.stdout)}: {_native.__version__}, native, for {python}")
    slow = _interpreter.slow_paths()
    fast = f"all fast paths but {', '.join(slow)}" if slow else "all fast paths are on"
    print(f"{_messages.coloured('speed', 'bold', sys.stdout)}: {fast}")
    print(f"{_messages.coloured('queue', 'bold', sys.stdout)}: {_where(folder, named)}")
    if of_memory := _keepers(_keeper.IN_MEMORY):
        print(f"{_messages.coloured('keepers of queues in memory', 'bold', sys.stdout)}: {of_memory}")
    print(f"{_messages.coloured('keepers', 'bold', sys.stdout)}: {_keepers(folder) or 'none'}")
    for name, reason in slow.items():
        print(f"{_messages.coloured('slow on this Python', 'bold', sys.stdout)}: {name}: {reason}")
    return 1 if found else 0


def _without_core() -> int:
    """Say that there is no native module. What else a machine lacks then makes no difference."""
    why, _, fix = _interpreter.native_no().removesuffix(")").partition(" (fix: ")
    _show([Finding("native: no", why.removeprefix("native: no: "), fix)], sys.stdout)
    return 1


def report() -> None:
    """Write to standard error what the program's handlers and loggers cost its callers, and what to do about it."""
    found = [*_handlers(), *_paths()]
    _show(found, sys.stderr)
    if not found:
        calls = _messages.counted(sum(_stats.stats().paths.values()), "call")
        print(f"logspool: {calls}, no Python code of filters, formatters or handlers in the caller", file=sys.stderr)


def _show(found: Iterable[Finding], to: TextIO) -> None:
    for finding in found:
        print(_messages.coloured(finding.place, "bold", to), file=to)
        print(f"  {_messages.coloured('found', 'yellow', to)}  {finding.text}", file=to)
        if finding.fix:
            print(f"  {_messages.coloured('fix', 'green', to)}   {finding.fix}", file=to)


def _keepers(folder: str) -> str:
    return ", ".join(f"process {keeper} for process {program}" for keeper, program in _keeper.running(folder))


def findings() -> list[Finding]:
    """Return the problems of this machine and this process."""
    if _interpreter.without_core:
        return [Finding("native: no", _interpreter.without_core), *_handlers()]
    folder = queue_dir()
    return [
        *_machine(folder, _is_named()),
        *_missing_calls(),
        *_python(),
        *_leftovers(folder),
        *_sidecars(folder),
        *_memory(),
        *_handlers(),
        *_paths(),
    ]


def queue_dir() -> str:
    """Return the queue folder that this process has, or would have if it logged."""
    return str(_chosen() or _options.default_queue_dir())


def _chosen() -> str | None:
    options = _stats.options_in_force()
    return options["queue_dir"] if options is not None else _configuration.text_of("queue_dir")


def _is_named() -> bool:
    """Return whether the user has set the queue folder."""
    return bool(_chosen())


def _machine(folder: str, named: bool) -> Iterator[Finding]:
    if os.environ.get("LOGSPOOL") == "off":
        yield Finding("LOGSPOOL=off", "install() and run do nothing", "unset LOGSPOOL")
    obstacle = _obstacle(folder, named)
    if obstacle is not None:
        yield Finding(obstacle.place, f"{obstacle.text}: the queue is {_instead()}", obstacle.fix)
    elif (kind := _filesystem(_existing(folder))) not in _IN_MEMORY:
        yield Finding(
            folder,
            f"is on {kind}, not on tmpfs: a call may wait for the disk",
            "set LOGSPOOL_QUEUE_DIR to a folder on tmpfs",
        )


def _missing_calls(*, forks: bool = False) -> Iterator[Finding]:
    for call in _native.missing_calls(forks=forks):
        yield Finding(call["name"], f"is refused here ({os.strerror(call['errno'])}): {call['weaker']}", call["fix"])


def _python() -> Iterator[Finding]:
    _interpreter.choose()
    if reason := _interpreter.obstacle():
        yield Finding(f"Python {sys.version.split()[0]}", reason, "a newer release of logspool, or an older Python")


def _obstacle(folder: str, named: bool) -> Finding | None:
    """Return why a program that starts now cannot have its queue in this folder, or None if it can."""
    parent = _existing(folder)
    try:
        status = os.statvfs(parent)
        owner = os.lstat(parent)
    except OSError as error:
        return Finding(parent, f"{error.strerror}", "mount a tmpfs there, or set LOGSPOOL_QUEUE_DIR to a folder on one")
    if parent == folder and (owner.st_uid != os.geteuid() or owner.st_mode & 0o077 or not os.path.isdir(folder)):
        return Finding(
            folder,
            f"belongs to user {owner.st_uid} with mode {owner.st_mode & 0o7777:04o}; it must be a folder of user "
            f"{os.geteuid()} with mode 0700",
            f"remove it as its owner or as root (rm -r {folder}), or set LOGSPOOL_QUEUE_DIR to a folder of this user",
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        return Finding(parent, "this user cannot write there", "set LOGSPOOL_QUEUE_DIR to a folder of this user")
    if not named and (kind := _filesystem(parent)) not in _IN_MEMORY:
        return Finding(
            parent, f"is on {kind}, not on tmpfs", "mount a tmpfs there, or set LOGSPOOL_QUEUE_DIR to a folder on one"
        )
    free = status.f_bavail * status.f_frsize
    least = _native.counter_names()["least_free_bytes"]
    if free < least:
        return Finding(
            parent,
            f"{_messages.size(free)} are free, {_messages.size(least)} are needed",
            "enlarge it (docker run --shm-size), or set LOGSPOOL_QUEUE_DIR to a folder on another tmpfs",
        )
    return None


def _existing(folder: str) -> str:
    return folder if os.path.lexists(folder) else os.path.dirname(os.path.abspath(folder))


#: File systems on which writes never wait for a disk. The empty string is for a type that the kernel does not report.
_IN_MEMORY = ("tmpfs", "ramfs", "")


def _instead() -> str:
    """Return where the queue is if it cannot be in its folder."""
    command, why = _keeper.command()
    if command is not None:
        return "in memory that a keeper process holds, which delivers it when the program dies"
    return f"in plain memory and dies with the process, because it has no keeper ({why})"


def _where(folder: str, named: bool) -> str:
    """Return where a program that starts now would have its queue."""
    if _obstacle(folder, named) is not None:
        return _instead()
    return f"in {folder}, on {_filesystem(_existing(folder)) or 'a file system of unknown kind'}"


def _filesystem(path: str) -> str:
    """Return the type of the file system that holds `path`, or an empty string."""
    try:
        device = os.stat(path).st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        words = line.split()
        if words[2] == wanted:
            return words[words.index("-") + 1]
    return ""


def _leftovers(folder: str) -> Iterator[Finding]:
    if not os.path.isdir(folder):
        return
    try:
        orphans = _native.orphans(folder)
    except PermissionError:
        # `_machine` has reported this.
        return
    except OSError as error:
        yield Finding(folder, f"cannot be read: {error}", f"chmod 700 {folder}, owned by the user of the program")
        return
    fix = f"python -m logspool recover {folder}"
    for orphan in orphans:
        pending = [
            f"{_messages.counted(records, 'record')} for {place}"
            for place, records in orphan["pending"].items()
            if records
        ]
        what = ", ".join(pending) or ("nothing undelivered" if orphan["readable"] else "a segment that cannot be read")
        yield Finding(
            f"process {orphan['pid']}",
            f"ended at most {_messages.age(orphan['age_seconds'])} ago and left {what}; it takes "
            f"{_messages.size(orphan['bytes'])} in {folder}",
            fix if orphan["readable"] else f"{fix}; what stays then: rm {os.path.join(folder, orphan['name'])}*",
        )
    beyond = [orphan for orphan in orphans if orphan["beyond_cap"]]
    if beyond:
        size = _messages.size(sum(orphan["bytes"] for orphan in beyond))
        yield Finding(folder, f"leftovers take {size} more than they should, the oldest first in line", fix)


def _sidecars(folder: str) -> Iterator[Finding]:
    try:
        sidecars = _native.sidecars(folder)
    except OSError:
        # `_leftovers` has reported this.
        return
    for sidecar in sidecars:
        place = str(sidecar["path"] or sidecar["name"])
        inside = sidecar["inside_seconds"]
        if inside is not None and inside > STUCK_SECONDS:
            yield Finding(
                place,
                f"a process has been writing to it for {_messages.age(inside)}; the others that log to it keep their "
                "records in shared memory",
                "check its disk, and the processes that have it open (fuser, lsof)",
            )
        elif sidecar["unfinished"]:
            yield Finding(
                place,
                "a killed process left a write to it unfinished",
                f"python -m logspool recover {folder}, or let a program log to it",
            )
        if sidecar["torn_lines"]:
            torn = _messages.counted(sidecar["torn_lines"], "torn line")
            yield Finding(place, f"kills left {torn}, which were ended")


def _memory() -> Iterator[Finding]:
    from logspool.watch import _health

    stats = _stats.stats()
    for reason in _health._memory(stats):
        yield Finding("queue", reason)
    if stats.queue.place == "memfd" and stats.queue.survives:
        yield Finding(
            "queue",
            "is in memory that a keeper process holds, which delivers it when this one dies: "
            f"{stats.queue.place_reason}",
            "make the folder usable and start the program again",
        )


def _all_handlers() -> list[tuple[str, logging.Handler]]:
    """Return (name of the logger, handler) for every handler that is attached to a logger of this process."""
    logging = sys.modules.get("logging")
    if logging is None:
        return []
    loggers = [logging.root, *(item for item in logging.root.manager.loggerDict.values() if hasattr(item, "handlers"))]
    return [(logger.name, handler) for logger in loggers for handler in logger.handlers]


def _handlers() -> Iterator[Finding]:
    writers: dict[str, dict[int, str]] = {}
    several = _worker_processes()
    rotating = getattr(sys.modules.get("logging.handlers"), "BaseRotatingHandler", None)
    threaded = getattr(sys.modules.get("logspool.thread._handler"), "ThreadHandler", None)
    for name, handler in _all_handlers():
        path = getattr(handler, "baseFilename", None)
        if type(path) is str:
            writers.setdefault(path, {})[id(handler)] = name
        together = isinstance(handler, _own_classes.SharedRotation) and not _interpreter.without_core
        if rotating is not None and isinstance(handler, rotating) and several and not together:
            yield Finding(
                str(path),
                f"is rotated by {type(handler).__qualname__} of {name!r}, and {several}: each of them renames the file "
                "under the others, as with stock logging",
                f"logspool.{type(handler).__name__}, or one file for each process, or WatchedFileHandler and logrotate",
            )
        if threaded is not None and isinstance(handler, threaded) and _waits_for_ever(handler):
            yield Finding(
                f"ThreadHandler of {name!r}",
                "blocking_timeout=None: when its handler hangs, every thread that logs at a blocking level hangs too",
                "blocking_timeout=1.0, or blocking_levels=()",
            )
    for path, names in writers.items():
        if len(names) > 1:
            listed = " and ".join(repr(name) for name in names.values())
            yield Finding(
                path,
                f"is written by {len(names)} handlers, of {listed}: lines may appear twice, and in no common order",
                "one handler for a file, on the logger above the others",
            )


def _waits_for_ever(handler: Any) -> bool:
    return handler._blocking_timeout is None and bool(handler._blocking_levels)


def _worker_processes() -> str:
    """Return why this process is probably one of several worker processes, or an empty string."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        if multiprocessing.parent_process() is not None:
            return "this process is a worker of another"
        children = multiprocessing.active_children()
        if children:
            return f"worker processes run ({len(children)})"
    if os.environ.get("WEB_CONCURRENCY", "1") not in ("", "0", "1"):
        return f"WEB_CONCURRENCY is {os.environ['WEB_CONCURRENCY']}"
    return ""


def _paths() -> Iterator[Finding]:
    for name, path in _stats.stats().loggers.items():
        if path.reason and not path.reason.endswith(_advice.DEFERRED):
            calls = _messages.counted(path.by_record + path.stock or path.native, "call")
            yield Finding(f"logger {name!r}", f"{calls} ran Python code in the caller: {path.reason}", path.advice)
