"""`python -m logspool top`: the queues, outputs and rates of running processes, seen from outside."""

from __future__ import annotations

import os
import sys
import time

from logspool.commands import _messages
from logspool.watch import _observe

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Seconds between two looks, unless `--interval` says otherwise.
INTERVAL = 1.0
#: Seconds between the two looks of `--once`. Chosen: a program of 100 records a second shows its rate.
ONCE_SECONDS = 0.5

COLUMNS = ("pid", "output", "written", "records/s", "bytes/s", "waiting", "dropped", "errors", "queue")


class Options:
    """The command line, checked.

    Raises:
        ValueError: with the mend.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.pid: int | None = None
        self.name: str | None = None
        self.folder: str | None = None
        self.interval = INTERVAL
        self.once = False
        words = list(arguments)
        while words:
            word, _, value = words.pop(0).partition("=")
            if word == "--once":
                self.once = True
                continue
            if word not in ("--pid", "--name", "--queue-dir", "--interval"):
                raise ValueError(f"there is no option {word!r} (fix: --help)")
            if not value:
                if not words:
                    raise ValueError(f"{word} needs a value (fix: --help)")
                value = words.pop(0)
            self._set(word, value)
        if self.pid is not None and self.name is not None:
            raise ValueError("--pid and --name exclude each other (fix: give one of them)")

    def _set(self, word: str, value: str) -> None:
        if word == "--pid":
            if not value.isascii() or not value.isdecimal() or int(value) == 0:
                raise ValueError(
                    f"--pid takes the id of a process, not {value!r} (fix: --name {value} finds it by name)"
                )
            self.pid = int(value)
        elif word == "--interval":
            try:
                self.interval = float(value)
            except ValueError:
                self.interval = -1.0
            if not 0.1 <= self.interval <= 3600:
                raise ValueError(f"--interval takes seconds from 0.1 to 3600, not {value!r}")
        elif word == "--queue-dir":
            if not os.path.isdir(value):
                raise ValueError(f"--queue-dir: {value!r} is no folder (fix: the LOGSPOOL_QUEUE_DIR of the process)")
            self.folder = value
        else:
            self.name = value


class View:
    """The newest look at the processes, and the rates since the look before."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._before: dict[tuple[int, float, str], tuple[float, int, int]] = {}
        self.rows: list[tuple[str, ...]] = []
        self.notes: list[str] = []

    def look(self) -> None:
        """Look at the processes, and make the rows.

        Raises:
            NotObserved: there is no process to look at; the text has the mend.
        """
        now = time.monotonic()
        seen: dict[tuple[int, float, str], tuple[float, int, int]] = {}
        self.rows = []
        for queue in self._queues():
            counters = queue["counters"]
            refused = sum(sum(levels.values()) for levels in counters["refused"].values())
            size = f"{_messages.size(counters['lane_bytes'])} in {counters['lanes']} lanes"
            if queue["overflow_bytes"]:
                size += f", {_messages.size(queue['overflow_bytes'])} overflow"
            if refused:
                size += f", {refused} refused"
            sinks = _observe.by_name(counters["sinks"])
            for name, sink in (sinks or {"(no output yet)": dict.fromkeys(_NOTHING, 0)}).items():
                key = (queue["pid"], counters["created_seconds"], name)
                seen[key] = (now, sink["written"], sink["bytes_written"])
                self.rows.append(
                    (
                        str(queue["pid"]),
                        _shown(name) + (" (closed)" if sink["closed"] else ""),
                        str(sink["written"]),
                        *self._rates(key, seen[key]),
                        str(sink["waiting"]),
                        str(sink["dropped"]),
                        str(sink["errors"]),
                        size,
                    )
                )
                size = ""
            self.notes.append(f"{queue['pid']}: {_shown(queue['command'])}")
        self._before = seen

    def _queues(self) -> list[dict[str, Any]]:
        self.notes = []
        options = self._options
        if options.pid is not None:
            return [_observe.process(options.pid)]
        try:
            found = _observe.processes(options.folder)
        except OSError as error:
            raise _observe.NotObserved(
                f"the queue folder cannot be read: {error} (fix: --queue-dir DIR, as the process has it)"
            ) from error
        if not found:
            raise _observe.NotObserved(
                "no running process has a queue in the queue folder: those of this user log nothing yet, or have "
                "another folder (fix: --pid PID finds the queue of a process wherever it is; --queue-dir DIR names "
                "another folder)"
            )
        if options.name is None:
            return found
        named = [queue for queue in found if options.name in queue["command"]]
        if not named:
            others = "; ".join(f"{queue['pid']} {_shown(queue['command'])[:60]}" for queue in found[:5])
            raise _observe.NotObserved(
                f"no running process with a queue has {options.name!r} in its command line (fix: a part of one of "
                f"these: {others})"
            )
        return named

    def _rates(self, key: tuple[int, float, str], now: tuple[float, int, int]) -> tuple[str, str]:
        before = self._before.get(key)
        if before is None or now[0] <= before[0]:
            return "-", "-"
        seconds = now[0] - before[0]
        return f"{(now[1] - before[1]) / seconds:.0f}", _messages.size((now[2] - before[2]) / seconds)


#: The counters of `_observe.by_name`, for a process without outputs.
_NOTHING = ("written", "waiting", "dropped", "bytes_written", "errors", "closed")


def _shown(text: str) -> str:
    """Return a text of another process without control characters, which could change the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def plain(view: View) -> str:
    """Return the table as plain text."""
    table = [COLUMNS, *view.rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    left = (1, len(COLUMNS) - 1)
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in table
    ]
    return "\n".join([*lines, "", *view.notes]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Show the table until Ctrl-C. Returns the exit code."""
    try:
        options = Options(arguments)
    except ValueError as error:
        return _messages.usage("top", str(error))
    live: Any = None
    if not options.once and sys.stdout.isatty():
        try:
            from logspool.commands import _top_live

            live = _top_live
        except ImportError:
            return _messages.failed(
                "top",
                "the live view needs the package rich (fix: pip install 'logspool[top]'; --once prints one plain table "
                "without it)",
            )
    view = View(options)
    try:
        view.look()
        if live is not None:
            return int(live.show(view, options.interval))
        return _print_tables(view, options)
    except _observe.NotObserved as error:
        return _messages.failed("top", str(error))
    except KeyboardInterrupt:
        return 0


def _print_tables(view: View, options: Options) -> int:
    while True:
        time.sleep(ONCE_SECONDS if options.once else options.interval)
        view.look()
        sys.stdout.write(plain(view) if options.once else plain(view) + "\n")
        sys.stdout.flush()
        if options.once:
            return 0
