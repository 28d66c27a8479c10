"""Each option of `install()` is a row of the core: it is in the signature, and its row checks the value."""

import inspect
import math
import os

import pytest

import logspool
from logspool import _native

pytestmark = pytest.mark.real

ROWS = {row["name"]: row for row in _native.install_options()}

#: For each shape of option a value of a wrong type.
OTHER_TYPE = {
    "choice": 3,
    "path": 3,
    "switch": 1,
    "whole": 1.5,
    "seconds": "1",
    "levels": "ERROR",
    "texts": "secret",
}

MAKERS = [logspool.install, logspool.StreamHandler, lambda **options: logspool.SinkHandler("null", **options)]


def test_the_signature_matches_the_option_table():
    defaults = {name: parameter.default for name, parameter in inspect.signature(logspool.install).parameters.items()}

    assert {name: row["default"] for name, row in ROWS.items()} == defaults


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ROWS)
def test_a_value_of_another_type_is_refused(name, make):
    with pytest.raises(TypeError, match=f"^{name} must be "):
        make(**{name: OTHER_TYPE[ROWS[name]["shape"]]})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row["optional"]])
def test_none_is_refused_where_a_value_is_required(name, make):
    with pytest.raises(TypeError, match=f"^{name} must be .*, not None$"):
        make(**{name: None})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row["range"]])
def test_a_value_out_of_its_range_is_refused(name, make):
    least, most = ROWS[name]["range"]
    one = 1 if ROWS[name]["shape"] == "whole" else 0.001
    values = [least - one, most + one] if most < math.inf else [least - one]
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} must be "):
            make(**{name: value})


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row["shape"] == "choice"])
def test_a_word_that_is_not_a_choice_is_refused(name):
    with pytest.raises(ValueError, match=f"^{name} must be .*, not "):
        logspool.install(**{name: "quite another"})


def test_missing_options_have_their_defaults():
    checked = _native.check_options({})

    resolved = {"blocking_timeout": 0.1, "durable_levels": [], "redact_keys": [], "redact_patterns": [], "sample": []}
    assert {name: row["default"] for name, row in ROWS.items()} | resolved == checked


def test_the_core_returns_the_values_unchanged():
    given = {
        "durability": "checkpoint",
        "queue_total_bytes": 1 << 20,
        "queue_dir": os.fsdecode(b"/dev/shm/\xff"),
        "blocking_levels": [20, 40],
        "blocking_timeout": math.inf,
        "sync_interval": 2,
        "fallback": None,
        "keeper": True,
    }

    checked = _native.check_options(given)

    assert given == {name: checked[name] for name in given}
