"""The parts of a record about a web request: its ids, its path, its headers. Shared by `logspool.asgi` and `.wsgi`.

Everything here comes from a client, so it is checked or escaped before it gets into a record.
"""

from __future__ import annotations

import os
import re
import sys
from urllib.parse import quote

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Headers whose values are secrets: they are shown as `REDACTED`, unless the option `reveal` names them.
SECRET_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"))
REDACTED = "[redacted]"

#: Characters of a path or a header that a record shows. Chosen: the longest paths of usual programs have a fifth.
MAX_CHARACTERS = 2048

#: A request id that is taken from a client. Chosen: all common forms fit (UUID, ULID, base64, trace ids), and no
#: character has a meaning in a log line, a shell or JSON.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}", re.ASCII)

#: https://www.w3.org/TR/trace-context/#traceparent-header: version, trace id, parent id, flags. Only a version after 00
#: may have more parts.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16

#: A token of RFC 9110, which a header's name has to be.
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)

#: A path that is shown as it is; others are percent-encoded.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@-]*", re.ASCII)
_UNQUOTED = "/!$&'()*+,;=:@"


def request_id(values: list[str]) -> str:
    """Return the id that a client sent, if it sent one and that is well-formed, or else a new one."""
    if len(values) == 1 and _REQUEST_ID.fullmatch(values[0]):
        return values[0]
    return os.urandom(16).hex()


def trace_of(values: list[str]) -> tuple[str, str] | None:
    """Return trace id and parent id of a `traceparent`; None if it is missing, or breaks a rule of W3C."""
    match = _TRACEPARENT.fullmatch(values[0]) if len(values) == 1 else None
    if match is None:
        return None
    version, trace_id, parent_id, more = match.groups()
    if version == "ff" or trace_id == _NO_TRACE or parent_id == _NO_SPAN or (version == "00" and more is not None):
        return None
    return trace_id, parent_id


def current_span() -> tuple[str, str] | None:
    """Return trace id and span id of OpenTelemetry's current span, if the program has imported it and there is one."""
    find = getattr(sys.modules.get("opentelemetry.trace"), "get_current_span", None)
    if find is None:
        return None
    context = find().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


def shown(text: str) -> str:
    """Return a text of a client for a record: without control characters, which are escaped, and not too long."""
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "..."
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def shown_path(path: str | bytes) -> str:
    """Return a decoded path for a record: percent-encoded as in a request line, and not too long."""
    if isinstance(path, str):
        if len(path) <= MAX_CHARACTERS and _PLAIN_PATH.fullmatch(path):
            return path
        path = path.encode("utf-8", "surrogatepass")
    text = quote(path[:MAX_CHARACTERS], safe=_UNQUOTED)
    return text if len(path) <= MAX_CHARACTERS else text + "..."


def header_names(option: str, names: Iterable[str]) -> list[str]:
    """Return the names of headers that an option lists, in lower case.

    Raises:
        TypeError, ValueError: with the mend.
    """
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise TypeError(f'{option} takes a list of header names, as {option}=["user-agent"], not {names!r}')
    checked = []
    for name in names:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(f'{option}: {name!r} is no name of a header; write it as "user-agent"')
        checked.append(name.lower())
    return checked


def field_of_header(prefix: str, name: str) -> str:
    """Return the name of the field that holds a header."""
    return prefix + re.sub(r"[^a-z0-9]", "_", name)
