"""What `top` shows: a table of queues and outputs, looked at again and again."""

from __future__ import annotations

import time

from logspool.commands import _messages
from logspool.watch import _observe

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from logspool.commands._top_options import Options

COLUMNS = ("pid", "output", "written", "records/s", "bytes/s", "waiting", "dropped", "errors", "queue")


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
