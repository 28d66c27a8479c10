"""The description of a text line in which a formatter shows attributes of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from logspool.adoption import _descriptions, _formatters
from logspool.adoption.known._checks import is_text

#: From, to, text before the number, text after the number (None: without number).
Range = tuple[int, int, str, "str | None"]

#: The numbers that are neither listed nor in another range.
FIRST, LAST = -(2**63), 2**63 - 1


class Derived(NamedTuple):
    """An attribute; see `Derived` in `crates/logspool-record/src/format/styled_spec.rs`."""

    kind: str
    field: str = ""
    listed: Sequence[tuple[int, str]] = ()
    ranges: Sequence[Range] = ()
    #: Whether the part is a field, and the name of the field or the text.
    parts: Sequence[tuple[bool, str]] = ()


class Styled(NamedTuple):
    """A line; see `StyledSpec`."""

    derived: list[tuple[str, Derived]]
    end: str = ""
    arguments: Sequence[str] = ()
    #: Names of fields, each with whether it may be a number; a record with another value takes the Python road.
    limits: Sequence[tuple[str, bool]] = ()
    own_exceptions: bool = False
    marks_records: bool = False


def described(formatter: Any, styled: Styled) -> _descriptions.Formatting | str:
    """Describe a formatter with the template, the time and the zone of a plain `logging.Formatter`."""
    zone = _formatters.zone(formatter)
    if isinstance(zone, str):
        return zone
    datefmt, time_format, msec_format = formatter.datefmt, formatter.default_time_format, formatter.default_msec_format
    if not all(text is None or is_text(text) for text in (datefmt, msec_format)) or not is_text(time_format):
        return "its formats of time are no plain text"
    plain = _formatters.describe_style(formatter, (datefmt, time_format, msec_format, zone), {})
    return plain if isinstance(plain, str) else plain._replace(known=styled)


def texts_of_levels(numbers: Iterable[Any], text: Callable[[str, int], str]) -> list[tuple[int, str]]:
    """Return the text of each level that has a name, and of each of `numbers`."""
    named = {number: name for number, name in list(logging._levelToName.items()) if type(name) is str}
    levels = [number for number in {*named, *numbers} if type(number) is int and 0 <= number <= 0xFFFF]
    return [(number, text(named.get(number, f"Level {number}"), number)) for number in sorted(levels)]
