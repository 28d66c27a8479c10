"""The description of a line that `json.dumps` makes of a dict, and the encoders of such lines."""

from __future__ import annotations

import json
import json.encoder
import logging
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from logspool.adoption.known._checks import is_function_of, is_text, watch
from logspool.base._stock_classes import changed_method


class Object(NamedTuple):
    """A line; see `ObjectSpec` in `crates/logspool-record/src/format/object_spec.rs`."""

    prefix: str
    ascii: bool
    #: Key, kind of the value, and what the kind needs: the name of the attribute, the JSON text of the constant, a
    #: `Derived` of the level.
    assignments: list[tuple[str, str, Any]]
    hidden: list[str]
    hides_private: bool
    renamed: list[tuple[str, str]]
    #: Makes the JSON text of a value that the collector does not render.
    encode: Callable[[Any], str]
    compact: bool = False
    own_exceptions: bool = False


#: Attributes of a record that the collector does not have as the record has them.
NEVER_SENT = ("msg", "args", "exc_info", "exc_text", "stack_info")

#: Encoders by class, default function, `ensure_ascii` and `compact`. Equal options have the same encoder.
_encoders: dict[tuple[type, Any, bool, bool], Callable[[Any], str]] = {}

#: Maximum number of encoders. Chosen as in `field_texts.rs`.
_MOST_ENCODERS = 64

_ENCODER_CALLED = ("__init__", "__new__", "encode", "iterencode", "__getattribute__", "__setattr__")


def record_attributes() -> list[str]:
    """Return the names of a record's attributes in their order."""
    return list(vars(logging.LogRecord("", 0, "", 0, "", (), None)))


def plain_dumps(serializer: Any) -> bool:
    """Return whether `serializer` is the unchanged `json.dumps`."""
    return is_function_of(serializer, sys.modules["json"], "dumps")


def encoder(cls: Any, default: Any, ascii: Any, compact: bool = False) -> Callable[[Any], str] | str:
    """Return the function that writes a value as `json.dumps(cls=cls, default=default, ensure_ascii=ascii)` does, or
    why there is none. Subclasses of `JSONEncoder` may override `default` only.

    `compact` leaves out the spaces between items, and sorts the keys.
    """
    if type(ascii) is not bool:
        return "its json_ensure_ascii is no bool"
    cls = json.JSONEncoder if cls is None else cls
    if not (isinstance(cls, type) and issubclass(cls, json.JSONEncoder)):
        return "its json_encoder is no JSONEncoder"
    if changed_method(cls, cls, _ENCODER_CALLED) or changed_method(cls, json.JSONEncoder, _ENCODER_CALLED):
        return "its json_encoder writes values in its own way"
    try:
        known = _encoders.get((cls, default, ascii, compact))
    except TypeError:
        return "its json_default cannot be compared"
    if known is None:
        if len(_encoders) == _MOST_ENCODERS:
            return "the program has made too many JSON formatters with functions of their own"
        made = cls(
            skipkeys=False,
            ensure_ascii=ascii,
            check_circular=True,
            allow_nan=True,
            indent=None,
            separators=(",", ":") if compact else None,
            default=default,
            sort_keys=compact,
        )
        known = _encoders.setdefault((cls, default, ascii, compact), made.encode)
    return known


def constant(value: Any, encode: Callable[[Any], str], watched: list[tuple[Any, int, int, int]]) -> str | None:
    """Return the JSON text of a value that cannot change unnoticed, None for any other value."""
    return encode(value) if _is_constant(value, watched) else None


def _is_constant(value: Any, watched: list[tuple[Any, int, int, int]], depth: int = 0) -> bool:
    if value is None or type(value) in (bool, int, float):
        return True
    if type(value) is str:
        return is_text(value)
    if depth == _MOST_LEVELS:
        return False
    if type(value) is tuple:
        return all(_is_constant(item, watched, depth + 1) for item in value)
    if type(value) is dict:
        watch(value, watched)
        items = list(value.items())
        return all(is_text(key) and _is_constant(item, watched, depth + 1) for key, item in items)
    return False


#: Maximum depth of a constant. Chosen: fields that are the same in every line are flat.
_MOST_LEVELS = 8
