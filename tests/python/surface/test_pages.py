"""The pages are true: links lead somewhere, names and defaults are real (`test_blocks.py` runs the programs)."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import logspool
import logspool.pool

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_to_a_file(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (page.parent / link).exists()]


def test_the_rust_version_named_for_users_is_the_one_that_cargo_requires():
    required = re.search(r'^rust-version = "([\d.]+)"$', (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE).group(1)
    for page in ("README.md", "CONTRIBUTING.md", "Makefile"):
        assert [required] == re.findall(r"Rust (\d[\d.]*\d) or later", (ROOT / page).read_text(encoding="utf-8")), page


def test_the_reference_has_every_option_with_its_default():
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| `([^|`]+)` \|", text, flags=re.MULTILINE))
    for name, parameter in inspect.signature(logspool.install).parameters.items():
        assert parameter.default == ast.literal_eval(rows[name]), name


def test_the_reference_has_every_name():
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")

    assert [] == [name for name in logspool.__all__ if not re.search(rf"`{name}[`(]", text)]


def test_the_reference_of_the_pool_has_every_option_with_its_default_and_every_method():
    text = (DOCS / "reference" / "pool.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    for name, parameter in inspect.signature(logspool.pool.Pool).parameters.items():
        if name not in ("initializer", "initargs"):
            assert repr(parameter.default) == rows[name].strip("`").replace('"', "'"), name
    for cls in (logspool.pool.Pool, logspool.pool.Semaphore, logspool.pool.Results, logspool.pool.Schedule):
        # Internal names of `ThreadPoolExecutor` since 3.14.
        methods = {name for name in dir(cls) if not name.startswith("_")} - {"BROKEN", "prepare_context"}
        assert [] == [name for name in methods if not re.search(rf"`{name}[`(]", text)]
