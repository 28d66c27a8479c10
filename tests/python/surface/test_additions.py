"""The commits that CONTRIBUTING.md shows for additions apply to the sources, and need one file and one line.

A function of the C interface needs changes of one file; the generator writes its other places.

`LOGSPOOL_ADDITIONS=compile` also runs the contract tests of the service's tables and of the sinks with all additions in
a copy of the crates, which takes minutes.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
COMMITS = {
    title: block
    for title, text in re.findall(
        r"^## Add ([^\n]+)\n(.*?)(?=^## |\Z)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL
    )
    for block in re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
}

FUNCTION = "a function of the C interface"
#: Writes the places that are made from the table of functions, in a copy of the sources.
GENERATE = "import c_interface as c; [(c.ROOT / name).write_text(make()) for name, make in c.PAGES.items()]"


def _apply(commit, folder, *options):
    command = ["git", "apply", *options, "-"]
    # Without the variable, git takes the paths as those of a repository around the folder.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
    done = subprocess.run(command, input=commit, cwd=folder, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_shows_a_commit_for_each_table():
    assert [FUNCTION, "a protocol of the service", "a sink", "a store of the service"] == sorted(COMMITS)


@pytest.mark.parametrize("title", [title for title in COMMITS if title != FUNCTION])
def test_an_addition_applies_and_needs_one_file_and_one_line(title):
    _apply(COMMITS[title], ROOT, "--check")
    changes = [line.split("\t") for line in _apply(COMMITS[title], ROOT, "--numstat").splitlines()]
    made = [path for _, _, path in changes if not (ROOT / path).exists()]
    changed = [(added, removed) for added, removed, path in changes if path not in made]

    assert 1 == len([path for path in made if "/tests/" not in path]), made
    assert [("1", "0")] == changed


def _copied(names, folder):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)


def test_a_function_of_the_c_interface_changes_one_file_and_is_in_all_others(tmp_path):
    made = {
        "crates/logspool-c/include/logspool.h": [
            "#define LOGSPOOL_ABI_MINOR 3\n",
            "/* Returns how many sinks are open, or an error. */\nlong logspool_sink_count(void);\n",
            "    /* Since 1.3 */\n    long (*sink_count)(void);\n};\n",
        ],
        "crates/logspool-c/src/lib.rs": ["    logspool_sink_count = sink_count() -> c_long;\n}\n"],
        "bindings/nim/src/logspool/capi.nim": ["proc sinkCount*(): clong\n"],
    }
    table = "crates/logspool-abi/src/table.rs"
    _copied([table, *made, "scripts/c_interface.py"], tmp_path)
    _apply(COMMITS[FUNCTION], tmp_path)
    subprocess.run([sys.executable, "-c", GENERATE], cwd=tmp_path / "scripts", check=True)

    changed = [line.split("\t")[2] for line in _apply(COMMITS[FUNCTION], ROOT, "--numstat").splitlines()]
    assert [table] == changed
    for name, texts in made.items():
        now, before = (tmp_path / name).read_text(), (ROOT / name).read_text()
        assert not [text for text in texts if text not in now], name
        assert not [text for text in texts if text in before], name


@pytest.mark.skipif(os.environ.get("LOGSPOOL_ADDITIONS") != "compile", reason="takes minutes")
def test_the_contract_tests_pass_with_all_additions(tmp_path):
    licences = ["LICENSE-MIT", "LICENSE-APACHE"]
    _copied(["crates", "Cargo.toml", "Cargo.lock", "docs", *licences, "README.md", "bindings", "scripts"], tmp_path)
    for commit in COMMITS.values():
        _apply(commit, tmp_path)
    subprocess.run([sys.executable, "-c", GENERATE], cwd=tmp_path / "scripts", check=True)
    contract = tmp_path / "crates/logspool-server/tests/store_contract.rs"
    text = contract.read_text()
    address = '        "scratch" => format!("scratch:logspool-{}", std::process::id()),\n'
    contract.write_text(text.replace("        other => panic!(", address + "        other => panic!(", 1))
    for crate, tests in (("logspool-server", ["protocol_contract", "store_contract"]), ("logspool", ["sink_contract"])):
        command = ["cargo", "test", "-p", crate, "--test", "all", "--", *tests]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

        assert done.returncode == 0, done.stdout + done.stderr
        assert not re.search(r"running 0 tests", done.stdout), done.stdout
    done = subprocess.run(["cargo", "check", "-p", "logspool-c"], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
