"""The records that each program sends, and how the found records are compared with them."""

import json
import random
import string
from dataclasses import asdict, dataclass, field
from pathlib import Path

LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}

#: Too long for a datagram of an Ethernet, also compressed.
LONG = "long " + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=20_000))

#: Messages that are hard on their way.
MESSAGES = {
    "plain": "order 7 paid",
    "unicode": "größe 5 € — 東京 🦀 e\u0301 \u202eright to left",
    "control": "tab\there, bell\a, \x1b[31mred\x1b[0m, delete \x7f, next line \x85.",
    "lines": "first\n  second\r\n\nlast",
    "quoting": '"double" \'single\' \\back\\slash {"json": [1]} <tag> %s %d 100 % a=b&c=d+e',
    "dash": "- 3 items left, -5 degrees",
    "minus": "-5 degrees",
    "bracket": '[worker 1] started [a b="c"]',
    "dated": "2026-11-22 10:00:00,125 INFO shop: a format of its own",
    "long": LONG,
}

#: A field of each kind of value.
FIELDS = {
    "order": 7,
    "rate": 0.5,
    "paid": True,
    "coupon": None,
    "customer": 'Zoë "Z" <z@example.org>\nBerlin',
    "tags": ["a", {"b": [1, None]}],
    "cents": 2**53 + 1,
}


@dataclass(frozen=True)
class Sent:
    """A record for a program to send."""

    message: str
    level: str
    fields: "dict[str, object]" = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Return the number of its level."""
        return LEVELS[self.level]


def records(fields: "dict[str, object]" = FIELDS) -> "list[Sent]":
    """Return a record for each message, at the five levels in turn, with these fields."""
    levels = list(LEVELS)
    return [Sent(message, levels[place % 5], fields) for place, message in enumerate(MESSAGES.values())]


def write(path: Path, sent: "list[Sent]") -> Path:
    """Write records where a program reads them."""
    path.write_text(json.dumps([asdict(record) for record in sent]))
    return path


def found(rows: "list[dict]", *names: str) -> "list[tuple]":
    """Return these parts of rows, in an order that does not depend on when they came."""
    return in_order([tuple(row.get(name) for name in names) for row in rows])


def in_order(parts: "list[tuple]") -> "list[tuple]":
    """Sort tuples of values of any kind."""
    return sorted(parts, key=repr)


def times_between(rows: "list[dict]", began: float, ended: float) -> bool:
    """Whether all of these were logged in that time, in seconds since 1970."""
    return all(began <= row["time_ns"] / 1e9 <= ended for row in rows)
