"""The comparison of interpreters: its output and its verdicts."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pythons():
    before = list(sys.path)
    sys.path[:0] = [str(Path(__file__).resolve().parents[2] / folder) for folder in ("bench", "scripts")]
    import pythons

    yield pythons
    sys.path[:] = before


def _found(pythons, **own):
    figures = {"info": 100.0, "exception": 10.0, "start": 20.0}
    results = pythons.Results({})
    for tag in ("3.12", "3.13t", "3.15"):
        # The least of the rounds counts.
        for number, times in enumerate((2, 1)):
            found = {**figures, **own.get(tag[2:], {})}
            results.add(tag, "logspool", number, {row: figure * times for row, figure in found.items()})
            results.add(tag, "stock", number, {"info": 3000.0 * times, "exception": 300.0 * times, "start": 0.0})
    return results


def _missed(pythons, results):
    return [verdict.what for verdict in pythons.Pythons().judge(results) if verdict.met is False]


def test_a_run_within_the_goals_misses_none(pythons):
    results = _found(pythons, **{"15": {"info": 115.0, "exception": 13.0, "start": 22.0}})
    ((table, _),) = pythons.Pythons().tables(results)

    assert [] == _missed(pythons, results)
    assert ["3.15", "115.0 (3,000.0)", "1.15", "13.0 (300.0)", "1.30", "22.0", "1.10"] == table.rows[-1]


def test_each_figure_above_its_goal_is_a_miss(pythons):
    for row, figure in (("info", 116.0), ("exception", 13.1), ("start", 22.1)):
        results = _found(pythons, **{"15": {row: figure}})

        assert [f"3.15: {pythons.TITLES[row]}, of 3.12"] == _missed(pythons, results)


def test_a_build_without_a_gil_has_no_goal(pythons):
    assert [] == _missed(pythons, _found(pythons, **{"13t": {"info": 900.0}}))
