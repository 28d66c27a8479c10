"""The tables of the core and their checks: `tables.json` has the rows, and `make generated` writes it from the core."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from logspool.pure import _missing

with open(os.path.join(os.path.dirname(__file__), "tables.json"), encoding="utf-8") as _file:
    _tables: dict[str, Any] = json.load(_file)

__version__: str = _tables["version"]

_WANTED = {
    "text": "text",
    "choice": "text",
    "path": "a path",
    "switch": "True or False",
    "whole": "a whole number",
    "seconds": "a number",
    "levels": "a collection of levels",
    "texts": "a collection of texts",
}

#: The types of the values of each shape. A bool is no number here.
_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "choice": (str,),
    "path": (str,),
    "switch": (bool,),
    "whole": (int,),
    "seconds": (int, float),
    "levels": (list,),
    "texts": (list,),
}

_FORM = "it must be tcp://HOST:PORT or tls://HOST:PORT, the port from 1 to 65535"
_TLS_PARTS = ("authorities", "certificate", "key", "server_name")


def install_options() -> list[dict[str, Any]]:
    """Return the rows of the options of `install()`."""
    rows: list[dict[str, Any]] = _tables["options"]
    return rows


def sink_table() -> list[dict[str, Any]]:
    """Return the rows of the sinks, each with the rows of its options."""
    rows: list[dict[str, Any]] = _tables["sinks"]
    return rows


def counter_names() -> dict[str, Any]:
    """Return the names of levels and reasons, as counters have them."""
    names: dict[str, Any] = _tables["counters"]
    return names


def check_options(options: dict[str, Any], /) -> dict[str, Any]:
    """Return all options of `install()`, checked. Without the core a record is in memory for the time of its call."""
    checked = _ordered("install()", install_options(), options)
    least, most = checked["queue_bytes"], checked["queue_total_bytes"]
    if most is not None and most < least:
        raise ValueError(f"queue_total_bytes must be at least queue_bytes ({least} bytes), not {most}")
    if checked["blocking_timeout"] is None:
        checked["blocking_timeout"] = 0.1
    for name in ("durable_levels", "redact_keys", "redact_patterns", "sample"):
        checked[name] = checked[name] or []
    return {**checked, "durability": "memory"}


def check_sink(kind: str, options: dict[str, Any], /) -> str:
    """Check the options of a sink; return its destination. Only records for a service are sent without the core."""
    rows = {row["kind"]: row["options"] for row in sink_table()}
    if kind not in rows:
        raise ValueError(f'there is no sink "{kind}"; {_suggestion(kind, rows)}')
    checked = _ordered(kind, rows[kind], options)
    if kind != "service":
        raise _missing.sink_refusal(kind)
    tag, key = checked["tag"], checked["shared_key"] or ""
    if not tag or len(tag.encode()) > 255 or not all(letter.isprintable() and letter != " " for letter in tag):
        raise ValueError(f'tag: "{tag}" is no tag (fix: 1 to 255 bytes without spaces, such as app.web)')
    if not all(letter > " " and letter != "\x7f" for letter in key):
        raise ValueError("shared_key: it has a space, a line end or another character that no secret may have")
    return service_address(checked["address"], None, None, None, None)[0]


def _ordered(owner: str, rows: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    names = [row["name"] for row in rows]
    for name in given:
        if name not in names:
            raise TypeError(f'{owner} has no option "{name}"; {_suggestion(name, names)}')
    for row in rows:
        if row["required"] and row["name"] not in given:
            raise TypeError(f'{owner} needs the option "{row["name"]}"')
    return {row["name"]: _checked(row, given[row["name"]]) if row["name"] in given else row["default"] for row in rows}


def _checked(row: dict[str, Any], value: Any) -> Any:
    name, shape, unit = row["name"], row["shape"], row["unit"]
    if value is None and row["optional"]:
        return None
    is_right: bool = isinstance(value, _TYPES[shape]) and (shape == "switch" or not isinstance(value, bool))
    if not is_right:
        of = f" of {unit}" if unit and shape in ("whole", "seconds") else ""
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        raise TypeError(f"{name} must be {_WANTED[shape]}{of}, not {shown}")
    if shape == "choice" and value not in row["choices"]:
        near = _nearest(value, row["choices"])
        if near:
            raise ValueError(f'{name} has no value "{value}"; the nearest one is "{near}"')
        quoted = [f'"{word}"' for word in row["choices"]]
        listed = " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
        raise ValueError(f'{name} must be {listed}, not "{value}"')
    if row["range"] is not None:
        least, most = row["range"]
        if not least <= value <= most:
            upper = " or more" if most == float("inf") else f" to {most:g}" if shape == "seconds" else f" to {most}"
            shown = f"{least:g}" if shape == "seconds" else least
            raise ValueError(f"{name} must be {shown}{upper} {unit}, not {value}".rstrip())
    return float(value) if shape == "seconds" else value


def _suggestion(word: str, known: Any) -> str:
    near = _nearest(word, known)
    return f'the nearest one is "{near}"' if near else f"there are {', '.join(known)}"


def _nearest(word: str, known: Any) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), 1, 0.6)), None)


def service_address(
    address: str,
    authorities: str | None,
    certificate: str | None,
    key: str | None,
    server_name: str | None,
    /,
) -> tuple[str, str]:
    """Return an address without and with its TLS identity, in the one form that equal addresses have."""
    from urllib.parse import quote

    scheme, hosts, identity = parts_of(address)
    values = (authorities, certificate, key, server_name)
    given = {name: value for name, value in zip(_TLS_PARTS, values) if value is not None}
    place = f"unix://{hosts[0][0]}" if scheme == "unix" else f"{scheme}://{','.join(map(_host_text, hosts))}"
    if given:
        if scheme != "tls":
            raise _no_address(place, "authorities, certificate, key and server_name are for tls://HOST:PORT")
        if identity:
            raise _no_address(place, "certificates and names stand in the address already: give them in one place")
        identity = given
        _check_identity(place, identity)
    after = "&".join(f"{name}={quote(identity[name], safe='/')}" for name in _TLS_PARTS if name in identity)
    return place, f"{place}?{after}" if after else place


def parts_of(address: str) -> tuple[str, list[tuple[str, int]], dict[str, str]]:
    """Return the scheme of an address, its hosts with their ports, and its TLS identity. A unix path has port 0.

    Raises:
        ValueError: it is no address of a service.
    """
    from urllib.parse import unquote

    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("tcp", "tls", "unix"):
        raise _no_address(address, "it must begin with tcp://, tls:// or unix://")
    if scheme == "unix":
        if not rest.startswith("/") or len(rest.encode()) > 107 or "\0" in rest:
            form = "a socket has an absolute path of at most 107 bytes: unix:///run/logspool.sock"
            raise _no_address(address, form)
        return scheme, [(rest, 0)], {}
    identity: dict[str, str] = {}
    if scheme == "tls":
        rest, question, query = rest.partition("?")
        for part in query.split("&") if question else ():
            name, equals, value = part.partition("=")
            if not equals or name not in _TLS_PARTS or name in identity:
                known = "after the ? come authorities, certificate, key or server_name, each once"
                raise _no_address(address, f"{known}: ?authorities=/etc/ca.pem&server_name=logs")
            identity[name] = unquote(value)
        _check_identity(address, identity)
    if "," in rest and not all(rest.split(",")):
        why = "an item of the list is empty (fix: HOST:PORT on both sides of each comma, none at the end)"
        raise _no_address(address, why)
    return scheme, sorted({_host(address, part) for part in rest.split(",")}), identity


def _host(address: str, text: str) -> tuple[str, int]:
    if "://" in text:
        raise _no_address(address, "a list has one scheme, at its beginning: tcp://a:9020,b:9020")
    found = re.fullmatch(r"(\[.*\]|[^:/@?# \0]+):(\d{1,5})", text)
    if found is not None and text.startswith("["):
        import ipaddress

        try:
            ipaddress.IPv6Address(found[1][1:-1])
        except ValueError:
            raise _no_address(address, "there is no IPv6 address between the brackets") from None
    if found is None or not 0 < int(found[2]) < 65536:
        raise _no_address(address, f'{_FORM}; "{text}" is not')
    return found[1].strip("[]"), int(found[2])


def _host_text(host: tuple[str, int]) -> str:
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def _check_identity(address: str, identity: dict[str, str]) -> None:
    if ("certificate" in identity) != ("key" in identity):
        raise _no_address(address, "a certificate and its key come together")
    if not all(os.path.isabs(identity[name]) for name in _TLS_PARTS[:3] if name in identity):
        raise _no_address(address, "authorities, certificate and key are files with an absolute path")
    if re.fullmatch(r"[^:/@?# \0]+|[0-9A-Fa-f:.]+", identity.get("server_name", "x")) is None:
        raise _no_address(address, "server_name is the name of a host, or its number")


def _no_address(address: str, why: str) -> ValueError:
    return ValueError(f'"{address}" is no address of a service: {why}')
