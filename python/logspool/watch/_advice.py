"""What would make the calls of a logger cost less, for `stats()` and `doctor`."""

from __future__ import annotations

#: How a reason ends if a thread of logspool runs the formatter.
DEFERRED = "a thread of logspool formats the records"

_FILTER = "fields by logspool.bind() or extra= need no filter, and logging.Filter(name) costs nothing"
_FACTORY = "fields by logspool.bind() or extra= need no record factory"
_FORMATTER = "logspool.deferred(formatter), or install(defer_formatting=True), lets a thread run the formatter"
_HANDLER = "logspool.ThreadHandler(handler) runs a handler on a thread"
_GUNICORN = "a release of logspool that knows this release of gunicorn makes the lines natively"
_ENCODING = "a handler with encoding='utf-8'"
_NEWLINES = "a stream that does not translate newlines"

#: Phrases of reasons, each with the advice; the first phrase that is in a reason counts.
_ADVICE = (
    ("has a filter", _FILTER),
    ("setLogRecordFactory was called", _FACTORY),
    ("is no known handler class", _HANDLER),
    ("emit is overridden", _HANDLER),
    ("handle is overridden", _HANDLER),
    ("encodes to", _ENCODING),
    ("translates newlines", _NEWLINES),
    ("format is", _FORMATTER),
    ("formatTime is", _FORMATTER),
    ("formatMessage is", _FORMATTER),
    ("usesTime is", _FORMATTER),
    ("is no logging.Formatter", _FORMATTER),
    ("its format has defaults", _FORMATTER),
    ("makes the access lines", _GUNICORN),
    ("newer than this release knows", "a newer release of logspool"),
    ("is not known to this release of logspool", _FORMATTER),
    ("cannot be described", _FORMATTER),
)


def advice(reason: str) -> str:
    """Return what a program may do about a reason, or an empty string."""
    if reason.endswith(DEFERRED):
        return ""
    return next((words for phrase, words in _ADVICE if phrase in reason), "")
