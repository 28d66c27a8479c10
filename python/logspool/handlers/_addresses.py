"""`logspool.handler()`: the handler for an address, such as `syslog+udp://127.0.0.1:514?facility=local0`.

An address may contain a password. So errors show its scheme and the names of options, and never the rest of it, unless
the core has accepted or refused a part without a password.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

from logspool import _native
from logspool.base import _options
from logspool.handlers import _destinations, _forward, _handlers, _service, _sinks
from logspool.process import _configuration

_SOCKETS = ("udp", "tcp", "tls", "unix")

#: For each scheme the sink, and the scheme of the address that the sink gets.
SCHEMES: dict[str, tuple[str, str]] = {
    "file": ("file", ""),
    "stderr": ("stderr", ""),
    "stdout": ("stdout", ""),
    **{f"syslog+{way}": ("syslog", way) for way in _SOCKETS},
    **{way: ("socket", way) for way in _SOCKETS},
    **{f"gelf+{way}": ("gelf", way) for way in _SOCKETS},
    "journald": ("journald", "unix"),
    **{f"{kind}+{way}": (kind, way) for kind in ("loki", "elasticsearch", "otlp") for way in ("http", "https")},
    "sqlite": ("sqlite", ""),
    **{f"{kind}+{way}": ("service", way) for kind in ("forward", "logspool") for way in ("tcp", "tls", "unix")},
}

#: Parts of a TLS address, and those of them that are files.
_TLS_PARTS = ("authorities", "certificate", "key", "server_name")
_TLS_FILES = _TLS_PARTS[:3]

_SECRETS = ("headers", "password", "shared_key", "token", "user")

_EXAMPLE = "file:///var/log/app.log or syslog+udp://127.0.0.1:514"


class Target:
    """The handler that an address stands for.

    Attributes:
        scheme: the scheme of the address.
        kind: the name of the sink; "stderr" and "stdout" for these streams.
        place: the path or the address that the handler gets; empty for a default or a stream.
        tls: the parts of a TLS address.
        own: the options of the sink.
    """

    def __init__(self, scheme: str, kind: str, place: str) -> None:
        self.scheme, self.kind, self.place = scheme, kind, place
        self.tls: dict[str, str] = {}
        self.own: dict[str, Any] = {}

    def make(self, options: dict[str, Any]) -> logging.Handler:
        """Make the handler, with options of the sink or of `install()`."""
        if twice := self.own.keys() & options.keys():
            raise TypeError(f"{min(twice)} is in the address and an argument, too (fix: give it once)")
        if self.kind in ("stderr", "stdout"):
            return _handlers.StreamHandler(getattr(sys, self.kind), **options)
        if self.kind == "file":
            return _handlers.FileHandler(self.place, **options)
        if self.kind == "service":
            cls = _forward.ForwardHandler if self.scheme.startswith("forward") else _handlers.ServiceHandler
            return cls(self.place, **{**self.tls, **self.own, **options})
        given = {**self._placed(), **self.own, **options}
        _check_user(given)
        return _destinations.CLASSES[self.kind](**given)

    def check(self) -> None:
        """Check the address and the options as the handler would, without a handler.

        Raises:
            OSError, TypeError, ValueError: the handler would refuse them.
        """
        if self.kind == "service":
            authorities, certificate, key = (_service.file(name, self.tls.get(name)) for name in _TLS_FILES)
            _, place = _native.service_address(self.place, authorities, certificate, key, self.tls.get("server_name"))
            _native.check_sink("service", {**self.own, "address": place})
        elif cls := _destinations.CLASSES.get(self.kind):
            _destinations.check_build(cls)
            _check_user(self.own)
            _, own, _ = _sinks.split(cls.__name__, self.kind, {**self._placed(), **self.own})
            _native.check_sink(self.kind, own)

    def _placed(self) -> dict[str, str]:
        from urllib.parse import quote

        if self.kind == "sqlite":
            return {"path": self.place}
        parts = [f"{name}={quote(text)}" for name, text in self.tls.items()]
        place = "?".join([self.place, "&".join(parts)]) if parts else self.place
        return {"address": place} if place else {}


def handler(address: str, **options: Any) -> logging.Handler:
    """Return the handler for an address.

    The scheme of the address selects the class: `file`, `stderr`, `stdout`, `syslog+udp`, `udp`, `gelf+udp`,
    `journald`, `loki+http`, `elasticsearch+http`, `otlp+http`, `sqlite`, `logspool+tcp` and others.
    `docs/how-to/choose-a-destination.md` lists all of them. No call of the handler waits for the destination, and a
    destination that cannot be reached is no error here: records wait in the queue.

    Args:
        address: the destination, with options of its sink after `?`: "syslog+udp://127.0.0.1:514?facility=local0".
            In a path or an option, "%20" is a space. For HTTP, "user:password@" may precede the host.
        options: more options of the sink, and the options of `logspool.install()`. A process has one queue; the options
            of its first handler apply.

    Raises:
        TypeError, ValueError: the scheme or an option does not exist (the text names the most similar one), or a value
            is invalid. No text shows a user, password, token or header.
        OSError: a file cannot be opened.
        RuntimeError: as `logspool.install()`.
    """
    return target(address).make(options)


def target(address: str) -> Target:
    """Return what an address stands for. The core has not checked its parts yet.

    Raises:
        TypeError, ValueError: the scheme or an option does not exist, or a value has the wrong form.
    """
    from urllib.parse import unquote

    if not isinstance(address, str):
        raise TypeError(f"an address must be text, as {_EXAMPLE}, not a {type(address).__name__}")
    name, colon, rest = address.partition(":")
    if not colon or re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", name) is None:
        raise ValueError(f"an address begins with a scheme and a colon, as {_EXAMPLE}")
    scheme = name.lower()
    if scheme not in SCHEMES:
        raise ValueError(f"no address has the scheme {name!r}; {_options.meant(scheme, SCHEMES)}")
    kind, way = SCHEMES[scheme]
    place, question, query = rest.partition("?")
    found = Target(scheme, kind, "")
    if kind in ("stderr", "stdout"):
        _check_end(scheme, place, f"{scheme}:")
    elif way in ("", "unix"):
        found.place = unquote(_path(scheme, place, is_default=kind == "journald", is_relative=way == ""))
        if way and found.place:
            found.place = f"unix://{found.place}"
    else:
        if not place.startswith("//"):
            raise ValueError(f"an address with {scheme}: continues with //HOST:PORT")
        if "@" in place and way not in ("http", "https"):
            raise ValueError(f"an address with {scheme}: has no user or password before its host")
        authority, slash, path = place[2:].partition("/")
        user, at, host = authority.rpartition("@")
        if at:
            user, colon, password = user.partition(":")
            found.own.update({"user": unquote(user), **({"password": unquote(password)} if colon else {})})
        if way in ("http", "https") and re.fullmatch(r"([^:\[\]]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", host) is None:
            raise ValueError(
                f"an address with {scheme}: continues with //HOST or //HOST:PORT (fix: %2F for / in a password)"
            )
        found.place = f"{way}://{host}{slash}{path}"
    if question:
        _read_query(found, query, is_tls=way == "tls")
    return found


def _check_user(given: dict[str, Any]) -> None:
    if (given.get("user") is None) != (given.get("password") is None):
        raise ValueError("user and password come together (fix: USER:PASSWORD@ before the host, or give both options)")


def _check_end(scheme: str, place: str, form: str) -> None:
    if place:
        raise ValueError(f"an address with {scheme}: is complete: write {form}")


def _path(scheme: str, place: str, *, is_default: bool, is_relative: bool) -> str:
    """Return the path in an address, which is still escaped; empty for the default."""
    if is_default and not place:
        return ""
    if place.startswith("///"):
        return place[2:]
    if is_relative and place and not place.startswith("//"):
        return place
    form = f"{scheme}:///PATH" + (f", or {scheme}:PATH for a path in the current folder" if is_relative else "")
    raise ValueError(f"an address with {scheme}: has a path and no host: write {form}")


def _read_query(found: Target, query: str, *, is_tls: bool) -> None:
    from urllib.parse import unquote

    row = _sinks.table().get(found.kind) if found.kind in (*_destinations.CLASSES, "service") else None
    if found.kind in _destinations.CLASSES:
        _destinations.check_build(_destinations.CLASSES[found.kind])
    own = {option["name"]: option for option in row["options"]} if row else {}
    for name in ("address", "path"):
        own.pop(name, None)
    valid = (*own, *(_TLS_PARTS if is_tls else ()))
    for part in query.split("&"):
        name, equals, text = part.partition("=")
        if not equals or re.fullmatch(r"\w+", name) is None:
            raise ValueError(
                f"an address with {found.scheme}: has NAME=VALUE after the question mark, joined by & "
                "(fix: in values, write %26 for & and %3F for ?)"
            )
        if name not in valid:
            raise _options.unknown_option(f"an address with {found.scheme}:", [name], valid)
        if name in found.own or name in found.tls:
            raise TypeError(f"an address with {found.scheme}: has the option {name!r} twice (fix: write it once)")
        text = unquote(text)
        if is_tls and name in _TLS_PARTS:
            found.tls[name] = _options.absolute(name, text) if name in _TLS_FILES else text
            continue
        try:
            found.own[name] = _configuration.from_text(own[name], text)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None


def shown(address: str) -> str:
    """Return an address without its secrets, as `***`; only its scheme if the address is wrong."""
    try:
        target(address).check()
    except (OSError, TypeError, ValueError):
        return f"{address.partition(':')[0]}:***"
    scheme, _, rest = address.partition(":")
    place, question, query = rest.partition("?")
    place = re.sub(r"^//.*@", "//***@", place) if SCHEMES[scheme.lower()][1] in ("http", "https") else place
    query = re.sub(rf"(^|&)({'|'.join(_SECRETS)})=[^&]*", r"\1\2=***", query)
    return f"{scheme}:{place}{question}{query}"
