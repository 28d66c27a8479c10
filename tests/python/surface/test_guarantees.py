"""Every test that the page of guarantees links is there; what has none says so."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explain" / "guarantees.md"

NO_TEST = "no test yet"
_ROW = re.compile(r"^\| (?!fault|-)(?P<fault>.+?) \| (?P<cells>.*\(.*) \|$", re.MULTILINE)
_LINK = re.compile(r"\[test\]\((?P<path>[^)#]+)#(?P<name>\w+)\)")


def _rows():
    """Return the cells of the two matrices by their fault."""
    text = PAGE.read_text(encoding="utf-8")
    matrices = text[text.index("## Records for files") : text.index("## What is not promised")]
    return [(found["fault"], found["cells"].split(" | ")) for found in _ROW.finditer(matrices)]


def _is_defined(path, name):
    """Tell whether a file has a test of that name."""
    keyword = "def" if path.suffix == ".py" else "fn"
    return path.is_file() and re.search(rf"^\s*{keyword} {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_linked_test_exists():
    links = _LINK.findall(PAGE.read_text(encoding="utf-8"))
    missing = [f"{path}#{name}" for path, name in links if not _is_defined((PAGE.parent / path).resolve(), name)]

    assert len(links) > 30
    assert missing == []


def test_every_cell_has_a_test_or_says_that_it_has_none(record_property):
    rows = _rows()
    wrong = [fault for fault, cells in rows if len(cells) != 5]
    cells = [cell for _, cells in rows for cell in cells]
    silent = [cell for cell in cells if not (_LINK.search(cell) or NO_TEST in cell)]
    open_cells = [cell for cell in cells if NO_TEST in cell]
    summary = f"{len(cells)} cells, {len(cells) - len(open_cells)} with a test, {len(open_cells)} without yet"
    print(summary)
    record_property("summary", summary)

    assert len(rows) > 35
    assert wrong == []
    assert silent == []
