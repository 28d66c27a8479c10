"""What planning says of a handler and of its formatter; native code reads these descriptions by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from logspool.adoption import _streams
from logspool.base._tuples import NamedTuple

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class Formatting(NamedTuple):
    """A formatter whose format the collector can apply."""

    style: str
    template: str
    datefmt: str | None
    default_time_format: str
    default_msec_format: str | None
    utc: bool
    fields: list[tuple[str, str]]
    extras: bool
    #: Level names of this formatter; None means the names of `logging`.
    level_names: list[tuple[int, str]] | None = None
    #: What the style needs more: a description of `logspool.adoption.known`.
    known: Any = None
    #: Names and reasons of methods that native code calls for single texts, see `_own_texts`.
    own_texts: Mapping[str, str] = MappingProxyType({})


class Format(NamedTuple):
    """How the lines of a handler are formatted, and the objects that determine this."""

    #: The formatting, or the reason why only Python can format the lines.
    form: Formatting | str
    #: Classes of formatter and style, each with the result of `_native.class_state` from before the class was
    #: inspected.
    types: tuple[tuple[type, int], ...]
    #: Formatter and style, each with the result of `_native.watch_part` from before the object was inspected.
    parts: tuple[tuple[Any, int], ...]
    #: Words of dicts that the formatter reads; see `_streams`.
    watched: _streams.Watched = ()
    #: The `_deferring.Deferral` that formats the records later; None if they are formatted at once.
    deferral: Any = None


class Adoption(NamedTuple):
    """A handler whose output can go through the queue."""

    #: Name of the sink in the core's table of sinks.
    kind: str
    #: Options of the sink. The options of "console" follow from `path` and `fd`.
    options: dict[str, Any]
    path: str
    fd: int
    terminator: str
    stream: Any
    buffer: Any
    errors: str
    interactive: bool
    #: Whether the program may print to the same stream: the handler is no `FileHandler`.
    is_stream: bool
    format: Format
    watched: _streams.Watched


class Refusal(NamedTuple):
    """A handler whose output must be written by stock logging."""

    #: "foreign", or "unopened" if the refusal ends when the handler's first record opens its file.
    kind: str
    reason: str
    watched: _streams.Watched
    #: Whether its Python code may print to the stream of another handler.
    may_print: bool = False
