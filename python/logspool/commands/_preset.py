"""`python -m logspool preset`: print the configuration of a framework as JSON."""

from __future__ import annotations

import sys

from logspool import presets
from logspool.base import _options
from logspool.commands import _messages

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_OPTIONS = ("--file", "--json", "--level")


def main(arguments: Sequence[str]) -> int:
    """Print one configuration, or list all. Returns the exit code: 0, or 2 for a wrong command line."""
    if not arguments:
        width = max(map(len, presets.PRESETS))
        for name, (_, use) in presets.PRESETS.items():
            print(f"{_messages.coloured(f'{name:{width}}', 'bold', sys.stdout)}  {use}")
        return 0
    name, *rest = arguments
    options: dict[str, Any] = {}
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        if word not in _OPTIONS:
            return _messages.usage(f"preset {name}", f"no option is named {word!r}; {_options.meant(word, _OPTIONS)}")
        if word == "--json":
            options["json"] = True
            continue
        if not equals and not rest:
            return _messages.usage(f"preset {name}", f"{word} needs a value (fix: --help)")
        options[word[2:]] = value if equals else rest.pop(0)
    if "level" in options:
        import logging

        known = [level for level in logging._nameToLevel if level != "NOTSET"]
        if options["level"] not in known:
            wrong = f"no level is named {options['level']!r}; {_options.meant(options['level'], known)}"
            return _messages.usage(f"preset {name}", wrong)
    try:
        found = presets.preset(name, **options)
    except ValueError as error:
        return _messages.usage("preset", f"{error} (fix: python -m logspool preset lists them)")
    import json

    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0
