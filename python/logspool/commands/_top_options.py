"""The command line of `top`."""

from __future__ import annotations

import os

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds between two looks, unless `--interval` says otherwise.
INTERVAL = 1.0


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
