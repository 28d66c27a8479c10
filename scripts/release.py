"""Make a release, and stop before anything is published: `make release VERSION=0.2.0`.

It writes the version into every file that has it, dates the section of CHANGELOG.md, commits, builds and tries all
artefacts, writes their hashes into dist/SHA256SUMS, and makes the tag. Pushing the tag publishes: the workflow
`release.yml` builds the same again.

`--dry-run` changes a copy instead, shows the change and the commands, and builds nothing.
`--build` only builds and writes the hashes, as the workflow does.
"""

import argparse
import datetime
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import terminal

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = "CHANGELOG.md"
DIST = "dist"
HASHES = "SHA256SUMS"

#: The files that have the version, each with the pattern of the text before it.
PLACES = {
    "Cargo.toml": r"^(?:version = |logspool[\w-]* = .*version = )",
    "Cargo.lock": r'name = "logspool[\w-]*"\nversion = ',
    "fuzz/Cargo.lock": r'name = "logspool[\w-]*"\nversion = ',
    "bindings/nim/logspool.nimble": r"^version +=\s+",
    "crates/logspool-server/src/http/openapi.json": r'"version": ',
    "packaging/vcpkg/ports/logspool/vcpkg.json": r'"version": ',
}

#: The commands that build and try the artefacts, in this order.
STEPS = (
    ("make", "lint"),
    ("make", "test"),
    ("make", "advisories"),
    ("make", "wheels", "WHEELS=--pure --all"),
    ("make", "wheels", "WHEELS=--all --target all --service"),
    ("make", "packages"),
    # In the order of their dependencies: each crate is packed, and built from its package.
    ("cargo", "publish", "--workspace", "--dry-run", "--locked"),
    ("make", "site"),
)

_UNRELEASED = re.compile(r"^## (?:Unreleased|[\d.]+ \(not released yet\))$", re.MULTILINE)


def git(folder: Path, *words: str) -> str:
    """Return the output of git; a failure ends the script."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise terminal.fail(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout


def numbers(version: str) -> tuple[int, ...]:
    """Return a version in the form that compares."""
    return tuple(map(int, version.split(".")))


def current() -> str:
    """Return the version that the sources have."""
    return re.findall(r'(?m)^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"))[0]


def refusal(version: str) -> str | None:
    """Return why a release cannot be made, with the repair; None: it can."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        return f"{version!r} is no version: write three numbers, as in VERSION=0.2.0"
    if changed := [line[3:] for line in git(ROOT, "status", "--porcelain").splitlines()]:
        return f"files are changed or new: {', '.join(changed[:3])}: commit them, or put them aside with `git stash -u`"
    text = (ROOT / CHANGELOG).read_text(encoding="utf-8")
    released = [*re.findall(r"(?m)^## ([\d.]+) \(\d{4}-", text), *re.findall(r"(?m)^v([\d.]+)$", git(ROOT, "tag"))]
    newest = max(released, key=numbers, default=None)
    if newest and numbers(version) <= numbers(newest):
        return f"{version} is not higher than {newest}, which is released: choose a higher one, such as {_next(newest)}"
    if numbers(version) < numbers(current()):
        return f"{version} is not higher than {current()}, which Cargo.toml has: choose that or a higher one"
    if not entries(text):
        return (
            f"{CHANGELOG} says nothing about {version}: write the changes for users below `## Unreleased`, at its head"
        )
    return None


def outdated() -> list[str]:
    """Return the pages whose text is wrong once there is a release."""
    pages = [ROOT / "README.md", ROOT / "docs" / "how-to" / "install.md"]
    said = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages if path.exists()}
    return [name for name, text in said.items() if "not on PyPI yet" in text]


def _next(version: str) -> str:
    major, minor, _ = numbers(version)
    return f"{major}.{minor + 1}.0"


def entries(changelog: str) -> list[str]:
    """Return the entries of the first section of a changelog; none if that section is released."""
    section = changelog.partition("\n## ")[2].partition("\n## ")[0]
    if not _UNRELEASED.match(f"## {section.partition(chr(10))[0]}"):
        return []
    return re.findall(r"(?m)^- .+$", section)


def write_version(folder: Path, old: str, new: str) -> None:
    """Replace the version in each file that has it, and date the changelog."""
    for name, before in PLACES.items():
        path = folder / name
        text = path.read_text(encoding="utf-8")
        changed, count = re.subn(rf'({before})"{re.escape(old)}"', rf'\g<1>"{new}"', text, flags=re.MULTILINE)
        if count == 0:
            raise terminal.fail(f"{name} has no version {old}: repair PLACES in scripts/release.py")
        path.write_text(changed, encoding="utf-8")
    path = folder / CHANGELOG
    today = datetime.datetime.now(datetime.timezone.utc).date()
    path.write_text(_UNRELEASED.sub(f"## {new} ({today})", path.read_text(encoding="utf-8"), count=1), encoding="utf-8")


def build() -> list[str]:
    """Build and try all artefacts, write their hashes and return their names; a failure ends the script."""
    # Only artefacts of this commit get a hash.
    shutil.rmtree(ROOT / DIST, ignore_errors=True)
    # Two builds of one commit have the same bytes.
    variables = {**os.environ, "SOURCE_DATE_EPOCH": git(ROOT, "log", "-1", "--format=%ct").strip()}
    for step in STEPS:
        terminal.step(shlex.join(step))
        done = subprocess.run(step, cwd=ROOT, env=variables)
        if done.returncode != 0:
            raise terminal.fail(f"{shlex.join(step)} exited with {done.returncode}", done.returncode)
    dist = ROOT / DIST
    names = sorted(path.name for path in dist.glob(f"*{current()}*") if path.is_file())
    if not names:
        raise terminal.fail(f"no artefact of {current()} is in {DIST}/")
    lines = [f"{hashlib.sha256((dist / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (dist / HASHES).write_text("".join(lines), encoding="utf-8")
    return names


def try_out(version: str) -> None:
    """Show what a release would change and run."""
    with tempfile.TemporaryDirectory(prefix="logspool-release-") as folder:
        copy = Path(folder) / "copy"
        git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(copy))
        write_version(copy, current(), version)
        print(git(copy, "diff", "--unified=0", "--", CHANGELOG), end="")
        print(git(copy, "diff", "--stat"), end="")
    print("then:", *(shlex.join(step) for step in STEPS), f"git tag v{version}", sep="\n    ")
    print("dry run: nothing was changed and nothing was built")


def release(version: str) -> None:
    """Change the version, build, and make the tag."""
    before = git(ROOT, "rev-parse", "HEAD").strip()
    write_version(ROOT, current(), version)
    git(ROOT, "add", "--update")
    git(ROOT, "commit", "--quiet", "--message", f"release: {version}")
    try:
        names = build()
    except SystemExit:
        terminal.note(f"there is no tag. To go back before the release: git reset --hard {before[:12]}")
        raise
    git(ROOT, "tag", "--annotate", f"v{version}", "--message", f"logspool {version}")
    print(f"{DIST}/{HASHES} has the hashes of {len(names)} artefacts. Nothing is published yet.")
    print(f"To publish: git push origin HEAD v{version}")
    print(f"To go back: git tag --delete v{version} && git reset --hard {before[:12]}")


def main() -> None:
    """Make a release, or show what it would do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="", help="three numbers, as in 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="change a copy, and build nothing")
    parser.add_argument("--build", action="store_true", help="build and try the version that the sources have")
    options = parser.parse_args()
    if options.build:
        print(*build(), sep="\n")
        return
    if reason := refusal(options.version):
        raise terminal.fail(reason)
    for name in outdated():
        terminal.note(terminal.paint(f"{name} says `not on PyPI yet`: change that before you publish", "yellow"))
    if options.dry_run:
        try_out(options.version)
    else:
        release(options.version)


if __name__ == "__main__":
    main()
