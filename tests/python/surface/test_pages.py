"""The pages say what is: links lead somewhere, names and defaults are the real ones, the tutorial's program runs."""

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
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    for name, parameter in inspect.signature(logspool.install).parameters.items():
        shown = rows[name].strip("`").replace('"', "'").replace(",", "")
        assert repr(parameter.default) == shown, name


def test_the_reference_has_every_name():
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")

    assert [] == [name for name in logspool.__all__ if not re.search(rf"`{name}[`(]", text)]


def test_the_program_of_the_tutorial_prints_what_the_page_shows(run_program):
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    shown = re.search(r"```\n(logspool: installed.*?)```", text, flags=re.DOTALL).group(1)
    outcome, folder = run_program(program)
    printed = outcome.expect_success().out.decode().replace(str(folder), "/home/you")

    assert shown == printed
    assert 100_000 == len((folder / "shop.log").read_text().splitlines())


def test_the_reference_of_the_pool_has_every_option_with_its_default_and_every_method():
    text = (DOCS / "reference" / "pool.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    for name, parameter in inspect.signature(logspool.pool.Pool).parameters.items():
        if name not in ("initializer", "initargs"):
            assert repr(parameter.default) == rows[name].strip("`").replace('"', "'"), name
    for cls in (logspool.pool.Pool, logspool.pool.Semaphore, logspool.pool.Results, logspool.pool.Schedule):
        methods = {name for name in dir(cls) if not name.startswith("_")}
        assert [] == [name for name in methods if not re.search(rf"`{name}[`(]", text)]


def test_the_program_of_the_reference_of_the_pool_runs(run_program):
    text = (DOCS / "reference" / "pool.md").read_text(encoding="utf-8")
    outcome, _ = run_program(re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1))

    # Two threads print, each its text and then the end of its line: the ends may come together.
    out = outcome.expect_success().out
    assert b"nobody waits for this" in out and b"1024 25" in out, out


def _run_page(run_program, name):
    text = (DOCS / "how-to" / name).read_text(encoding="utf-8")
    outcome, folder = run_program(re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1), side="stock")
    return text, outcome.expect_success(), folder


def test_the_program_of_the_page_on_json_writes_what_the_page_shows(run_program):
    text, _, folder = _run_page(run_program, "write-json.md")
    shown = re.search(r"```json\n(.*?)```", text, flags=re.DOTALL).group(1)
    time = re.compile(r'"t":"[^"]+"')

    assert time.sub("", shown) == time.sub("", (folder / "shop.json").read_text())


def test_the_program_of_the_page_on_wrapping_sends_its_record(run_program):
    _, outcome, _ = _run_page(run_program, "wrap-a-handler.md")

    assert b"sent from another thread\n" in outcome.err
    assert b"ThreadHandlerStats" in outcome.out
