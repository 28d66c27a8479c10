"""Formats of loguru whose lines need no record of loguru's."""

from __future__ import annotations

import re
from string import Formatter
from typing import NamedTuple

#: Fields of a format, each with its place among the values of `LineFormat.template`.
_FIELDS = {
    "time": "0",
    "level": "1",
    "level.name": "1",
    "level.no": "2",
    "name": "3",
    "function": "4",
    "line": "5",
    "message": "6",
}

#: Tokens of a time, each as `time.strftime` has it.
_TOKENS = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}

#: A time of these tokens, with punctuation between them, and perhaps a fraction of three or six digits at its end.
_TIME = re.compile(r"(?P<whole>(?:(?:YYYY|MM|DD|HH|mm|ss)[-/:., _]?)+?)(?:(?<=ss)(?P<mark>[.,])(?P<digits>S{3}|S{6}))?")


class LineFormat(NamedTuple):
    """A format that `logspool.loguru` can fill in."""

    #: For `str.format`: time, name and number of the level, name, function, line, message.
    template: str
    #: The whole seconds of the time for `time.strftime`.
    seconds: str
    #: The text between the seconds and their fraction.
    mark: str
    #: Digits of the fraction: 0, 3 or 6.
    digits: int


def line_format(text: str) -> LineFormat | None:
    """Return a format of loguru, without colours, in the form of `LineFormat`; None if loguru has to fill it in."""
    template, times = "", []
    for literal, field, spec, conversion in Formatter().parse(text):
        template += literal.replace("{", "{{").replace("}", "}}")
        if field is None or (field == "exception" and not spec and conversion is None):
            continue
        place = _FIELDS.get(field)
        if place is None or conversion is not None or "{" in (spec or ""):
            return None
        if field == "time":
            times.append(spec)
            spec = ""
        template += f"{{{place}:{spec}}}" if spec else f"{{{place}}}"
    if not times:
        return LineFormat(template, "", "", 0)
    found = _TIME.fullmatch(times[0] or "")
    if found is None or times != times[:1] * len(times):
        return None
    seconds = re.sub("|".join(_TOKENS), lambda token: _TOKENS[token[0]], found["whole"])
    return LineFormat(template, seconds, found["mark"] or "", len(found["digits"] or ""))
