"""`StdlibFormatter` of ecs-logging: nested JSON objects with sorted keys, the first three keys in front.

Extra fields are merged into the objects by their names. Records with an exception or a stack take the Python road.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from logspool.adoption import _formatters
from logspool.adoption._descriptions import Formatting
from logspool.adoption.known._checks import is_function_of, is_text, unknown_release, watch
from logspool.adoption.known._objects import Object, constant, encoder, plain_dumps
from logspool.adoption.known._styled import FIRST, LAST, Derived, texts_of_levels

CALLED = (
    "format_to_ecs",
    "_record_timestamp",
    "_record_attribute",
    "_record_error_type",
    "_record_error_message",
    "_record_error_stack_trace",
)

#: Fields of a record without exception, each with the attribute that it shows.
_FIELDS = {
    "@timestamp": "asctime",
    "log.level": "level",
    "log.origin.function": "funcName",
    "log.origin.file.line": "lineno",
    "log.origin.file.name": "filename",
    "log.original": "message",
    "log.logger": "name",
    "process.pid": "process",
    "process.name": "processName",
    "process.thread.id": "thread",
    "process.thread.name": "threadName",
}

Assignment = tuple[str, str, Any]


def describe(
    formatter: Any, types: list[tuple[type, int]], watched: list[tuple[Any, int, int, int]]
) -> Formatting | str:
    """Describe a formatter, or return why only Python can run it."""
    reason = unknown_release("ecs_logging", "ecs-logging", (2, 2), (2, 3)) or _changed_module(formatter)
    if reason is not None:
        return reason
    zone = _formatters.zone(formatter)
    if isinstance(zone, str):
        return zone
    ascii = getattr(formatter, "ensure_ascii", True)
    encode = encoder(None, sys.modules["ecs_logging._utils"]._json_dumps_fallback, ascii, compact=True)
    if isinstance(encode, str):
        return encode
    if not logging.logProcesses:
        return "logging.logProcesses is off"
    fields = [name for name in _FIELDS if not formatter._is_field_excluded(name)]
    reason = _formatters.unfilled(" ".join(_FIELDS.values()))
    if reason is not None:
        return reason
    members: dict[str, Any] = {}
    added: list[tuple[str, Assignment]] = [(name, (name, "attribute", _FIELDS[name])) for name in fields]
    if not formatter._is_field_excluded("message"):
        added.append(("message", ("message", "attribute", "message")))
    extra = formatter._extra
    if extra is not None:
        if type(extra) is not dict:
            return "its extra is no dict"
        watch(extra, watched)
        for name, value in list(extra.items()):
            text = (
                constant(value, encode, watched) if is_text(name) and type(value) in (str, int, float, bool) else None
            )
            if text is None:
                return "its extra has values that may change"
            if name.startswith("elasticapm_"):
                return "its extra has fields of Elastic APM"
            # The package compares only the first key of such a name with the excluded fields.
            if not formatter._is_field_excluded(name.split(".")[0]):
                added.append((name, (name, "constant", text)))
    for name, assignment in added:
        if not _add(members, name.split("."), assignment):
            return f"its extra has {name}, which other fields contain"
    if not formatter._is_field_excluded("ecs.version"):
        version = sys.modules["ecs_logging._stdlib"].ECS_VERSION
        if not is_text(version) or not _add(members, ["ecs.version"], ("ecs.version", "constant", encode(version))):
            return "its version of ECS is no plain text"
    if not all(map(is_text, formatter._exclude_fields)):
        return "its exclude_fields are no plain text"
    levels = _levels()
    if isinstance(levels, str):
        return levels
    described = Object(
        prefix="",
        ascii=ascii,
        assignments=[*_front(members, levels), ("", "nested extras", ""), *_written(members)],
        hidden=sorted(formatter._exclude_fields),
        hides_private=False,
        renamed=[],
        encode=encode,
        compact=True,
        own_exceptions=True,
    )
    return Formatting("object", "", None, "%Y-%m-%dT%H:%M:%S", "%s.%03dZ", zone, [], False, None, described)


def _changed_module(formatter: Any) -> str | None:
    stdlib, utils = sys.modules["ecs_logging._stdlib"], sys.modules["ecs_logging._utils"]
    cached = vars(type(formatter)).get("_is_field_excluded")
    is_own = is_function_of(getattr(cached, "__wrapped__", None), stdlib, "StdlibFormatter._is_field_excluded")
    if not is_own or "_is_field_excluded" in vars(formatter):
        return "_is_field_excluded is patched"
    for name in ("json_dumps", "de_dot", "flatten_dict", "merge_dicts"):
        if not is_function_of(getattr(stdlib, name, None), utils, name):
            return f"{name} is patched"
    if not is_function_of(getattr(utils, "_json_dumps_fallback", None), utils, "_json_dumps_fallback"):
        return "_json_dumps_fallback is patched"
    return None if utils.json is json and plain_dumps(json.dumps) else "json is patched"


def _levels() -> Derived | str:
    texts = texts_of_levels((), lambda name, _: name.lower())
    if not all(text for _, text in texts):
        return "a level has an empty name"
    return Derived("level", listed=texts, ranges=[(FIRST, LAST, "level ", "")])


def _add(members: dict[str, Any], path: list[str], assignment: Assignment) -> bool:
    """Add a field to the nested objects. False if the package would raise, or replace another field."""
    for part in path[:-1]:
        members = members.setdefault(part, {})
        if not isinstance(members, dict):
            return False
    if path[-1] in members:
        return False
    members[path[-1]] = assignment
    return True


def _front(members: dict[str, Any], levels: Derived) -> list[Assignment]:
    """Take the keys out that are written in front."""
    front: list[Assignment] = []
    if "@timestamp" in members:
        front.append(members.pop("@timestamp"))
    log = members.get("log", {})
    if "level" in log:
        _, kind, value = log.pop("level")
        front.append(("log.level", "level", levels) if value == "level" else ("log.level", kind, value))
        if not log:
            del members["log"]
    if "message" in members:
        front.append(members.pop("message"))
    return front


def _written(members: dict[str, Any]) -> list[Assignment]:
    written: list[Assignment] = []
    for key in sorted(members):
        held = members[key]
        if isinstance(held, dict):
            written += [(key, "open", ""), *_written(held), ("", "close", "")]
        else:
            written.append((key, *held[1:]))
    return written
