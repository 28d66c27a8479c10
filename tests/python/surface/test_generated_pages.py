"""Pages that are generated from tables of the core are up to date."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import generated_pages

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
PAGES = generated_pages.PAGES


@pytest.mark.parametrize("name", PAGES)
def test_each_generated_page_matches_its_table(name):
    fix = "run `make generated`"

    assert PAGES[name]() == (ROOT / name).read_text(encoding="utf-8"), fix
