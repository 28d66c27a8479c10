"""The decoder of pickles against CPython: values and records of all shapes, drawn by hypothesis."""

import datetime
import decimal
import json
import logging
import logging.handlers
import math
import pickle
import subprocess
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import executables

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**300), max_value=2**300)
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.datetimes(timezones=st.just(datetime.timezone.utc))
    | st.dates()
    | st.times()
    | st.decimals()
    | st.uuids()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=5)
        | st.frozensets(st.integers() | st.text(), max_size=1)
    ),
    max_leaves=20,
)


def shown(value):
    """Return the value as the service shows it, as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    return NotImplemented


@pytest.fixture(scope="session")
def decoder():
    """A process that decodes: `decode(frame, *options)`."""
    path = executables.build("logspool-server", "--example", "decode_pickle")
    processes = {
        option: subprocess.Popen([path, *option.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for option in ("", "--value")
    }

    def decode(frame: bytes, option: str = "") -> str:
        process = processes[option]
        process.stdin.write(frame.hex() + "\n")
        process.stdin.flush()
        return process.stdout.readline().rstrip("\n")

    yield decode
    for process in processes.values():
        process.stdin.close()
        assert 0 == process.wait(30)
        process.stdout.close()


def plain(value) -> bool:
    """Whether a value has a JSON form that is stated here: other values are compared by their text elsewhere."""
    if isinstance(value, (list, tuple, frozenset)):
        return all(map(plain, value))
    if isinstance(value, dict):
        return all(map(plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str))


@settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=values, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_values_are_read_as_python_wrote_them(decoder, value, protocol):
    answer = decoder(pickle.dumps(value, protocol), "--value")

    assert not answer.startswith("error: "), answer
    if plain(value):
        assert json.dumps(shown(value), sort_keys=True) == json.dumps(json.loads(answer), sort_keys=True)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 11, 22, 10, 0, 0, 500_000),
        datetime.datetime(2026, 11, 22, tzinfo=datetime.timezone.utc),
        datetime.date(2026, 11, 22),
        datetime.time(10, 30),
        decimal.Decimal("1.50"),
        uuid.UUID(int=7),
    ],
)
def test_values_with_a_usual_text_have_that_text(decoder, value, protocol):
    assert (
        str(value) in (text := json.loads(decoder(pickle.dumps(value, protocol), "--value")))
        or value.isoformat() == text
    )


records = st.fixed_dictionaries(
    {"name": st.text(), "level": st.integers(0, 100), "pathname": st.text(), "lineno": st.integers(0, 2**31 - 1)}
)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    record=records,
    message=st.text(),
    extra=st.dictionaries(st.from_regex(r"x_[a-z]{1,8}", fullmatch=True), values, max_size=4),
)
def test_records_of_socket_handler_are_read_whole(decoder, record, message, extra):
    made = logging.LogRecord(
        record["name"], record["level"], record["pathname"], record["lineno"], "%s", (message,), None
    )
    made.__dict__.update(extra)
    frame = logging.handlers.SocketHandler("localhost", 0).makePickle(made)

    answer = json.loads(decoder(frame[4:]))

    assert (record["name"], record["level"], message) == (answer["logger"], answer["level"], answer["message"])
    assert (record["pathname"], record["lineno"]) == (answer["file"], answer["line"])
    fields = answer.get("fields", {})
    assert set(extra) == set(fields)
    for name, value in extra.items():
        if plain(value):
            assert json.dumps(shown(value), sort_keys=True) == json.dumps(fields[name], sort_keys=True)
