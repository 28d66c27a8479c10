"""The replacement of the native module gives the answers of the native one: bytes, tables, checks and their errors."""

import datetime

import pytest

from logspool import _native
from logspool.pure import _formats, _options, _unpacked

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(hasattr(_native, "without_core"), reason="compares with the native module"),
]

ITSELF: list = []
ITSELF.append(ITSELF)
DEEP: list = []
for _ in range(20):
    DEEP = [DEEP]


class Name(str):
    """A text of a class of its own."""


VALUES = [
    *(
        None,
        True,
        False,
        "",
        "text",
        '\u20ac \U0001f600 \x00\x1f\x7f"\\/\b\f\n\r\t\u2028',
        "odd \udc80",
        b"raw",
        Name("x"),
    ),
    *(
        sign * (1 << bits) + step
        for bits in (0, 5, 7, 8, 15, 16, 31, 32, 62, 63, 64, 70)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ),
    *(0.0, -0.0, 1.5, 1e100, 5e-324, float("inf"), float("nan")),
    *((), (1, "a"), [1, [2, [3]]], {"a": {1: [None]}}, {1, 2} - {2}, datetime.date(2026, 11, 29)),
    *(ITSELF, DEEP, list(range(2000)), list(range(2001)), [list(range(1001))], "x" * 70_000, list(range(70_000))),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_a_value_has_the_same_bytes_in_json_and_in_an_entry(value):
    for members in ([("key", value)], [("a", 1), ("k\u20ac", value), ("b" * 300, value)]):
        assert _native.json_object(members) == _formats.json_object(members)
        assert _native.entry(1_764_000_000.123456789, members) == _formats.entry(1_764_000_000.123456789, members)


@pytest.mark.parametrize("created", [0.0, -1.0, 0.5, 1e-9, 1_764_421_526.999999999, 2.0**32, 1e12])
def test_an_entry_has_the_same_time(created):
    assert _native.entry(created, []) == _formats.entry(created, [])


def test_a_record_too_large_is_cut_at_the_same_places():
    parts = [("message", "\u20ac" * 3_000_000), *((f"field {number}", "text") for number in range(1100))]

    assert _native.entry(1.0, parts) == _formats.entry(1.0, parts)


def error_of(function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"durability": "memroy"},
        {"durability": "disk"},
        {"durability": 7},
        {"fallback": "stdout"},
        {"fallback": None},
        {"queue_bytes": 1},
        {"queue_bytes": "x"},
        {"queue_bytes": 1.5},
        {"queue_bytes": None},
        {"queue_bytes": True},
        {"queue_bytes": 100_000, "queue_total_bytes": 50_000},
        {"flush_interval": -1},
        {"flush_interval": 1},
        {"flush_interval": True},
        {"blocking_timeout": float("inf")},
        {"shutdown_timeout": -0.5},
        {"keeper": 1},
        {"keeper": None},
        {"queue_dirr": "/x"},
        {"spool_dir": 5},
        {"blocking_levels": [40]},
        {"redact_keys": 7},
    ],
)
def test_options_of_install_are_checked_alike(options):
    native, pure = error_of(_native.check_options, options), error_of(_options.check_options, options)

    if isinstance(native, dict):
        native["durability"] = "memory"
    assert native == pure


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"address": "tcp://h:1"},
        {"address": "tcp://h:1", "tag": 5},
        {"address": "tcp://h:1", "tag": ""},
        {"address": "tcp://h:1", "tag": "a b"},
        {"address": "tcp://h:1", "tga": "x"},
        {"address": "tcp://h:1", "shared_key": "a b"},
        {"address": "tcp://h:1", "chunk_bytes": 5},
        {"address": "tcp://h:1", "gather_seconds": -1},
    ],
)
def test_options_of_a_service_are_checked_alike(options):
    assert error_of(_native.check_sink, "service", options) == error_of(_options.check_sink, "service", options)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "tcp://host:9020",
            "tcp://b:2,a:1,b:2",
            "tls://[::1]:9020",
            "unix:///run/s",
            "tls://h:1?authorities=/a%20b.pem",
        ),
        *(
            "host:9020",
            "http://h:1",
            "tcp://host",
            "tcp://host:0",
            "tcp://host:65536",
            "tcp://h:1,",
            "tcp://a:1,tcp://b:2",
        ),
        *(
            "unix://x",
            f"unix:///{'x' * 107}",
            "tcp://[::zz]:1",
            "tls://h:1?x=1",
            "tls://h:1?key=/k",
            "tls://h:1?authorities=a",
        ),
    ],
)
@pytest.mark.parametrize("identity", [(None,) * 4, ("/ca.pem", None, None, "logs"), (None, "/c.pem", None, None)])
def test_addresses_are_read_alike(address, identity):
    found = error_of(_native.service_address, address, *identity)

    assert found == error_of(_options.service_address, address, *identity)


@pytest.mark.parametrize(
    "value", [None, True, -1, 7, -40, 300, 70_000, 1 << 40, -(1 << 40), 1.5, "ack", [1, "two"], {"ack": "id"}]
)
def test_what_the_core_packs_is_read_again(value):
    # Time and parts are before the value.
    packed = _native.entry(0.0, [("k", value)])[16:]

    assert _unpacked.first(packed + b"more") == (value, len(packed))
    assert all(_unpacked.first(packed[:size]) is None for size in range(len(packed)))


@pytest.mark.parametrize(
    "answer", [b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 100, b"\xdb\xff\xff\xff\xff" + b"x" * 70_000]
)
def test_an_answer_that_no_service_sends_is_refused(answer):
    with pytest.raises(ValueError, match="the answer of the service"):
        _unpacked.first(answer)
