"""The twenty kinds of record that each sender of the survey sends, and how what arrived is compared with them."""

import json
import random
import re
import string
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .sent import LEVELS

LOGGER = "shop.cart"

#: The aspects of a record that are compared; each is a column of the page.
ASPECTS = ("message", "level", "time", "logger", "fields", "traceback")

#: The text of the exception of the kind `traceback`.
FAILURE = "no such customer: Zoë"

# A line of a stack: of Python, of Java and Node.js, of Go.
STACK = re.compile(r'  File ".*, line \d+|\s+at \S+.*[:(]|\.go:\d+')


@dataclass(frozen=True)
class Kind:
    """A record for a program to send. Its name is a word of its message."""

    name: str
    message: str
    level: str = "INFO"
    fields: "dict[str, object]" = field(default_factory=dict)
    #: Whether the program logs it with an exception.
    raises: bool = False


KINDS = [
    *(Kind(level.lower(), f"a record at {level.lower()}", level) for level in LEVELS),
    Kind("numbers", "numbers as fields", fields={"order": 7, "rate": 0.5, "paid": True, "coupon": None}),
    Kind("big", "a big number as field", fields={"cents": 2**53 + 1}),
    Kind("text", "a text as field", fields={"customer": 'Zoë "Z" <z@example.org>\nBerlin'}),
    Kind("nested", "nested fields", fields={"tags": ["a", {"b": [1, None]}], "address": {"city": "Berlin"}}),
    Kind("names", "names of fields", fields={"größe": 5, "order.id": 7, "user agent": "curl"}),
    Kind("traceback", "a traceback", "ERROR", raises=True),
    Kind("unicode", "unicode größe 5 € — 東京 🦀 e\u0301"),
    Kind("control", "control tab\there, bell\a, \x1b[31mred\x1b[0m, delete \x7f"),
    Kind("lines", "lines first\n  second\r\n\nlast"),
    Kind("quoting", "quoting \"double\" 'single' \\back\\slash <tag> %s %d 100 % a=b&c=d+e"),
    Kind("object", '{"a": "object", "in": ["JSON"]}'),
    Kind("dated", "2026-11-22 10:00:00,125 ERROR cafe: dated"),
    Kind("indented", "    indented"),
    Kind("bracket", '[bracket 1] started [a b="c"]'),
    Kind("long", "long " + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=20_000))),
]


def write(path: Path) -> Path:
    """Write the kinds where a program reads them."""
    path.write_text(json.dumps([asdict(kind) for kind in KINDS]))
    return path


def by_kind(rows: "list[dict]") -> "dict[str, list[dict]]":
    """Return the rows of each kind; under an empty name those whose message and fields have no name of one."""
    found: dict[str, list[dict]] = {kind.name: [] for kind in KINDS} | {"": []}
    for row in rows:
        texts = (str(row["message"]), json.dumps(row, ensure_ascii=False))
        names = [kind.name for text in texts for kind in KINDS if re.search(rf"\b{kind.name}\b", text)]
        found[names[0] if names else ""].append(row)
    return found


def differing(kind: Kind, row: dict, began: float, ended: float) -> "list[str]":
    """Return the aspects in which a row differs from the record, sent between two times in seconds since 1970."""
    # Some senders keep whole seconds, or the milliseconds before.
    whole = row["time_ns"] % 10**9 == 0
    holds = {
        "message": row["message"] == kind.message,
        "level": row["level"] == LEVELS[kind.level],
        "time": (int(began) if whole else began - 1e-3) <= row["time_ns"] / 1e9 <= ended,
        "logger": row.get("logger") == LOGGER,
        "fields": all(same(row["fields"].get(name), value) for name, value in kind.fields.items()),
        "traceback": not kind.raises or is_traceback(f"{row.get('exception')}{row.get('stack')}"),
    }
    if None in kind.fields.values() and any(
        value is None and name not in row["fields"] for name, value in kind.fields.items()
    ):
        holds["fields"] = False
    return [aspect for aspect in ASPECTS if not holds[aspect]]


def same(found: object, sent: object) -> bool:
    """Whether two values are equal and of one type: a number is no text, and true is no number."""
    return json.dumps(found, sort_keys=True) == json.dumps(sent, sort_keys=True)


def is_traceback(text: str) -> bool:
    """Whether a text has the text of the exception and lines of its stack."""
    return FAILURE in text and bool(STACK.search(text))


def precision(rows: "list[dict]") -> str:
    """Return the unit of the times of rows."""
    for divisor, name in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if all(row["time_ns"] % divisor == 0 for row in rows):
            return name
    return "ns"
