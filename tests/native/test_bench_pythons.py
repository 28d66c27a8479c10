"""The comparison of interpreters: its output and its verdicts."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pythons():
    before = list(sys.path)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
    import pythons

    yield pythons
    sys.path[:] = before


def _found(**own):
    figures = {"info": 100.0, "exception": 10.0, "start": 20.0}
    stock = {"info": 3000.0, "exception": 300.0, "start": 0.0}
    return {tag: {"stock": stock, "logspool": {**figures, **own.get(tag[2:], {})}} for tag in ("3.12", "3.13t", "3.15")}


def test_a_run_within_the_goals_misses_none(pythons):
    lines, missed = pythons.table(_found(**{"15": {"info": 115.0, "exception": 13.0, "start": 22.0}}))

    assert [] == missed
    assert "| 3.15 | 115.0 (3,000.0) | 1.15 | 13.0 (300.0) | 1.30 | 22.0 | 1.10 |" == lines[-1]


def test_each_figure_above_its_goal_is_a_miss(pythons):
    for row, figure in (("info", 116.0), ("exception", 13.1), ("start", 22.1)):
        _, missed = pythons.table(_found(**{"15": {row: figure}}))

        assert [f"3.15: {pythons.TITLES[row]}"] == [text.rpartition(": ")[0] for text in missed]


def test_a_build_without_a_gil_has_no_goal(pythons):
    _, missed = pythons.table(_found(**{"13t": {"info": 900.0}}))

    assert [] == missed
