"""`ServerFormatter` of Django: the time of the server, and messages in the colour of their status."""

from __future__ import annotations

import sys
from typing import Any

from logspool.adoption import _descriptions
from logspool.adoption.known._checks import unknown_release, watch_attributes
from logspool.adoption.known._styled import FIRST, LAST, Derived, Range, Styled, described

CALLED = ("uses_server_time",)

#: The statuses of a colour, in the order in which `format` looks for them.
_STATUSES = (
    (200, 299, "HTTP_SUCCESS"),
    (100, 199, "HTTP_INFO"),
    (304, 304, "HTTP_NOT_MODIFIED"),
    (300, 399, "HTTP_REDIRECT"),
    (404, 404, "HTTP_NOT_FOUND"),
    (400, 499, "HTTP_BAD_REQUEST"),
    (FIRST, LAST, "HTTP_SERVER_ERROR"),
)


def describe(
    formatter: Any, types: list[tuple[type, int]], watched: list[tuple[Any, int, int, int]]
) -> _descriptions.Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    reason = unknown_release("django", "Django", (4, 2), (6, 1))
    if reason is not None:
        return reason
    if type(formatter.style) is not sys.modules["django.core.management.color"].Style:
        return "its style is not Django's"
    # A style has no setter that could be watched, but its attributes are in a dict.
    watch_attributes(formatter.style, watched)
    homes = {sys.modules[name].__file__ for name in ("django.core.management.color", "django.utils.termcolors")}
    ranges: list[Range] = []
    for first, last, role in _STATUSES:
        colour: Any = getattr(formatter.style, role, None)
        if getattr(getattr(colour, "__code__", None), "co_filename", None) not in homes:
            return "its style is not Django's"
        before, after = colour("\0").split("\0")
        ranges.append((first, last, before, after))
    derived = [("message", Derived("message by field", "status_code", ranges=ranges))]
    template = formatter._fmt
    if type(template) is str and "{server_time}" in template:
        derived.append(("server_time", Derived("field or time", "server_time")))
    return described(formatter, Styled(derived, limits=[("status_code", True)], marks_records=True))
