"""Strategies of calls for the formatters of packages: extra fields with values and names of every kind."""

import datetime
import decimal
import logging
import uuid

from hypothesis import strategies as st

from formatting import calls as made

odd = st.sampled_from(
    [
        datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
        datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
        datetime.date(2026, 1, 2),
        datetime.time(3, 4),
        decimal.Decimal("1.50"),
        uuid.UUID(int=7),
        ValueError("broken"),
        ValueError,
        bytearray(b"b"),
        range(3),
        1 + 2j,
        frozenset(),
        object,
    ]
)
_keys = st.one_of(made.text, st.integers(-3, 3), st.booleans(), st.none(), st.floats(), st.just((1,)))
nested = st.recursive(
    st.one_of(made.values, odd),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(_keys, inner, max_size=3),
    ),
    max_leaves=6,
)
values = st.one_of(made.values, made.values, odd, nested)

#: Names that formats show, that options rename, and that other keys have.
NAMES = ("user", "request_id", "level", "timestamp", "host", "exc_info_", "_private", "grüße", "a.b", "color_message")
#: Stock logging raises for an extra field of such a name.
_RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime"}
names = st.one_of(st.sampled_from(NAMES), made.text.filter(lambda name: name not in _RESERVED))
extras = st.dictionaries(names, values, max_size=4)

#: Keys of messages that are dicts, also keys that are names of record attributes or options.
_message_keys = st.one_of(
    st.sampled_from([*NAMES, "message", "levelname", "exc_info", "stack_info", "created"]), made.text
)
_dicts = st.dictionaries(_message_keys, values, max_size=4)

messages = st.one_of(
    made.positional_calls(),
    st.tuples(made.text, st.just(())),
    st.tuples(_dicts, st.just(())),
    st.tuples(st.one_of(_dicts, st.dictionaries(_keys, made.values, max_size=2)), st.sampled_from([(), (1,), ({},)])),
    st.tuples(odd, st.just(())),
)


def batches(fields=extras, size=8):
    """Return a strategy of calls: level, message, arguments, keywords."""
    keywords = st.fixed_dictionaries(
        {},
        optional={
            "extra": fields,
            "exc_info": st.one_of(st.sampled_from([False, None, 0]), st.just(ValueError("given\n\x85text"))),
            "stack_info": st.booleans(),
        },
    )
    call = st.tuples(made.levels, messages, keywords)
    return st.lists(call, min_size=size, max_size=size).map(
        lambda found: [(level, message, arguments, keywords) for level, (message, arguments), keywords in found]
    )
