"""The pages for contributors are true: files that they name exist, and their tables have every crate and folder."""

import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import check_layers
import native_tools
import python_sources

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


def test_the_table_of_rooms_says_what_each_room_of_the_package_uses():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## Rooms of the Python package")[2].partition("\n## ")[0]
    said = dict(re.findall(r"^\| `(\w+)/` \| .+ \| ([^|]+) \|$", section, flags=re.MULTILINE))
    package = ROOT / "python" / "logspool"
    used = {path.parent.name: set() for path in package.glob("*/__init__.py")}
    for room, taken in check_layers.between_rooms(python_sources.imports_within(package), python_sources.room).items():
        if room in used:
            used[room] = set(taken) & set(used)

    assert sorted(said) == sorted(used)
    for place, (room, may_use) in enumerate(said.items()):
        assert used[room] == {word for word in re.findall(r"\w+", may_use) if word in used}
        assert used[room] <= set(list(said)[:place]), f"{room} uses a room below it"


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


DECISIONS = ROOT / "docs" / "decisions"

#: Names in decisions that belong to CPython, to Linux, or to an expression of pytest.
NAMES_OF_OTHERS = {"builtin_function_or_method", "handler_stream", "rchar"}


def test_the_packages_that_make_test_installs_are_listed():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### What `make test` installs")[2]
    installed = [package for _, package, _ in native_tools.NEEDED]
    for script in (ROOT / "scripts").glob("*_tools.py"):
        calls = r'(?:debian\.install\(|program_of_debian\(.+, )"([\w-]+)"'
        installed += re.findall(calls, script.read_text(encoding="utf-8"))

    assert {"postgresql", "chromium", "qemu-user-static"} <= set(installed)
    assert [] == sorted(name for name in set(installed) if f"`{name}`" not in text.partition("\n| command |")[0])


def _states():
    """Return the page and the state of each row of the list of decisions."""
    text = (DECISIONS / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^\| \[.*\]\(([\w-]+\.md)\) \| (.*) \|$", text, flags=re.MULTILINE)


def test_the_list_of_decisions_has_every_page_and_its_state():
    pages = sorted(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")

    assert pages == sorted(page for page, _ in _states())
    for page, state in _states():
        replaced = re.fullmatch(r"replaced by \[.*\]\(([\w-]+\.md)\)", state)
        assert state == "in force" or (replaced and replaced[1] in pages and replaced[1] != page), f"{page}: {state}"


def _unknown_names(page, sources):
    """Return the names in the choice of a decision that the sources do not have."""
    choice = _text(page).partition("## Rejected")[0]
    names = [name for shown in re.findall(r"`([^`]+)`", choice) for name in re.findall(r"[A-Za-z_]\w{3,}", shown)]
    return sorted({name for name in names if name not in sources})


def test_names_in_a_decision_in_force_are_in_the_sources(places):
    endings = (".rs", ".py", ".pyi", ".h", ".hpp", ".toml", ".nim")
    known = NAMES_OF_OTHERS | set(re.findall(r"\w+", places))
    for place in places.splitlines():
        if place.endswith(endings):
            known.update(re.findall(r"\w+", (ROOT / place[1:]).read_text(encoding="utf-8", errors="replace")))
    unknown = {page: _unknown_names(DECISIONS / page, known) for page, state in _states() if state == "in force"}

    assert {} == {page: names for page, names in unknown.items() if names}
    assert ["_cache"] == _unknown_names(DECISIONS / "cheap-plans.md", known - {"_cache"})


def _way(page):
    """Return the rows of the way of a record: thread, file and how its function is called."""
    section = page.partition("## From `log.info` to the write")[2].partition("\n## ")[0]
    return re.findall(r"^\| (\w+) \| `([\w./-]+)` \| `([\w.:]+)` \|", section, flags=re.MULTILINE)


def _broken_steps(way):
    """Return the steps whose function is not in its file, or that no earlier file of the same thread calls."""
    before = {}
    for thread, name, called_as in way:
        text = (ROOT / "crates" / name).read_text(encoding="utf-8")
        function = re.split(r"[.:]+", called_as)[-1]
        if not re.search(rf"\bfn {function}\b", text):
            yield f"{name} has no function {function}"
        if thread in before and not re.search(rf"\b{re.escape(called_as)}\(", before[thread]):
            yield f"nothing before {name} calls {called_as}"
        before[thread] = before.get(thread, "") + text


def test_the_way_of_a_record_can_be_walked_in_twelve_files():
    way = _way((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))

    assert ["caller", "collector", "writer"] == list(dict.fromkeys(thread for thread, _, _ in way))
    assert 10 <= len(way) <= 12
    assert [] == list(_broken_steps(way))


def test_a_step_that_nothing_calls_and_a_function_that_is_gone_are_found():
    first = ("caller", "logspool-python/src/calls/capture.rs", "capture")
    file = "logspool/src/sinks/file.rs"

    assert [f"nothing before {file} calls sink.write"] == list(_broken_steps([first, ("caller", file, "sink.write")]))
    assert [f"{file} has no function shout"] == list(_broken_steps([("writer", file, "sink.shout")]))
