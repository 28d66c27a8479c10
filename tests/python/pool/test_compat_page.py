"""The page on moving to the pool: its programs run, its names exist."""

import inspect
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "move-to-the-pool.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = [
    ["[1, 2, 4, 8, 16]", "[1, 2, 3]"],
    ["25", "0 1", "1 2", "2 4", "3 8", "4 16"],
    ["[0, 1, 1, 2, 2, 3, 3, 4, 4, 5]", "49995000", "1069"],
]
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def test_each_program_has_its_output_here():
    assert len(SHOWN) == len(PROGRAMS)


@pytest.mark.parametrize(("program", "shown"), list(zip(PROGRAMS, SHOWN)))
def test_a_program_of_the_page_runs(run_program, program, shown):
    outcome, _ = run_program(program)

    assert sorted(shown) == sorted(outcome.expect_success().out.decode().splitlines())
    assert outcome.err == b""


def test_every_name_has_a_row():
    table = TEXT[TEXT.index("| fastthreadpool | `logspool.pool` |") :]
    options = list(inspect.signature(compat.Pool).parameters)
    names = [name for name in (*dir(compat.Pool), *options) if not name.startswith("_")]

    assert [] == [name for name in names if not re.search(rf"`[^`]*\b{name}\b", table)]
