"""Words and colours for people who watch the scripts work.

Progress goes to standard error, so that a script can print a result for another one.
"""

import os
import sys
from typing import TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def colours_wanted(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal whose user did not ask for plain text."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def paint(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """Wrap `text` in the named styles if the stream shows them."""
    if not styles or not colours_wanted(stream or sys.stdout):
        return text
    codes = ";".join(_STYLES[style] for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def step(text: str) -> None:
    """Announce the next step."""
    print(paint(f"==> {text}", "bold", "cyan", stream=sys.stderr), file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print one indented line."""
    print(f"    {text}", file=sys.stderr, flush=True)


def fail(text: str, code: int = 1) -> SystemExit:
    """Print an error and return the exception that ends the script."""
    print(paint(f"error: {text}", "bold", "red", stream=sys.stderr), file=sys.stderr, flush=True)
    return SystemExit(code)
