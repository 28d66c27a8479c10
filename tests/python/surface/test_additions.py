"""The commits that CONTRIBUTING.md shows for additions apply to the sources, and need one file and one line.

`LOGSPOOL_ADDITIONS=compile` also runs the contract tests of the service's tables and of the sinks with all additions in
a copy of the crates, which takes minutes.
"""

import os
import re
import shutil
import subprocess
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


def _apply(commit, folder, *options):
    command = ["git", "apply", *options, "-"]
    # Without the variable, git takes the paths as those of a repository around the folder.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
    done = subprocess.run(command, input=commit, cwd=folder, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_shows_a_commit_for_each_table():
    assert ["a protocol of the service", "a sink", "a store of the service"] == sorted(COMMITS)


@pytest.mark.parametrize("title", COMMITS)
def test_an_addition_applies_and_needs_one_file_and_one_line(title):
    _apply(COMMITS[title], ROOT, "--check")
    changes = [line.split("\t") for line in _apply(COMMITS[title], ROOT, "--numstat").splitlines()]
    made = [path for _, _, path in changes if not (ROOT / path).exists()]
    changed = [(added, removed) for added, removed, path in changes if path not in made]

    assert 1 == len([path for path in made if "/tests/" not in path]), made
    assert [("1", "0")] == changed


@pytest.mark.skipif(os.environ.get("LOGSPOOL_ADDITIONS") != "compile", reason="takes minutes")
def test_the_contract_tests_pass_with_all_additions(tmp_path):
    for name in (
        "crates",
        "Cargo.toml",
        "Cargo.lock",
        "docs",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "bindings",
    ):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    for commit in COMMITS.values():
        _apply(commit, tmp_path)
    contract = tmp_path / "crates/logspool-server/tests/store_contract.rs"
    text = contract.read_text()
    address = '        "scratch" => format!("scratch:logspool-{}", std::process::id()),\n'
    contract.write_text(text.replace("        other => panic!(", address + "        other => panic!(", 1))
    for crate, tests in (("logspool-server", ["protocol_contract", "store_contract"]), ("logspool", ["sink_contract"])):
        command = ["cargo", "test", "-p", crate, "--test", "all", "--", *tests]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

        assert done.returncode == 0, done.stdout + done.stderr
        assert not re.search(r"running 0 tests", done.stdout), done.stdout
