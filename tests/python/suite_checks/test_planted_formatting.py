"""Faults of formatting planted in the stand-in are found by the property tests' own strategies."""

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, Phase, find, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from formatting import calls as made  # noqa: E402
from formatting.worker import Batch  # noqa: E402
from formatting.workers import Workers, difference  # noqa: E402

SETTINGS = settings(
    max_examples=500,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_at_least_half_of_the_generated_calls_are_valid_and_a_tenth_are_invalid():
    right = []

    @hypothesis.given(st.lists(made.calls, min_size=20, max_size=20))
    @settings(SETTINGS, max_examples=50)
    def count(batch):
        right.extend(made.python_can(*each) for each in batch)

    count()

    assert 0.5 < sum(right) / len(right) < 0.9


@pytest.mark.parametrize("plant", ["rounded", "drops", "short-report", "cached-zone"])
def test_a_planted_fault_is_found_by_generated_cases(plant, tmp_path, queue_dir):
    batches = {
        "cached-zone": made.dated_formatters().map(lambda formatted: Batch([(20, "x", (), None)], formatted)),
    }.get(
        plant,
        st.lists(made.calls, min_size=10, max_size=10).map(
            lambda calls: Batch([(20, message, arguments, None) for message, arguments in calls])
        ),
    )

    with Workers(tmp_path, queue_dir, package=f"stand-in:{plant}") as workers:
        found = find(batches, lambda batch: any(difference(*pair) for pair in workers.log(batch)), settings=SETTINGS)

    assert found.calls
