"""`JsonFormatter` of python-json-logger.

Its lines are `json.dumps` of a dict to which `add_fields` assigns the named attributes, the static fields, exception
and stack, the extra fields and the time. Releases before 3.1 rename keys at the end, later ones as they are assigned.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from logspool import _native
from logspool.adoption import _descriptions, _formatters
from logspool.adoption.known._checks import is_function_of, is_text, unknown_release, watch
from logspool.adoption.known._objects import NEVER_SENT, Object, constant, encoder, plain_dumps, record_attributes
from logspool.base._stock_classes import changed_method

#: The first and the last known release.
FIRST, LAST = (2,), (4, 2)

CALLED = (
    "add_fields",
    "jsonify_log_record",
    "process_log_record",
    "serialize_log_record",
    "_get_rename",
    "_perform_rename_log_fields",
)

_ENCODER_CALLED = ("default", "format_datetime_obj")

Assignment = tuple[str, str, str]


def describe(
    formatter: Any, types: list[tuple[type, int]], watched: list[tuple[Any, int, int, int]]
) -> _descriptions.Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    reason = unknown_release("pythonjsonlogger", "python-json-logger", FIRST, LAST) or _changed_module(formatter)
    if reason is not None:
        return reason
    zone = _formatters.zone(formatter)
    if isinstance(zone, str):
        return zone
    if formatter.json_indent is not None or not plain_dumps(formatter.json_serializer):
        return "its JSON is not written by json.dumps without indent"
    encode = encoder(formatter.json_encoder, formatter.json_default, formatter.json_ensure_ascii)
    if isinstance(encode, str):
        return encode
    if not is_text(formatter.prefix):
        return "its prefix is no plain text"
    fields = list(formatter._required_fields)
    renamed = formatter.rename_fields
    if type(renamed) is not dict or not all(map(is_text, fields)):
        return "its fields are no plain text"
    watch(renamed, watched)
    renamed = dict(renamed)
    if not all(is_text(key) and is_text(value) for key, value in renamed.items()):
        return "its rename_fields are no plain text"
    reason = _unsent(formatter, fields) or _formatters.unfilled(" ".join([*fields, *_shown_unnamed(formatter)]))
    if reason is not None:
        return reason
    assignments = _assignments(formatter, fields, encode, types, watched)
    if isinstance(assignments, str):
        return assignments
    renames = _renames_at_once(formatter)
    if renames:
        assignments = [(renamed.get(key, key), kind, detail) for key, kind, detail in assignments]
        if getattr(formatter, "rename_fields_keep_missing", False):
            assignments += [(key, "null if absent", "") for key in renamed.values()]
    else:
        if any(name in renamed for name in _shown_unnamed(formatter)):
            return "its rename_fields name an attribute that its format does not name"
        moved = _renamed_at_the_end(assignments, renamed)
        if isinstance(moved, str):
            return moved
        assignments = moved
    record_names = {*record_attributes(), "message", "asctime"}
    described = Object(
        prefix=formatter.prefix,
        ascii=formatter.json_ensure_ascii,
        assignments=assignments,
        hidden=[name for name in formatter._skip_fields if is_text(name) and name not in record_names],
        hides_private=True,
        renamed=list(renamed.items()),
        encode=encode,
    )
    datefmt, time_format, msec_format = formatter.datefmt, formatter.default_time_format, formatter.default_msec_format
    if not all(text is None or is_text(text) for text in (datefmt, msec_format)) or not is_text(time_format):
        return "its formats of time are no plain text"
    return _descriptions.Formatting("object", "", datefmt, time_format, msec_format, zone, [], False, None, described)


def _changed_module(formatter: Any) -> str | None:
    """Return which function that the methods call is not the package's own."""
    module = sys.modules[_home(formatter)]
    if not is_function_of(getattr(module, "merge_record_extra", None), module, "merge_record_extra"):
        return "merge_record_extra is patched"
    if module.datetime is not datetime.datetime or module.timezone is not datetime.timezone:
        return "datetime is patched"
    return None


def _home(formatter: Any) -> str:
    """Return the module whose globals `add_fields` uses."""
    return str(type(formatter).add_fields.__module__)


def _renames_at_once(formatter: Any) -> bool:
    return hasattr(type(formatter), "_get_rename")


def _shown_unnamed(formatter: Any) -> list[str]:
    """Return the attributes that every record has and that are shown because nothing leaves them out."""
    return [name for name in record_attributes() if name not in formatter._skip_fields]


def _unsent(formatter: Any, fields: list[str]) -> str | None:
    for name in (*NEVER_SENT, "message", "asctime"):
        if name not in formatter._skip_fields:
            return f"its reserved_attrs do not leave out {name}"
        if name in NEVER_SENT and name in fields:
            return f"it shows {name}"
    return None


def _assignments(
    formatter: Any,
    fields: list[str],
    encode: Any,
    types: list[tuple[type, int]],
    watched: list[tuple[Any, int, int, int]],
) -> list[Assignment] | str:
    assigned: list[Assignment] = []
    defaults = getattr(formatter, "defaults", {})
    for values in (defaults, formatter.static_fields):
        if type(values) is not dict:
            return "its static fields are no dict"
        watch(values, watched)
        for key, value in list(values.items()):
            text = constant(value, encode, watched) if is_text(key) else None
            if text is None:
                return "its static fields have values that may change"
            assigned.append((key, "constant", text))
        if values is defaults:
            assigned += [(name, "attribute", name) for name in fields]
    # Releases before 3.1 raise for some of these messages if fields are renamed.
    if _renames_at_once(formatter) or not formatter.rename_fields:
        assigned.append(("", "message items", ""))
    lines = {
        kind: kind + " lines" if getattr(formatter, option, False) else kind
        for kind, option in (("exception", "exc_info_as_array"), ("stack", "stack_info_as_array"))
    }
    assigned += [("exc_info", lines["exception"], ""), ("stack_info", lines["stack"], "")]
    assigned += [(name, "attribute", name) for name in _shown_unnamed(formatter)]
    assigned.append(("", "extras", ""))
    if formatter.timestamp:
        if type(formatter.timestamp) is not bool and not is_text(formatter.timestamp):
            return "its timestamp is neither a bool nor plain text"
        reason = _own_time(formatter, types)
        if reason is not None:
            return reason
        key = "timestamp" if formatter.timestamp is True else formatter.timestamp
        assigned.append((key, "timestamp", ""))
    return assigned


def _own_time(formatter: Any, types: list[tuple[type, int]]) -> str | None:
    """Return why the time is not written as the package's own encoder writes it, or None."""
    home = sys.modules[type(formatter).__module__]
    cls = home.JsonEncoder
    types.append((cls, _native.class_state(cls)))
    if formatter.json_encoder is not cls or formatter.json_default is not None:
        return "its encoder writes the time in its own way"
    return changed_method(cls, cls, _ENCODER_CALLED)


def _renamed_at_the_end(assignments: list[Assignment], renamed: dict[str, str]) -> list[Assignment] | str:
    """Move the renamed keys to the end, as releases before 3.1 do."""
    keys = [key for key, _, _ in assignments]
    names = [*renamed, *renamed.values()]
    if len(set(names)) != len(names) or any(new in keys for new in renamed.values()):
        return "its rename_fields name a key twice"
    for old, new in renamed.items():
        found = [assignment for assignment in assignments if assignment[0] == old]
        if not found or any(kind in ("exception", "exception lines", "stack", "stack lines") for _, kind, _ in found):
            # The package raises for a record without the key.
            return f"its rename_fields name {old}, which a record may lack"
        assignments = [assignment for assignment in assignments if assignment[0] != old]
        assignments.append((new, *found[-1][1:]))
    return assignments
