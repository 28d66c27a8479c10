"""The programs of the pages on the pool run."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

pytest.importorskip("logspool.pool")

ROOT = Path(__file__).resolve().parents[3]


def test_the_examples_of_the_guide_make_one_program_that_runs(run_program):
    text = (ROOT / "docs" / "how-to" / "use-the-pool.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    outcome, _ = run_program("\n".join(blocks), side="stock")
    printed = outcome.expect_success().out.decode().splitlines()

    assert b"" == outcome.err
    for line in ("30", "nobody waits for this", "[30, 60, 40]", "tea 2", "too late"):
        assert line in printed, line


def test_the_program_of_the_readme_prints_the_sums(run_program):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "Pool" in block)
    outcome, _ = run_program(block, side="stock")

    assert b"1024 25\n" == outcome.expect_success().out
