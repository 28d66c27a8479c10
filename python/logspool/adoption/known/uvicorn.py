"""`DefaultFormatter` and `AccessFormatter` of uvicorn.

They show the level as `levelprefix`, in colours if asked, and the arguments of an access line as attributes.
"""

from __future__ import annotations

import copy
import http
import sys
from types import FunctionType
from typing import Any

from logspool.adoption import _descriptions
from logspool.adoption.known._checks import is_function_of, unknown_release, watch
from logspool.adoption.known._styled import FIRST, LAST, Derived, Range, Styled, described, texts_of_levels

CALLED = ("color_level_name", "get_status_code")

#: The names that `AccessFormatter` gives to the arguments.
_ARGUMENTS = ["client_addr", "method", "full_path", "http_version", "status_code"]


def describe(
    formatter: Any, types: list[tuple[type, int]], watched: list[tuple[Any, int, int, int]]
) -> _descriptions.Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    reason = unknown_release("uvicorn", "uvicorn", (0, 20), (0, 54)) or _changed_module()
    if reason is not None:
        return reason
    if type(formatter.use_colors) is not bool:
        return "its use_colors is no bool"
    reason = _colours(formatter.level_name_colors, watched)
    if reason is not None:
        return reason

    def prefix(name: str, number: int) -> str:
        coloured = formatter.color_level_name(name, number) if formatter.use_colors else name
        return f"{coloured}:{' ' * (8 - len(name))}"

    levels = Derived(
        "level",
        listed=texts_of_levels(formatter.level_name_colors, prefix),
        ranges=[(0, 9, "Level ", ": "), (FIRST, LAST, "Level ", ":")],
    )
    derived = [("levelprefix", levels)]
    # With colours, a message with this field is shown in another way.
    limits = [("color_message", False)] if formatter.use_colors else []
    arguments: list[str] = []
    if type(formatter).__name__ == "AccessFormatter":
        reason = _colours(formatter.status_code_colours, watched)
        if reason is not None:
            return reason
        template = getattr(formatter._style, "_fmt", None)
        if type(template) is not str or "status_code" not in template:
            # uvicorn reads the number in any case, and raises if it is none.
            return "its format does not show the status code"
        derived += _access(formatter)
        arguments = _ARGUMENTS
    return described(formatter, Styled(derived, arguments=arguments, limits=limits))


def _changed_module() -> str | None:
    module = sys.modules["uvicorn.logging"]
    # Releases before 0.50 colour with click.
    home, function = "uvicorn._ansi", getattr(module, "ansi_style", None)
    if function is None:
        home, function = "click.termui", module.click.style
    if not is_function_of(function, sys.modules.get(home), "style"):
        return "its colours are not those of uvicorn"
    if module.copy is not copy.copy or module.http is not http:
        return "a function that it calls is patched"
    return None


def _colours(functions: Any, watched: list[tuple[Any, int, int, int]]) -> str | None:
    """Return why the functions that colour a text are not uvicorn's own."""
    if type(functions) is not dict:
        return "its colours are no dict"
    watch(functions, watched)
    home = sys.modules["uvicorn.logging"].__file__
    for function in list(functions.values()):
        if type(function) is not FunctionType or function.__code__.co_filename != home:
            return "its colours are not those of uvicorn"
    return None


def _access(formatter: Any) -> list[tuple[str, Derived]]:
    bold, off = ("\x1b[1m", "\x1b[0m") if formatter.use_colors else ("", "")
    request = [
        (False, bold),
        (True, "method"),
        (False, " "),
        (True, "full_path"),
        (False, " HTTP/"),
        (True, "http_version"),
        (False, off),
    ]
    ranges: list[Range] = []
    if formatter.use_colors:
        for hundred, colour in formatter.status_code_colours.items():
            if type(hundred) is int:
                before, after = colour("\0").split("\0")
                ranges.append((100 * hundred, 100 * hundred + 99, before, " " + after))
    ranges.append((FIRST, LAST, "", " "))
    codes = [(int(status), formatter.get_status_code(int(status))) for status in http.HTTPStatus]
    return [
        ("request_line", Derived("joined", parts=request)),
        ("status_code", Derived("field", "status_code", codes, ranges)),
    ]
