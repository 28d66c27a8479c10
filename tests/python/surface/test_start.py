"""The start of a program stays fast: importing the package and installing it load few other modules."""

from __future__ import annotations

import pickle

import pytest

from logspool.base import _tuples

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# `logging` and the tracebacks of stock logging load more on some interpreters; only what comes after it counts.
PROGRAM = """
import logging, sys
try:
    raise ValueError("by stock logging")
except ValueError as error:
    logging.Formatter().formatException((type(error), error, error.__traceback__))
known = set(sys.modules)
import logspool
logspool.install()
logging.basicConfig(filename="app.log", format="%(asctime)s %(message)s", level=logging.INFO)
log = logging.getLogger("shop")
log.info("%d of %s", 1, "many", extra={"field": 2})
try:
    raise ValueError("no such item")
except ValueError:
    log.exception("failed")
assert logspool.flush()
print(*sorted(name for name in set(sys.modules) - known if name.split(".")[0] != "logspool"))
"""

#: The modules that the package needs. All are quick to load: `typing` alone would take as long as all of logspool.
NEEDED = {"__future__", "_contextvars", "contextvars", "copy", "encodings.latin_1", "math", "signal"}
NEEDED |= {"_math_integer", "math.integer"}  # `math` of 3.15
NEEDED |= {"contextlib"}  # Later versions of `logging` than that of 3.10 load it themselves.


class Place(_tuples.NamedTuple):
    """A place, as the package declares its named tuples."""

    name: str
    number: int
    shelf: str | None = None
    marks: tuple[str, ...] = ()


def test_import_install_and_first_records_load_few_modules(run_program):
    outcome, _ = run_program(PROGRAM)
    outcome.expect_success()

    assert set() == set(outcome.out.decode().split()) - NEEDED


def test_a_named_tuple_has_fields_defaults_and_a_docstring():
    place = Place("desk", 3)

    assert ("desk", 3, None, ()) == place == Place(number=3, name="desk")
    assert ("desk", 3, "upper", ()) == place._replace(shelf="upper")
    assert "A place, as the package declares its named tuples." == Place.__doc__
    assert "Place(name='desk', number=3, shelf=None, marks=())" == repr(place)
    assert place == pickle.loads(pickle.dumps(place))


def test_a_named_tuple_refuses_fields_that_it_does_not_have():
    with pytest.raises(TypeError, match="colour"):
        Place("desk", 3, colour="red")
