"""Compare Cargo.lock with the advisories of RustSec, and the licences of all crates with the permitted ones.

The advisories are a folder or a git repository, which `--database` or LOGSPOOL_ADVISORIES names; git fetches them where
neither does. The date of the newest advisory is printed: a check against an old copy says less. A check that could not
run ends with the code 2, so it cannot pass for a good answer.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import linked_crates
import terminal
from environment import BUILD, ROOT, tomllib

SOURCE = "https://github.com/RustSec/advisory-db"

#: Advisories that tell of no weakness.
REMARKS = ("unmaintained", "notice")

#: A copy that is older is refused. RustSec publishes some advisories each week.
MOST_DAYS = 180

#: The fewest advisories of a whole copy: there were 900 in 2025.
FEWEST = 500


class NotRun(Exception):
    """The check could not run."""


@dataclass(frozen=True)
class Advisory:
    """What RustSec says about one crate."""

    name: str
    package: str
    date: str
    remark: str
    title: str
    patched: tuple[str, ...]
    unaffected: tuple[str, ...]

    def concerns(self, version: str) -> bool:
        """Return whether a version has the weakness."""
        return not any(fits(version, wanted) for wanted in (*self.patched, *self.unaffected))


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is in a range as Cargo writes it: `>= 1.2, < 2`, `^1.4`, `=1.0.3`."""
    return all(_fits_one(version, part.strip()) for part in wanted.split(","))


def _fits_one(version: str, wanted: str) -> bool:
    found = re.fullmatch(r"(>=|<=|>|<|=|\^|~)? *(\S+)", wanted)
    if found is None:
        raise NotRun(f"the range {wanted!r} is not understood")
    operator, than = found[1] or "^", found[2]
    if than == "*":
        return True
    own, other = _key(version), _key(than)
    if operator in ("^", "~"):
        numbers = [int(number) for number in re.split(r"[-+]", than)[0].split(".")]
        first = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        kept = first if operator == "^" else min(1, len(numbers) - 1)
        above = [*numbers[:kept], numbers[kept] + 1]
        return other <= own < _key(".".join(map(str, above)) + "-0")
    return {">=": own >= other, "<=": own <= other, ">": own > other, "<": own < other, "=": own == other}[operator]


def _key(version: str) -> tuple:
    """Return a key that orders versions; one before a release is smaller than the release."""
    numbers, _, before = version.split("+")[0].partition("-")
    parts = ([int(number) for number in numbers.split(".")] + [0, 0])[:3]
    names = (
        tuple((0, int(name), "") if name.isdigit() else (1, 0, name) for name in before.split(".")) if before else ()
    )
    return (*parts, not before, names)


def read(folder: Path) -> list[Advisory]:
    """Return all advisories of a folder that are not withdrawn."""
    found = []
    for path in sorted(folder.glob("crates/*/*.md")):
        text = re.search(r"```toml\n(.*?)\n```", path.read_text(encoding="utf-8"), re.DOTALL)
        title = re.search(r"(?m)^# (.+)", path.read_text(encoding="utf-8"))
        if text is None:
            raise NotRun(f"{path.name} is no advisory")
        facts = tomllib.loads(text[1])
        advisory, versions = facts["advisory"], facts.get("versions", {})
        if "withdrawn" not in advisory:
            found.append(
                Advisory(
                    advisory["id"],
                    advisory["package"],
                    str(advisory["date"]),
                    advisory.get("informational", ""),
                    title[1] if title else "",
                    tuple(versions.get("patched", ())),
                    tuple(versions.get("unaffected", ())),
                )
            )
    if len(found) < FEWEST:
        raise NotRun(f"{folder} has {len(found)} advisories; a whole copy has more than {FEWEST}")
    return found


def findings(advisories: list[Advisory], lock: str) -> Iterator[tuple[Advisory, str]]:
    """Return the advisories that concern a crate of Cargo.lock, each with the version there."""
    packages = [package for package in tomllib.loads(lock)["package"] if "source" in package]
    for package in packages:
        for advisory in advisories:
            if advisory.package == package["name"] and advisory.concerns(package["version"]):
                yield advisory, package["version"]


def judge(advisories: list[Advisory], lock: str, today: str) -> int:
    """Print what concerns Cargo.lock; return the number of weaknesses. An old copy is refused."""
    newest = max(advisory.date for advisory in advisories)
    print(f"    {len(advisories)} advisories, the newest of {newest}")
    days = (_day(today) - _day(newest)) // 86400
    if days > MOST_DAYS:
        raise NotRun(f"the newest advisory is {days:.0f} days old; at most {MOST_DAYS} are allowed")
    weaknesses = 0
    for advisory, version in findings(advisories, lock):
        weak = advisory.remark not in REMARKS
        weaknesses += weak
        kind = "weakness" if weak else advisory.remark
        print(f"    {kind}: {advisory.package} {version}: {advisory.name} {advisory.title}")
    print(f"    {weaknesses} weaknesses in {lock.count('[[package]]')} crates")
    return weaknesses


def _day(date: str) -> float:
    return time.mktime(time.strptime(date, "%Y-%m-%d"))


def unpacked(given: str | None, folder: Path) -> Path:
    """Return a folder with the advisories: the given one, or out of a git repository into `folder`."""
    source = Path(given) if given else BUILD / "advisories"
    if not given:
        command = ["git", "clone", "--quiet", "--depth=1", SOURCE, str(source)]
        if source.exists():
            command = ["git", "-C", str(source), "pull", "--quiet", "--ff-only"]
        if subprocess.run(command, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"}).returncode != 0:
            raise NotRun(f"{SOURCE} cannot be fetched: name a copy by --database or LOGSPOOL_ADVISORIES")
    if (source / "crates").is_dir():
        return source
    archive = folder / "advisories.tar"
    command = ["git", "--git-dir", str(source), "archive", "--output", str(archive), "HEAD"]
    if subprocess.run(command).returncode != 0:
        raise NotRun(f"{source} has no advisories")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder


def main() -> int:
    """Check licences and advisories."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default=os.environ.get("LOGSPOOL_ADVISORIES"), help="a copy of the advisories")
    options = parser.parse_args()
    terminal.step("licences")
    wrong = linked_crates.refused(linked_crates.crates())
    print(f"    {len(linked_crates.crates())} crates, {len(wrong)} with a licence that is not permissive")
    if wrong:
        raise terminal.fail("; ".join(wrong))
    terminal.step("advisories")
    try:
        with tempfile.TemporaryDirectory(prefix="logspool-advisories-") as folder:
            advisories = read(unpacked(options.database, Path(folder)))
        lock = (ROOT / "Cargo.lock").read_text()
        return 1 if judge(advisories, lock, time.strftime("%Y-%m-%d")) else 0
    except NotRun as why:
        raise terminal.fail(f"the advisories were not checked: {why}", 2) from None


if __name__ == "__main__":
    sys.exit(main())
