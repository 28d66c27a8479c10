"""Output of the commands. Colours are used only on a terminal, and errors are written to stderr."""

from __future__ import annotations

import os
import sys

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"red": "31", "yellow": "33", "green": "32", "bold": "1"}


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Return the text, coloured if `stream` is a terminal that shows colours and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def _print_message(command: str, text: str) -> None:
    name = f"python -m logspool {command}".rstrip()
    sys.stderr.write(f"{coloured(name + ':', 'red', sys.stderr)} {text}\n")


def usage(command: str, text: str) -> int:
    """Report a mistake in the command line. Returns the exit code 2."""
    _print_message(command, text)
    return 2


def failed(command: str, text: str) -> int:
    """Report what could not be done. Returns the exit code 1."""
    _print_message(command, text)
    return 1


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: `1 record`, `2 records`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return a number of bytes as text with a unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def age(seconds: float) -> str:
    """Return a duration as text with a unit."""
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return counted(int(seconds), "second")
