"""The access logs of web servers, which the middlewares of logspool replace if asked to."""

from __future__ import annotations

import logging

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Loggers that have only access lines.
_ACCESS = ("uvicorn.access", "gunicorn.access", "hypercorn.access")

#: Loggers by which servers report an exception of the application.
_ERRORS = ("uvicorn.error", "gunicorn.error", "hypercorn.error")

#: The attribute of an exception that has its record. Exceptions of built-in classes take no weak references.
_RECORDED = "_logspool_recorded"


def replace(access: logging.Logger) -> str:
    """Silence the access logs of servers. Returns why they were kept, with the mend, or an empty string.

    They are kept if nothing would show the records of `access`: otherwise the program would have no access log.
    """
    if not access.hasHandlers():
        return (
            f"replace_server_log: the logger {access.name} has no handler, so the server keeps its access log (fix: "
            "logging.basicConfig(level=logging.INFO), or a handler for that logger)"
        )
    if not access.isEnabledFor(logging.INFO):
        return (
            f"replace_server_log: the logger {access.name} drops records of level INFO, so the server keeps its access "
            f'log (fix: logging.getLogger("{access.name}").setLevel(logging.INFO))'
        )
    for name in _ACCESS:
        logger = logging.getLogger(name)
        if logger is not access and not logger.disabled:
            logger.disabled = True
    _add_once(logging.getLogger("werkzeug"), _is_no_request_line)
    for name in _ERRORS:
        _add_once(logging.getLogger(name), _is_not_recorded)
    return ""


def note_recorded(error: BaseException) -> None:
    """Note that an exception has its record, so that the server's own report of it is dropped."""
    try:
        setattr(error, _RECORDED, True)
    except AttributeError:
        pass  # Its class refuses attributes; the server's report stays then.


def _add_once(logger: logging.Logger, keeps: Any) -> None:
    if keeps not in logger.filters:
        logger.addFilter(keeps)


def _is_no_request_line(record: logging.LogRecord) -> bool:
    """Return whether werkzeug's logger should keep a record. Request lines come from `log_request` of its handler."""
    is_line = isinstance(record.msg, str) and record.msg.rstrip().endswith('"%s" %s %s')
    return not (is_line and record.levelno == logging.INFO)


def _is_not_recorded(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return not getattr(error, _RECORDED, False)
