"""With logspool installed, text equals stock logging's byte for byte; 10,000 calls (`LOGSPOOL_EXAMPLES`).

Each drawn batch is logged on the running interpreter, or on all interpreters in `LOGSPOOL_EXAMPLE_PYTHONS` (paths with
`:` between): hypothesis takes far longer to draw a batch than two processes to log it.
"""

import os
import sys

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, example, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from formatting import calls as made  # noqa: E402
from formatting.worker import Batch, Formatted  # noqa: E402
from formatting.workers import Workers, difference  # noqa: E402
from suite import queue_folder  # noqa: E402

CASES = int(os.environ.get("LOGSPOOL_EXAMPLES", "10000"))
PYTHONS = os.environ.get("LOGSPOOL_EXAMPLE_PYTHONS", sys.executable).split(os.pathsep)
# Calls in one example; hypothesis shrinks a failing example to the failing call.
BATCH = 10


def cases(share: float, calls: int = BATCH):
    """Return the settings for a test that makes `share` of all calls, with `calls` calls in each example."""
    return settings(
        max_examples=max(5, int(CASES * share / calls)),
        deadline=None,
        database=None,
        # By default each machine tests the same cases. The long run sets its number of cases and draws new ones.
        derandomize="LOGSPOOL_EXAMPLES" not in os.environ,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def batch_of(one):
    return st.lists(one, min_size=BATCH, max_size=BATCH)


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formatting")
    with queue_folder.private() as queue_dir, Workers(folder, queue_dir, pythons=PYTHONS) as made:
        yield made


def same(workers, batch):
    """Log the batch on both sides and fail if they differ; return the installed side's answer of each interpreter."""
    answers = workers.log(batch)
    for stock, installed in answers:
        found = difference(stock, installed)
        assert not found, found
    return [installed for _, installed in answers]


def all_native(answers, calls: int) -> bool:
    """Return whether all calls took the native path; answers without a count are left out."""
    return all((answer.native, answer.stock) == (calls, 0) for answer in answers if answer.native is not None)


def level_calls(batch):
    return [(level, message, arguments, None) for level, (message, arguments) in batch]


@given(directives=batch_of(made.directives_without_value()), values=batch_of(made.arguments_of_any_kind))
@cases(0.75, calls=BATCH * BATCH)
def test_every_directive_shows_every_value_as_stock_logging_does(workers, directives, values):
    calls = [(f"[{directive}]", (*stars, value)) for directive, stars, _ in directives for value in values]
    certain = sum(made.certainly_native(*each) for each in calls)

    for answer in same(workers, Batch([(20, *each, None) for each in calls])):
        assert answer.native is None or certain <= answer.native == len(calls) - answer.stock


@given(batch=batch_of(st.tuples(made.levels, made.calls)))
@example(batch=[(20, ("%5.2f%%", (1.005,))), (20, ("%s", ("\ud800",))), (20, ("%c%c", (0x1F600, "ß")))])
@example(batch=[(20, ("%d", (10**400,))), (20, ("%x", (-(2**70),))), (20, ("%s %s", (float("nan"), -0.0)))])
@example(batch=[(20, ("%s", ((),))), (20, ("%s", ((1,),))), (20, ("%s", ({},))), (20, ("%(a)s", ({"a": 1},)))])
@example(batch=[(20, ("100%", ())), (20, ("%", (1,))), (20, ("", (1,))), (20, ("%%", ({},)))])
@cases(0.1)
def test_messages_and_error_reports_equal_those_of_stock_logging(workers, batch):
    same(workers, Batch(level_calls(batch)))


@given(
    batch=batch_of(made.positional_calls()).map(
        lambda found: [
            (message, arguments) for message, arguments in found if made.certainly_native(message, arguments)
        ]
    )
)
@cases(0.05)
def test_valid_calls_with_builtin_values_take_the_native_path(workers, batch):
    calls = [(20, message, arguments, None) for message, arguments in batch]

    assert all_native(same(workers, Batch(calls)), len(calls))


@given(messages=batch_of(made.text), errors=st.sampled_from(["strict", "replace", "surrogatepass", "surrogateescape"]))
@cases(0.05)
def test_unencodable_text_is_handled_by_the_errors_option_of_the_handler(workers, messages, errors):
    same(workers, Batch([(20, message, (), None) for message in messages], errors=errors))


@given(
    formatted=made.formatters(), batch=st.lists(st.tuples(made.levels, made.positional_calls()), min_size=1, max_size=3)
)
@cases(0.1)
def test_lines_of_any_format_equal_those_of_stock_logging(workers, formatted, batch):
    same(workers, Batch(level_calls(batch), formatted))


@given(formatted=made.dated_formatters())
@cases(0.02)
def test_dates_of_any_format_and_zone_equal_those_of_stock_logging(workers, formatted):
    same(workers, Batch([(20, "message %d", (1,), None)], formatted))


@given(
    names=st.lists(
        st.text(st.sampled_from("abcäß世_"), min_size=1, max_size=5).filter(str.isidentifier),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    fields=st.lists(made.arguments_of_any_kind, min_size=3, max_size=3),
    given_count=st.integers(0, 3),
    with_defaults=st.booleans(),
)
@cases(0.02)
def test_extra_fields_equal_those_of_stock_logging(workers, names, fields, given_count, with_defaults):
    fmt = "|".join(f"%({name})s" for name in names) + " %(message)s"
    extra = dict(list(zip(names, fields))[:given_count])
    defaults = {name: f"default {name}" for name in names} if with_defaults else None

    same(workers, Batch([(20, "message", (), {"extra": extra})], Formatted(fmt=fmt, defaults=defaults)))


@given(formatted=made.formatters_of_fields("user", "count"), batch=batch_of(made.fields("user", "count")))
@cases(0.05)
def test_extra_fields_in_any_format_equal_those_of_stock_logging(workers, formatted, batch):
    same(workers, Batch([(20, "message %d", (1,), {"extra": extra}) for extra in batch], formatted))


@given(formatted=made.formatters(), batch=batch_of(st.tuples(made.calls, made.keywords())))
@cases(0.05)
def test_keywords_of_any_kind_behave_as_in_stock_logging(workers, formatted, batch):
    same(workers, Batch([(20, message, args, keywords) for (message, args), keywords in batch], formatted))


@given(batch=batch_of(st.tuples(made.positional_calls(), made.keywords(usual=True))))
@cases(0.04)
def test_usual_keywords_take_the_native_path(workers, batch):
    calls = [
        (20, message, args, keywords) for (message, args), keywords in batch if made.certainly_native(message, args)
    ]

    assert all_native(same(workers, Batch(calls)), len(calls))


@given(name=made.text, level=st.integers(1, 2**40))
@cases(0.05)
def test_logger_names_and_level_numbers_equal_those_of_stock_logging(workers, name, level):
    batch = Batch([(level, "m", (), None)], Formatted(fmt="%(name)s|%(levelname)s|%(levelno)d"), logger=name or "x")

    same(workers, batch)
