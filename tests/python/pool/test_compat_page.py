"""The page on moving to the pool: every name of `compat` has a row."""

import inspect
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.one_interpreter]

compat = pytest.importorskip("logspool.pool.compat")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "move-to-the-pool.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_compat_name_has_a_row():
    table = TEXT[TEXT.index("| fastthreadpool | `logspool.pool` |") :]
    options = list(inspect.signature(compat.Pool).parameters)
    names = [name for name in (*dir(compat.Pool), *options) if not name.startswith("_")]

    assert [] == [name for name in names if not re.search(rf"`[^`]*\b{name}\b", table)]
