"""The pages of promises link their proofs, and each linked test and section exists.

Checked are each row of the guarantees, each cell of their appendix, and each advice on inference services.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXPLAIN = ROOT / "docs" / "explain"
ANSWERS = EXPLAIN / "guarantees.md"
DETAIL = EXPLAIN / "guarantees-in-detail.md"
ADVICE = EXPLAIN / "inference.md"

_NUMBER = re.compile(r"\[(\d+)\]")
_PLACE = re.compile(r"^\[(?P<number>\d+)\]: (?P<path>[^#\n]+)#(?P<name>\w+)$", re.MULTILINE)
_LINK = re.compile(r"\[test\]\((?P<path>[^)#]+)#(?P<name>\w+)\)")


def _rows(page):
    """Return the cells of the rows of all tables of a page, without the head rows."""
    lines = page.read_text(encoding="utf-8").splitlines()
    tables = [index for index, line in enumerate(lines) if line.startswith("|---")]
    rows = [line for index, line in enumerate(lines) if line.startswith("| ") and index + 1 not in tables]
    return [row.strip("|").split(" | ") for row in rows]


def _is_defined(path, name):
    """Return whether a file has a test of that name."""
    keyword = "def" if path.suffix == ".py" else "fn"
    return path.is_file() and re.search(rf"^\s*{keyword} {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("page", "pattern", "most"), [(ANSWERS, _LINK, 30), (DETAIL, _PLACE, 80), (ADVICE, _LINK, 40)])
def test_every_linked_test_exists(page, pattern, most):
    places = [(found["path"], found["name"]) for found in pattern.finditer(page.read_text(encoding="utf-8"))]
    missing = [f"{path}#{name}" for path, name in places if not _is_defined((page.parent / path).resolve(), name)]

    assert len(places) > most
    assert missing == []


def test_every_answer_has_a_test():
    rows = _rows(ANSWERS)

    assert len(rows) > 25
    assert [] == [row[0] for row in rows if not _LINK.search(row[-1])]


def test_every_cell_of_the_appendix_has_a_test():
    numbers = {found["number"] for found in _PLACE.finditer(DETAIL.read_text(encoding="utf-8"))}
    rows = _rows(DETAIL)
    cells = [cell for row in rows for cell in row[1:]]
    used = {number for cell in cells for number in _NUMBER.findall(cell)}

    assert len(rows) > 35
    assert [] == [row[0] for row in rows if len(row) != 6]
    assert [] == [cell for cell in cells if not _NUMBER.search(cell)]
    assert used == numbers


def test_every_advice_has_a_proof_and_a_reason_where_it_does_not_apply():
    text = ADVICE.read_text(encoding="utf-8")
    rows = [row for row in _rows(ADVICE) if len(row) == 5]
    sections = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in re.findall("^#+ (.+)$", text, re.M)}
    figures = re.findall(r"\[figure\]\(([^)]+)\)", text)

    assert [int(row[0]) for row in rows] == list(range(1, 39))
    assert [] == [row[0] for row in rows if not re.search(r"\[(?:test|figure|how)\]\(", row[-1])]
    assert [] == [name for name in re.findall(r"\]\(#([^)]+)\)", text) if name not in sections]
    assert [] == [name for name in figures if "/bench/runs/" not in name or not (EXPLAIN / name).is_file()]
    assert len(figures) > 10


def test_the_page_of_answers_stays_short():
    assert ANSWERS.stat().st_size < 12_000
