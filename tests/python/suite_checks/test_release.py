"""`make release` changes every version, keeps nothing half done, publishes nothing, and says why it refuses."""

import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import release

ROOT = release.ROOT
OLD, NEW = release.current(), "7.0.0"
UNRELEASED = "# Changelog\n\n## Unreleased\n\n- Lines are shorter.\n\n## 0.0.1 (2026-01-02)\n\n- The first one.\n"

#: Stands for `make` and `cargo`: it makes an artefact, and fails on the word in FAILS.
TOOL = """#!/bin/sh
echo "$0 $*" >> "$LOG"
case "$*" in *"$FAILS"*) exit 3 ;; esac
mkdir -p dist
echo wheel > dist/logspool-7.0.0-py3-none-any.whl
echo log > dist/notes.txt
"""


class Project:
    """A repository with the files that a release reads and changes."""

    def __init__(self, folder):
        self.folder = folder / "project"
        for name in (*release.PLACES, "scripts/release.py", "scripts/terminal.py"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.folder / name)
        (self.folder / ".gitignore").write_text("/dist\n__pycache__/\n")
        self.tools = folder / "bin"
        self.tools.mkdir()
        for name in ("make", "cargo"):
            (self.tools / name).write_text(TOOL)
            (self.tools / name).chmod(0o755)
        self.log = folder / "log"
        self.write("CHANGELOG.md", UNRELEASED)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def read(self, name):
        return (self.folder / name).read_text()

    def git(self, *words):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", *who, *words]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "work")

    def run(self, *arguments, fails="-nothing-"):
        variables = {
            **os.environ,
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "FAILS": fails,
            **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        command = [sys.executable, str(self.folder / "scripts" / "release.py"), *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)

    def state(self):
        """Return all that a refused release must leave as it is."""
        return self.git("status", "--porcelain"), self.git("log", "--format=%H"), self.git("tag")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_release_writes_the_version_dates_the_changelog_builds_and_tags(project):
    done = project.run(NEW)

    assert done.returncode == 0, done.stderr
    today = datetime.datetime.now(datetime.timezone.utc).date()
    assert f"## {NEW} ({today})\n\n- Lines are shorter.\n" in project.read("CHANGELOG.md")
    for name in release.PLACES:
        assert f'"{NEW}"' in project.read(name), name
        assert not re.search(rf'logspool.*"{re.escape(OLD)}"', project.read(name)), name
    assert project.git("tag") == f"v{NEW}\n"
    assert project.git("status", "--porcelain") == ""
    assert project.git("log", "-1", "--format=%s") == f"release: {NEW}\n"
    digest = hashlib.sha256(b"wheel\n").hexdigest()
    assert project.read("dist/SHA256SUMS") == f"{digest}  logspool-{NEW}-py3-none-any.whl\n"
    assert [line.partition("/bin/")[2] for line in project.log.read_text().splitlines()] == [
        " ".join(step) for step in release.STEPS
    ]
    assert f"git push origin HEAD v{NEW}" in done.stdout


def test_the_first_release_has_the_version_that_the_sources_have(project):
    project.write("CHANGELOG.md", f"# Changelog\n\n## {OLD} (not released yet)\n\n- All.\n")
    project.commit()

    assert project.run(OLD, "--dry-run").returncode == 0


def test_a_dry_run_shows_the_change_and_changes_nothing(project):
    before = project.state()
    done = project.run(NEW, "--dry-run")

    assert done.returncode == 0, done.stderr
    assert f"+## {NEW} (" in done.stdout
    for name in release.PLACES:
        assert name.rpartition("/")[2] in done.stdout
    assert "make wheels" in done.stdout
    assert before == project.state()
    assert not project.log.exists()


def test_a_page_that_the_release_makes_wrong_is_named(project):
    assert "PyPI" not in project.run(NEW, "--dry-run").stderr

    project.write("README.md", "logspool is not on PyPI yet.\n")
    project.commit()

    assert "README.md says `not on PyPI yet`: change that" in project.run(NEW, "--dry-run").stderr


@pytest.mark.parametrize("step", ["test", "publish", "site"])
def test_a_build_that_fails_leaves_no_tag_and_says_how_to_go_back(project, step):
    before = project.git("rev-parse", "HEAD").strip()
    done = project.run(NEW, fails=step)

    assert done.returncode == 3
    assert project.git("tag") == ""
    [command] = re.findall(r"go back before the release: git (.+)", done.stderr)
    project.git(*command.split())
    assert project.git("rev-parse", "HEAD").strip() == before


def _refused(project, version, words):
    before = project.state()
    done = project.run(version)

    assert done.returncode == 1
    assert words in done.stderr
    assert before == project.state()


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "1.2.3rc1", "01.2.3"])
def test_a_version_that_is_none_is_refused(project, version):
    _refused(project, version, "is no version: write three numbers, as in VERSION=0.2.0")


def test_a_changed_file_is_refused(project):
    project.write("Cargo.toml", project.read("Cargo.toml") + "\n")

    _refused(project, NEW, "files are changed or new: Cargo.toml: commit them, or put them aside with `git stash -u`")


def test_a_new_file_is_refused(project):
    project.write("forgotten.py", "")

    _refused(project, NEW, "new: forgotten.py: commit them")


def test_a_released_version_is_refused(project):
    project.git("tag", f"v{NEW}")

    for version in (NEW, "6.9.9"):
        _refused(
            project,
            version,
            f"{version} is not higher than {NEW}, which is released: choose a higher one, such as 7.1.0",
        )


def test_a_version_of_the_changelog_is_released(project):
    project.write("CHANGELOG.md", UNRELEASED.replace("0.0.1", "7.0.10"))
    project.commit()

    _refused(project, "7.0.9", "7.0.9 is not higher than 7.0.10, which is released")


def test_a_version_below_that_of_the_sources_is_refused(project):
    _refused(project, "0.0.9", f"0.0.9 is not higher than {OLD}, which Cargo.toml has")


@pytest.mark.parametrize(
    "text",
    [
        UNRELEASED.replace("## Unreleased\n\n- Lines are shorter.\n\n", ""),
        UNRELEASED.replace("- Lines are shorter.\n", ""),
        "# Changelog\n",
    ],
    ids=["no section", "an empty section", "an empty file"],
)
def test_a_release_without_an_entry_in_the_changelog_is_refused(project, text):
    project.write("CHANGELOG.md", text)
    project.commit()

    _refused(project, NEW, f"CHANGELOG.md says nothing about {NEW}: write the changes for users below `## Unreleased`")


def test_the_real_files_have_one_version_and_a_changelog_that_a_release_understands():
    for name, before in release.PLACES.items():
        found = re.findall(rf'{before}"([\d.]+)"', (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        own = [version for version in found if version != "0.0.0"]  # the fuzz targets
        assert set(own) == {OLD}, name
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.entries(text) or re.search(rf"^## {re.escape(OLD)} \(\d{{4}}-", text, flags=re.MULTILINE)


def test_no_other_file_that_is_published_has_the_version():
    paths = [path for folder in ("bindings", "packaging") for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [ROOT / "pyproject.toml", *(ROOT / "crates").glob("*/Cargo.toml")]
    found = {str(path.relative_to(ROOT)) for path in paths if f'"{OLD}"' in path.read_text(encoding="utf-8")}

    assert found <= set(release.PLACES)


def test_a_crate_of_the_workspace_has_a_version_for_those_that_need_it():
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")

    assert re.findall(r'^logspool[\w-]* = \{ path = (?!.*version = ")', text, flags=re.MULTILINE) == []
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        own = re.findall(
            r'^logspool[\w-]* = \{ path = "(.+?)"', manifest.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        assert set(own) <= {"."}, manifest
