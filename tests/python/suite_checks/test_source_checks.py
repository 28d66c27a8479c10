"""The checks of `make lint` that read the sources find the faults for which they were written."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import check_layers
import check_locks
import check_names
import check_orderings
import check_platform
import check_unsafe
import check_words
import python_sources
import rust_sources


@pytest.fixture
def workspace(tmp_path):
    """Return a function that writes a workspace from `{path: text}` and reads its crates."""

    def write(files: dict[str, str]) -> dict[str, rust_sources.Crate]:
        for path, text in files.items():
            file = tmp_path / "crates" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return rust_sources.crates(tmp_path)

    return write


@pytest.fixture
def package(tmp_path):
    """Return a function that writes a Python package from `{path: text}` and reads the imports of its files."""

    def write(files: dict[str, str]) -> dict[str, dict[str, set[str]]]:
        for path, text in files.items():
            file = tmp_path / "house" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return python_sources.imports_within(tmp_path / "house")

    return write


def _cycles(found, crate):
    imports = check_layers.imports_within(found[crate], check_layers.Reader(found))
    return check_layers.cycles({file: set(taken) for file, taken in imports.items()})


LOWER = {"lower/Cargo.toml": "[package]\nname = 'lower'\n", "lower/src/lib.rs": "pub struct Ground;\n"}


def test_a_cycle_of_files_is_found_through_re_exports_and_inline_paths(workspace):
    found = workspace(
        {
            "house/Cargo.toml": "[package]\n",
            "house/src/lib.rs": "mod floor;\nmod wall;\nmod door;\n",
            "house/src/floor/mod.rs": "mod plank;\npub use plank::Plank;\n",
            "house/src/floor/plank.rs": "use crate::wall::Wall;\npub struct Plank(Wall);\n",
            "house/src/wall.rs": "use crate::floor::Plank;\npub struct Wall;\n",
            "house/src/door.rs": "pub fn open() { crate::wall::lean() }\n",
        }
    )

    assert [["floor/plank.rs", "wall.rs"]] == _cycles(found, "house")


def test_a_cycle_of_folders_is_found_even_without_a_cycle_of_files(workspace):
    found = workspace(
        {
            "house/Cargo.toml": "[package]\n",
            "house/src/lib.rs": "pub mod floor;\npub mod wall;\nuse crate::floor::Plank;\n",
            "house/src/floor/mod.rs": "pub mod plank;\npub mod mat;\n",
            "house/src/floor/plank.rs": "pub struct Plank;\n",
            "house/src/floor/mat.rs": "use crate::wall::Wall;\npub struct Mat(Wall);\n",
            "house/src/wall.rs": "use crate::floor::plank::Plank;\npub struct Wall(Plank);\n",
        }
    )
    imports = check_layers.imports_within(found["house"], check_layers.Reader(found))
    rooms = check_layers.between_rooms(imports)

    assert [] == _cycles(found, "house")
    assert {"floor": {"wall": {"Wall"}}, "wall": {"floor": {"Plank"}}} == rooms
    assert [["floor", "wall"]] == check_layers.cycles({room: set(taken) for room, taken in rooms.items()})


def test_parents_that_only_re_export_and_imports_of_tests_create_no_cycle(workspace):
    found = workspace(
        {
            "house/Cargo.toml": "[package]\n",
            "house/src/lib.rs": "mod floor;\nmod wall;\n",
            "house/src/floor/mod.rs": "mod plank;\nmod nail;\npub use plank::Plank;\npub use nail::Nail;\n",
            "house/src/floor/plank.rs": "use super::Nail;\npub struct Plank(Nail);\n",
            "house/src/floor/nail.rs": "pub struct Nail;\n",
            "house/src/wall.rs": "// use crate::wall::x;\n#[cfg(test)]\nmod tests {\n use crate::floor::Plank;\n}\n",
        }
    )

    assert _cycles(found, "house") == []


def test_a_parent_that_defines_names_used_by_its_children_creates_a_cycle(workspace):
    found = workspace(
        {
            "house/Cargo.toml": "[package]\n",
            "house/src/lib.rs": "mod floor;\n",
            "house/src/floor.rs": "mod plank;\npub struct Nail;\npub fn lay() { plank::saw() }\n",
            "house/src/floor/plank.rs": "use super::Nail;\npub fn saw() -> Nail { Nail }\n",
        }
    )

    assert [["floor.rs", "floor/plank.rs"]] == _cycles(found, "house")


def test_imports_and_dependencies_that_contradict_the_table_are_refused(workspace):
    files = {
        **LOWER,
        "upper/Cargo.toml": "[package]\n\n[dependencies]\nlower = { path = '../lower' }\n",
        "upper/src/lib.rs": "use lower::Ground;\npub struct Roof(Ground);\n",
    }
    found = workspace(files)
    allowed = list(check_layers.wrong_layers(found, {"lower": set(), "upper": {"lower"}}))
    refused = list(check_layers.wrong_layers(found, {"lower": set(), "upper": set()}))

    assert allowed == []
    assert ["crates/upper/Cargo.toml depends on lower", "upper/src/lib.rs uses lower::Ground"] == refused


@pytest.mark.parametrize(
    "wall",
    [
        "from house import floor",
        "from house.floor import Plank",
        "import house.floor",
        "from . import floor",
        "def lean():\n    from house.floor import Plank",
        "if TYPE_CHECKING:\n    from house.floor import Plank",
        "floor = sys.modules.get('house.floor')",
        "floor = _imports.part('floor')",
    ],
)
def test_an_import_of_the_package_counts_wherever_it_is(package, wall):
    imports = package({"__init__.py": "", "floor.py": "class Plank: ...", "wall.py": wall})

    assert ["floor.py"] == list(imports["wall.py"])


def test_a_cycle_of_files_of_the_package_is_found_through_an_import_in_a_function(package):
    imports = package(
        {
            "__init__.py": "from house.room import wall",
            "room/__init__.py": "",
            "room/wall.py": "from ..floor import Plank",
            "floor.py": "def lay():\n    from house.room.wall import Wall",
            "door.py": "from house import floor, room",
        }
    )

    assert [["floor.py", "room/wall.py"]] == check_layers.cycles({file: set(taken) for file, taken in imports.items()})


def test_an_import_of_the_package_against_its_layers_is_refused(package):
    imports = package(
        {
            "__init__.py": "",
            "roof/__init__.py": "",
            "roof/tile.py": "from house.floor import Plank",
            "floor.py": "def lay():\n    from house.roof import tile",
            "wall.py": "from house.floor import Plank",
        }
    )

    assert ["floor.py imports tile of roof/tile.py, which is in no lower layer"] == list(
        check_layers.upward(imports, ({"floor"}, {"wall"}, {"roof"}))
    )
    assert "wall.py imports Plank of floor.py, which is in no lower layer" in check_layers.upward(
        imports, ({"floor", "wall"}, {"roof"})
    )


def test_a_room_of_the_package_in_no_layer_and_a_layer_without_its_room_are_refused(package):
    imports = package({"__init__.py": "", "floor.py": "", "wall.py": "from house.floor import Plank"})
    refused = list(check_layers.upward(imports, ({"floor"}, {"roof"})))

    assert len(refused) == 2
    assert "wall is in no layer" in refused[0]
    assert "roof is in a layer" in refused[1]


def test_a_crate_without_a_row_in_the_table_is_refused(workspace):
    refused = list(check_layers.wrong_layers(workspace(LOWER), {}))

    assert len(refused) == 1
    assert "crates/lower has no row" in refused[0]


def test_a_duplicate_type_name_is_found(workspace):
    found = workspace(
        {
            "house/Cargo.toml": "[package]\n",
            "house/src/lib.rs": "mod a;\nmod b;\nstruct Once;\n",
            "house/src/a.rs": "pub(crate) struct State { x: u8 }\n",
            "house/src/b.rs": 'enum State { On }\nconst TEXT: &str = "struct Once";\n',
        }
    )

    assert {"State": ["src/a.rs", "src/b.rs"]} == check_names.repeated(found["house"])


@pytest.mark.parametrize(
    ("comment", "is_empty"),
    [
        ("attached.", True),
        ("passed on; as above.", True),
        ("as the caller says, attached.", True),
        ("live objects.", True),
        ("the caller's promise.", True),
        ("the contract of the function.", True),
        ("`count` pieces were written by `add`.", False),
        ("the plan keeps the type alive.", False),
        ("attached; the frame is\n    // borrowed from the running thread.", False),
    ],
)
def test_a_safety_comment_without_a_fact_is_found(comment, is_empty):
    text = f"fn f() {{\n    // SAFETY: {comment}\n    unsafe {{ g() }}\n}}\n"

    assert check_unsafe.comments_without_fact(text) == ([2] if is_empty else [])


def test_unsafe_functions_and_their_sections_are_counted():
    text = """
/// Reads.
///
/// # Safety
///
/// `place` is valid.
pub unsafe fn documented(place: *const u8) {}

// unsafe fn in a comment
unsafe extern "C" fn bare() {}
"""

    assert check_unsafe.functions_without_section(text) == (2, 1)


def test_a_strong_ordering_without_a_model_is_found():
    text = "\n".join(
        [
            "use std::sync::atomic::{AtomicU64, Ordering};",  # an import orders nothing
            "fn publish_order() -> Ordering {",
            '    guarded("publish", Ordering::Release)',  # line 3: guarded
            "}",
            "fn barrier() {",
            '    if !is_weakened("fence") {',
            "        fence(Ordering::SeqCst);",  # line 7: guarded
            "    }",
            "    // Ordering: pairs with the reader in another process, which loom cannot see.",
            "    WORD.store(1, Ordering::Release);",  # line 10: explained
            "    // Release pairs with the Acquire in `read`.",
            "    WORD.store(2, Ordering::Release);",  # line 12: neither
            '    let _ = (Effect::Release, "Ordering::AcqRel", WORD.load(Ordering::Relaxed));',
            "}",
            "#[cfg(test)]",
            "mod tests {",
            "    fn f() { WORD.load(Ordering::Acquire); }",
            "}",
        ]
    )

    found = check_orderings.strong_orderings(text)

    assert ([3, 7], [10], [12]) == (found.guarded, found.explained, found.unguarded)


@pytest.mark.parametrize(
    "imports",
    [
        "use std::sync::atomic::Ordering::{Acquire, Relaxed};",
        "use std::sync::atomic::Ordering::*;",
        "use std::sync::atomic::{\n    AtomicU64,\n    Ordering::{Acquire, Release},\n};",
    ],
)
def test_an_imported_ordering_is_found_without_its_path(imports):
    text = f"{imports}\nfn f() {{ WORD.load(Acquire); }}\n"

    found = check_orderings.strong_orderings(text)

    assert [text.count("\n")] == found.unguarded
    assert not check_orderings.strong_orderings("fn f() { state(Acquire); }").unguarded


def test_a_plain_lock_is_found_however_it_is_named():
    text = (
        "import threading\nfrom _thread import allocate_lock\nlock = threading.RLock()\nthread = threading.Thread()\n"
    )

    assert [2, 3] == check_locks.plain_locks(text)


def test_words_are_counted_in_comments_docstrings_and_pages_only():
    rust = 'let told = "told";  // told\n/// It tells.\n'
    python = '"""It stands."""\n# anew\nlies = 1\n'
    page = "Behind.\n```\nbehind\n```\n"

    assert check_words.prose("a.rs", rust).split() == ["It", "tells."]
    assert sorted(check_words.prose("a.py", python).split()) == ["It", "anew", "stands."]
    assert check_words.prose("a.md", page).split() == ["Behind."]


def test_calls_of_a_system_are_found_outside_of_its_folder_and_not_in_tests_and_comments():
    text = """\
// SYS_gettid is only named here.
fn id() -> i64 { unsafe { libc::syscall(libc::SYS_gettid) } }
#[cfg(target_os = "linux")]
fn wait() { advise(libc::MADV_DONTFORK); if cfg!(unix) {} }
#[cfg(test)]
mod tests { fn id() { libc::SYS_futex; } }
"""
    found = [line for line, _ in check_platform.faults(text)]

    assert found == [2, 3, 4]
    assert check_platform.left(text) == 2
