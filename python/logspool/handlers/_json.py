"""Formats a record as one JSON object per line. Python and the collector write the same bytes.

The module documentation of `crates/logspool-record/src/format/json.rs` has the rules. This module lists the members of
a line, and the core writes them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from logspool import _native
from logspool.adoption import _own_classes
from logspool.adoption._texts import record_names
from logspool.base._options import known_only, misspelt

#: The default members of a line: output key -> attribute of the record.
DEFAULT_FIELDS = {
    "time": "time",
    "level": "level",
    "logger": "logger",
    "message": "message",
    "file": "filename",
    "line": "lineno",
    "function": "funcName",
    "exception": "exception",
    "stack": "stack",
}

#: Attributes that are refused as members of a line, each with the attribute that shows the same information.
_REFUSED = {
    "msg": "message",
    "args": "message",
    "exc_info": "exception",
    "exc_text": "exception",
    "stack_info": "stack",
}

_OTHER_NAMES = {"level": "levelname", "logger": "name"}

#: Attributes that are computed for the line, or that LogRecord has only in some versions of Python.
_MADE = ("time", "level", "logger", "exception", "stack", "message", "asctime", "taskName")


class JSONFormatter(logging.Formatter):
    """Write each record as one JSON object on one line.

    Fields from `extra` and `logspool.bind` follow the named ones, as top-level keys.

    Args:
        fields: output key -> attribute of the record, in order; None is time, level, logger, message, file, line,
            function, exception, stack. In addition to LogRecord's own attributes there are `time` (UTC, ISO 8601,
            microseconds), `level`, `logger`, `exception` and `stack`; any other name is an extra field. A name
            that looks like a typing error of these (`tiem`, `funcname`) is an error.
        extras: whether extra fields that `fields` does not name are written.
        datefmt: format of `asctime`, if `fields` shows `asctime`.
    """

    @known_only
    def __init__(
        self,
        fields: Mapping[str, str] | None = None,
        *,
        extras: bool = True,
        datefmt: str | None = None,
    ) -> None:
        super().__init__(datefmt=datefmt)
        if fields is not None and not isinstance(fields, Mapping):
            raise TypeError(
                "JSONFormatter: fields must map each key to the attribute that it shows, as {'time': 'time'}, "
                f"not {fields!r}"
            )
        if datefmt is not None and not isinstance(datefmt, str):
            raise TypeError(f"JSONFormatter: datefmt must be text as for time.strftime, or None, not {datefmt!r}")
        chosen = DEFAULT_FIELDS if fields is None else dict(fields)
        for key, attribute in chosen.items():
            if type(key) is not str or type(attribute) is not str:
                raise TypeError(f"JSONFormatter: fields maps str to str, not {key!r} to {attribute!r}")
            if attribute in _REFUSED:
                raise ValueError(f"JSONFormatter: {attribute!r} cannot be shown; use {_REFUSED[attribute]!r}")
            if meant := misspelt(attribute, (*_MADE, *record_names())):
                raise ValueError(
                    f"JSONFormatter: there is no attribute {attribute!r}; use {meant!r}, "
                    "or give an extra field a name that is not so close to it"
                )
        self._fields = tuple(chosen.items())
        self._extras = bool(extras)

    def usesTime(self) -> bool:
        """Return whether the line shows `asctime`."""
        return any(attribute == "asctime" for _, attribute in self._fields)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object."""
        record.message = record.getMessage()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        own = record_names()
        members = []
        for key, attribute in self._fields:
            found, value = _shown(self, record, attribute, own)
            if found:
                members.append((key, value))
        if self._extras:
            unnamed = own.union(*self._fields)
            members += [(name, value) for name, value in record.__dict__.items() if name not in unnamed]
        return _native.json_object(members)

    def _native_formatting(self, formatting: Any, utc: bool) -> Any:
        """Describe this formatter to native code; called by `adoption._formatters`."""
        from logspool.adoption import _formatters

        for _, attribute in self._fields:
            reason = _formatters.unfilled(attribute)
            if reason is not None:
                return reason
        return formatting(
            "json",
            "",
            self.datefmt,
            self.default_time_format,
            self.default_msec_format,
            utc,
            list(self._fields),
            self._extras,
        )


_own_classes.own_formatters.append(JSONFormatter)


def _shown(
    formatter: JSONFormatter, record: logging.LogRecord, attribute: str, own: frozenset[str]
) -> tuple[bool, Any]:
    """Return whether a key is written, and its value."""
    if attribute == "time":
        moment = datetime.fromtimestamp(record.created, timezone.utc).replace(tzinfo=None)
        return True, moment.isoformat(timespec="microseconds") + "Z"
    if attribute == "exception":
        return bool(record.exc_text), record.exc_text
    if attribute == "stack":
        text = formatter.formatStack(record.stack_info) if record.stack_info else ""
        return bool(text), text
    name = _OTHER_NAMES.get(attribute, attribute)
    if name in record.__dict__:
        value = record.__dict__[name]
        # An attribute of LogRecord that is None is left out; an extra field that is None is null.
        return value is not None or name not in own, value
    return False, None
