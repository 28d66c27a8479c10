"""Pages that are generated from tables of the core are up to date."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
PAGES = runpy.run_path(str(ROOT / "scripts" / "generated_pages.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_each_generated_page_matches_its_table(name):
    fix = "run `make generated`"

    assert PAGES[name]() == (ROOT / name).read_text(encoding="utf-8"), fix
