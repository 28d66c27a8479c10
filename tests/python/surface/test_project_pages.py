"""The pages for contributors are true: files that they name exist, and their tables have every crate and folder."""

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "python" / "README.md",
    ROOT / "docs" / "explain" / "promises-in-code.md",
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
SOURCES = ("bench", "bindings", "crates", "demo", "docs", "fuzz", "packaging", "python", "scripts", "tests")

#: Names of files and folders that pages use as examples, or that a build makes.
NOT_THERE = {"build/", "crates/logspool/src/sinks/NAME.rs"}


def _text(page):
    """Return the text of a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _alternatives(name):
    """Return the names that a pattern such as `a/{b,c}.rs` matches."""
    braces = re.match(r"(.*)\{([^}]*)\}(.*)", name)
    return [braces[1] + each + braces[3] for each in braces[2].split(",")] if braces else [name]


def _missing(text, places):
    """Return the files and folders that a text names and that do not exist."""
    shown = re.findall(r"`([\w./{},*-]+(?:\.(?:rs|py|pyi|hpp|h|sh|toml)|/))`", text)
    for name in sorted({name for each in shown for name in _alternatives(each)} - NOT_THERE):
        if not re.search("/" + re.escape(name).replace(r"\*", "[^/\n]*") + "$", places, flags=re.MULTILINE):
            yield name


@pytest.fixture(scope="module")
def places():
    """Give the paths of the files and folders of the sources, one per line."""
    found = []
    for top in SOURCES:
        for folder, folders, files in os.walk(ROOT / top):
            folders[:] = [name for name in folders if name not in ("target", "__pycache__", "node_modules")]
            within = f"/{Path(folder).relative_to(ROOT)}/"
            found += [within, *(within + name for name in files)]
    return "\n".join([*found, *(f"/{path.name}" for path in ROOT.iterdir())])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page, places):
    assert [] == list(_missing(_text(page), places))


def test_a_reference_to_a_moved_file_is_found(places):
    text = "`segment/layout.rs` moved to `segment/nowhere.rs`, beside `crates/{logspool,logspool-gone}/`, `sinks/*.rs`"

    assert ["crates/logspool-gone/", "segment/nowhere.rs"] == list(_missing(text, places))


def _crates():
    """Return each crate with the crates of the project on which it depends, without those for tests only."""
    found = {}
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        section = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", manifest.read_text(), flags=re.DOTALL | re.MULTILINE)
        lines = section[1] if section else ""
        found[manifest.parent.name] = set(re.findall(r"^(logspool[\w-]*)", lines, flags=re.MULTILINE))
    return found


def test_the_table_of_crates_lists_every_crate_after_its_dependencies():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(logspool[\w-]*)` \| [^|]+ \| ([^|]+) \|$", text, flags=re.MULTILINE)
    names = [name for name, _ in rows]
    crates = _crates()

    assert sorted(names) == sorted(crates)
    for place, (name, may_use) in enumerate(rows):
        assert crates[name] <= set(names[:place]), f"{name} uses a crate below it"
        if "all above" not in may_use and "above it" not in may_use:
            said = {word for word in re.findall(r"[\w-]+", may_use) if f"logspool-{word}" in crates or word in crates}
            used = {each.removeprefix("logspool-") for each in crates[name]}
            assert used == {word.removeprefix("logspool-") for word in said}, name


def test_the_map_of_the_project_has_every_crate_and_every_folder_of_tests():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = {each for name in re.findall(r"^crates/\S+", text, flags=re.MULTILINE) for each in _alternatives(name)}
    tests = set(re.findall(r"^(tests/\w+)", text, flags=re.MULTILINE))

    assert sorted(shown) == sorted(f"crates/{name}" for name in _crates())
    assert sorted(tests) == sorted(f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir())


def test_the_map_of_the_python_tests_has_every_folder():
    text = (ROOT / "tests" / "python" / "README.md").read_text(encoding="utf-8")
    folders = [path.name for path in (ROOT / "tests" / "python").iterdir() if path.is_dir()]

    rows = re.findall(r"^\| (`\w+/`(?:, `\w+/`)*) \|", text, flags=re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)/`", " ".join(rows))) == sorted(name for name in folders if name[0] not in "._")


def test_the_index_of_the_pages_has_every_page():
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", (docs / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md") if page.parent.name != "decisions"}

    assert [] == sorted(pages - linked - {"README.md"})


def test_the_list_of_decisions_has_every_page():
    folder = ROOT / "docs" / "decisions"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))

    assert sorted(linked) == sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
