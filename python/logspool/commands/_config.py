"""`python -m logspool config`: show the options that a program would have, and check variables and files."""

from __future__ import annotations

import os
import sys

from logspool.base import _options
from logspool.commands import _messages
from logspool.process import _configuration, _install_options

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = ("show", "check")


def main(arguments: Sequence[str]) -> int:
    """Run `show` or `check [FILE]`. Returns the exit code: 0 for no fault, 1 for faults, 2 for a wrong command line."""
    if not arguments:
        return _messages.usage("config", "say show or check (fix: --help)")
    word, rest = arguments[0], arguments[1:]
    if word not in _WORDS:
        return _messages.usage("config", f"no command is named {word!r}; {_options.meant(word, _WORDS)} (fix: --help)")
    if len(rest) > (word == "check") or any(each.startswith("-") for each in rest):
        takes = "one file at most" if word == "check" else "nothing"
        return _messages.usage(f"config {word}", f"takes {takes}, not {' '.join(rest)!r} (fix: --help)")
    return _show() if word == "show" else _check(rest[0] if rest else None)


def _show() -> int:
    configuration = _configuration.read()
    configuration.check()
    for row in _install_options.rows():
        setting = configuration.settings.get(row["name"])
        place = _messages.coloured(setting.place, "green", sys.stdout) if setting else "default"
        value = setting.value if setting else row["default"]
        if value is None and row["default"] is None:
            print(f"# {row['name']} is not set")
        else:
            print(f"{row['name']} = {_configuration.literal(value)}  # {place}")
    if os.environ.get("LOGSPOOL") == "off":
        print("# LOGSPOOL=off: install() and run do nothing")
    if configuration.ignored is not None:
        print(f"# {configuration.ignored}")
    return _report(configuration)


def _check(path: str | None) -> int:
    configuration = _configuration.read() if path is None else _configuration.read_file(path)
    configuration.check()
    if configuration.ignored is not None:
        configuration.faults.append(configuration.ignored)
    if not configuration.faults:
        number = _messages.counted(len(configuration.settings), "option")
        where = "in the environment and no file" if configuration.file is None else f"with {configuration.file}"
        where = f"in {configuration.file}" if path is not None else where
        print(f"{_messages.coloured('ok', 'green', sys.stdout)}: {number} set {where}")
    return _report(configuration)


def _report(configuration: _configuration.Configuration) -> int:
    """Write the faults to standard error; return the exit code."""
    for fault in configuration.faults:
        _messages.failed("config", str(fault))
    return 1 if configuration.faults else 0
