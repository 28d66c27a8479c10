"""Make the pickles of log records that the decoder is tested with: one file for each version of Python.

    for version in 3.10 3.11 3.12 3.13; do python$version make_pickles.py; done

Each line of `pickles-VERSION.txt` holds, between tabs: a name, the pickle in hex, the record in JSON as the service
has to understand it. The records are made by `logging` and pickled by `SocketHandler`, or by the protocols that a
handler with a `makePickle` of its own may choose.
"""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import logging
import logging.handlers
import pathlib
import pickle
import sys
import uuid
import zoneinfo

HERE = pathlib.Path(__file__).parent
PROTOCOLS = range(6)


class Color(enum.Enum):
    """A member of this is an extra of a record."""

    RED = 1


class Own:
    """An object that the service knows nothing of."""

    def __init__(self):
        self.size = 7


class Empty:
    """An object without attributes."""


class Slots:
    """An object with slots."""

    __slots__ = ("left",)

    def __init__(self):
        self.left = 3


@dataclasses.dataclass
class Order:
    """A dataclass."""

    id: int
    tags: list[str]


Point = collections.namedtuple("Point", "x y")


def record(message="hello %s", args=("world",), level=logging.INFO, **extra):
    """Return a record as a call of a logger makes it."""
    logger = logging.getLogger("shop.cart")
    made = logger.makeRecord("shop.cart", level, "/srv/shop/cart.py", 42, message, args, None, "pay", extra)
    made.created, made.thread, made.process = 1_700_000_000.125, 140_000_000_000_001, 4711
    return made


def with_exception():
    """Return a record of `Logger.exception`, formatted before as `SocketHandler` does it."""
    try:
        raise ValueError("no such item: \u20ac")
    except ValueError:
        made = record("failed", (), logging.ERROR)
        made.exc_info = sys.exc_info()
    made.exc_text = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no such item: \u20ac'
    return made


def expected(made, **fields):
    """Return a record as the service has to understand it."""
    found = {
        "time_ns": 1_700_000_000_125_000_000,
        "level": made.levelno,
        "logger": made.name,
        "message": made.getMessage(),
        "file": made.pathname,
        "line": made.lineno,
        "function": made.funcName,
        "process": made.process,
        "process_name": made.processName,
        "thread": made.thread,
        "thread_name": made.threadName,
    }
    if made.exc_text:
        found["exception"] = made.exc_text
    if fields:
        found["fields"] = fields
    return found


MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 58, 123456)
ZONE = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))
NUMBER = uuid.UUID("12345678-1234-5678-9234-567812345678")
SHARED = ["twice"]
DEEP: list = []
for _ in range(100):
    DEEP = [DEEP]

#: What is given as `extra`, and how it is shown.
EXTRAS = {
    "numbers": (
        {"zero": 0, "small": -1, "short": 65535, "int": -(2**31), "long": 2**62, "huge": 2**100, "less": -(2**100)},
        {
            "zero": 0,
            "small": -1,
            "short": 65535,
            "int": -(2**31),
            "long": 2**62,
            "huge": str(2**100),
            "less": str(-(2**100)),
        },
    ),
    "floats": (
        {"a": 0.1, "b": -1e300, "c": float("inf"), "d": float("nan")},
        {"a": 0.1, "b": -1e300, "c": "inf", "d": "nan"},
    ),
    "texts": (
        {
            "empty": "",
            "quote": 'it\'s "x"',
            "lines": "a\nb\\n",
            "wide": "\u20ac \U0001f600",
            "nul": "\0",
            "lone": "\udc80",
        },
        {
            "empty": "",
            "quote": 'it\'s "x"',
            "lines": "a\nb\\n",
            "wide": "\u20ac \U0001f600",
            "nul": "\0",
            "lone": "\\udc80",
        },
    ),
    "constants": ({"yes": True, "no": False, "none": None}, {"yes": True, "no": False, "none": None}),
    "containers": (
        {"list": [1, [2, "x"]], "tuple": (1,), "five": (1, 2, 3, 4, 5), "none": (), "dict": {"a": {"b": 1}, 2: 3}},
        {"list": [1, [2, "x"]], "tuple": [1], "five": [1, 2, 3, 4, 5], "none": [], "dict": {"a": {"b": 1}, "2": 3}},
    ),
    "shared": ({"first": SHARED, "second": SHARED}, {"first": ["twice"], "second": ["twice"]}),
    "bytes": (
        {"bytes": b"a\x00'\xff", "empty": b"", "array": bytearray(b"xy")},
        {"bytes": 'b"a\\x00\'\\xff"', "empty": "b''", "array": "b'xy'"},
    ),
    "sets": ({"set": {7}, "frozen": frozenset([8]), "nothing": set()}, {"set": [7], "frozen": [8], "nothing": []}),
    "times": (
        {
            "moment": MOMENT,
            "aware": MOMENT.replace(tzinfo=ZONE),
            "utc": MOMENT.replace(microsecond=0, tzinfo=datetime.timezone.utc),
            "date": MOMENT.date(),
            "time": MOMENT.time(),
            "delta": datetime.timedelta(days=-1, seconds=1, microseconds=500_000),
        },
        {
            "moment": "2024-02-29T23:59:58.123456",
            "aware": "2024-02-29T23:59:58.123456-03:30",
            "utc": "2024-02-29T23:59:58+00:00",
            "date": "2024-02-29",
            "time": "23:59:58.123456",
            "delta": "-86398.5 s",
        },
    ),
    "decimals": ({"price": decimal.Decimal("12.50")}, {"price": "12.50"}),
    "uuids": ({"id": NUMBER}, {"id": str(NUMBER)}),
    "collections": (
        {
            "ordered": collections.OrderedDict(a=1),
            "counter": collections.Counter("aa"),
            "deque": collections.deque([1, 2]),
        },
        {"ordered": {"a": 1}, "counter": {"a": 2}, "deque": [1, 2]},
    ),
    "unknown": (
        {"own": Empty(), "class": Own, "function": json.dumps},
        {"own": "<__main__.Empty>", "class": "<__main__.Own>", "function": "<json.dumps>"},
    ),
    "instances": (
        {"own": Own(), "order": Order(7, ["a"]), "point": Point(1, 2.5), "error": ValueError("x", 5)},
        {
            "own": {"__class__": "__main__.Own", "size": 7},
            "order": {"__class__": "__main__.Order", "id": 7, "tags": ["a"]},
            "point": {"__class__": "__main__.Point", "values": [1, 2.5]},
            "error": {"__class__": "builtins.ValueError", "values": ["x", 5]},
        },
    ),
    "paths": (
        {"root": pathlib.PurePosixPath("/srv/a b"), "part": pathlib.Path("x/y"), "here": pathlib.Path()},
        {"root": "/srv/a b", "part": "x/y", "here": "."},
    ),
    "standard library": (
        {
            "address": ipaddress.ip_address("192.0.2.1"),
            "six": ipaddress.ip_address("2001:db8::1"),
            "network": ipaddress.ip_network("192.0.2.0/24"),
            "third": fractions.Fraction(1, 3),
            "range": range(1, 5),
            "zoned": MOMENT.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        },
        {
            "address": "192.0.2.1",
            "six": "2001:db8::1",
            "network": "192.0.2.0/24",
            "third": "1/3",
            "range": "range(1, 5, 1)",
            "zoned": "2024-02-29T23:59:58.123456[Europe/Berlin]",
        },
    ),
}


def enum_text():
    """Return how a member of an Enum is shown: some versions pickle its name, others its value."""
    by_name = b"getattr" in pickle.dumps(Color.RED, 2)
    return "Color.RED" if by_name else "<__main__.Color(1)>"


def cases():
    """Yield name, pickle and expected record."""
    handler = logging.handlers.SocketHandler("localhost", 0)
    for name, made in {
        "plain": record(),
        "no arguments": record("100 %", ()),
        "exception": with_exception(),
        "numbers as message": record(12.5, ()),
        "long": record("x" * 5000, ()),
    }.items():
        yield name, handler.makePickle(made)[4:], expected(made)
    for name, (extra, shown) in [*EXTRAS.items(), ("enums", ({"color": Color.RED}, {"color": enum_text()}))]:
        made = record(**extra)
        for protocol in PROTOCOLS:
            attributes = dict(made.__dict__, msg=made.getMessage(), args=None, exc_info=None)
            yield f"{name}, protocol {protocol}", pickle.dumps(attributes, protocol), expected(made, **shown)
    attributes = dict(record().__dict__, msg="slots", args=None, slots=Slots())
    shown = {"__class__": "__main__.Slots", "left": 3}
    yield "slots", pickle.dumps(attributes, 4), expected(record("slots", ()), slots=shown)
    attributes = dict(record().__dict__, msg="deep", args=None, deep=DEEP)
    shown = "..."
    # The dict is one level, its value the next.
    for _ in range(32):
        shown = [shown]
    made = expected(record("deep", ()), deep=shown)
    yield "deep", pickle.dumps(attributes, 1), made


def main():
    """Write the file of this version."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    lines = [f"{name}\t{data.hex()}\t{json.dumps(shown)}" for name, data, shown in cases()]
    (HERE / f"pickles-{version}.txt").write_text("\n".join(lines) + "\n")
    print(f"{version}: {len(lines)} pickles")


if __name__ == "__main__":
    main()
