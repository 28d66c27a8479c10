"""`ColoredFormatter` of colorlog: colours as attributes, and the end of colours after the line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from logspool.adoption import _descriptions
from logspool.adoption.known._checks import is_function_of, is_text, unknown_release, watch
from logspool.adoption.known._styled import FIRST, LAST, Derived, Styled, described, texts_of_levels

CALLED = ("_escape_code_map", "_colorize", "_blank_escape_codes", "_append_reset")


def describe(
    formatter: Any, types: list[tuple[type, int]], watched: list[tuple[Any, int, int, int]]
) -> _descriptions.Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    module, codes_module = sys.modules["colorlog.formatter"], sys.modules["colorlog.escape_codes"]
    reason = unknown_release("colorlog", "colorlog", (6, 7), (6, 12))
    if reason is not None:
        return reason
    if not is_function_of(codes_module.parse_colors, codes_module, "parse_colors"):
        return "parse_colors is patched"
    static = vars(module.ColoredFormatter).get("_get_escape_code")
    if not is_function_of(getattr(static, "__func__", None), module, "ColoredFormatter._get_escape_code"):
        return "_get_escape_code is patched"
    if "_get_escape_code" in vars(formatter):
        return "_get_escape_code is replaced on the formatter"
    if formatter.stream is not None:
        return "its colours depend on its stream"
    colours = {"": formatter.log_colors}
    if type(formatter.secondary_log_colors) is not dict:
        return "its colours are no dict"
    watch(formatter.secondary_log_colors, watched)
    colours |= {f"{name}_": mapping for name, mapping in formatter.secondary_log_colors.items()}
    for mapping in (codes_module.escape_codes, *colours.values()):
        if type(mapping) is not dict:
            return "its colours are no dict"
        watch(mapping, watched)
        if not all(is_text(name) and is_text(value) for name, value in list(mapping.items())):
            return "its colours are no plain text"
    if any(name.startswith("Level ") for mapping in colours.values() for name in mapping):
        return "it has colours for levels without a name"
    # The variables NO_COLOR and FORCE_COLOR are looked up for each line.
    variables = getattr(os.environ, "_data", None)
    if type(variables) is not dict:
        return "os.environ is patched"
    watch(variables, watched)
    # Releases before 6.10 ask for the opposite.
    is_new = hasattr(formatter, "_colorize")
    shows_colours = bool(formatter._colorize()) if is_new else not formatter._blank_escape_codes()
    codes: dict[str, str] = codes_module.escape_codes if shows_colours else dict.fromkeys(codes_module.escape_codes, "")
    template = getattr(formatter._style, "_fmt", None)
    derived = [
        (name, Derived("level", ranges=[(FIRST, LAST, code, None)]))
        for name, code in codes.items()
        if type(template) is str and name in template
    ]
    for prefix, mapping in colours.items():
        name = f"{prefix}log_color"
        if name in codes:
            return "an escape code has the name of its colours"
        try:
            texts = texts_of_levels((), _codes_of(formatter, mapping))
        except KeyError:
            return "it has an unknown colour"
        derived.append((name, Derived("level", listed=texts if shows_colours else [])))
    return described(
        formatter,
        Styled(
            derived,
            end=codes["reset"] if formatter.reset else "",
            own_exceptions="formatException" in vars(module.ColoredFormatter),
        ),
    )


def _codes_of(formatter: Any, mapping: dict[str, str]) -> Callable[[str, int], str]:
    def code(level: str, number: int) -> str:
        return str(formatter._get_escape_code(mapping, level))

    return code
