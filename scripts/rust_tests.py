"""Build the Rust tests, and run them side by side.

Most of them wait for disks, clocks and other processes, and cargo runs one program after the other. The unit tests of a
crate are one process. The files under its `tests` folder are modules of one program, and each module is a process of
its own. Each process runs in the folder of its package, as under cargo. A word after the script chooses tests by name:
`python scripts/rust_tests.py fork` runs the tests whose name has `fork`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import terminal
from environment import ROOT, TEST_WORKERS
from executables import WORKSPACE

EXAMPLE = re.compile(r"^\s*//[/!] ```", re.MULTILINE)
MODULE = re.compile(r"^mod (\w+);", re.MULTILINE)
PASSED = re.compile(r"^test result: \w+\. (\d+) passed", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One process with tests of one program."""

    program: Path
    folder: Path
    name: str
    #: The words after the program's name: the tests to run.
    arguments: list[str]


@dataclass(frozen=True)
class Outcome:
    """One process that has ended."""

    name: str
    code: int
    seconds: float
    output: str


def build(words: list[str]) -> list[Run]:
    """Build all test programs. Return their runs: the modules first, since they take longest."""
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json-render-diagnostics", *WORKSPACE]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        raise terminal.fail("the Rust tests cannot be built", built.returncode)
    modules, units = [], []
    for message in map(json.loads, built.stdout.splitlines()):
        if not message.get("executable") or not message["profile"]["test"]:
            continue
        program, folder = Path(message["executable"]), Path(message["manifest_path"]).parent
        if message["target"]["kind"] == ["test"] and message["target"]["name"] == "all":
            modules += runs_of_modules(program, folder, words)
        else:
            units.append(Run(program, folder, f"{folder.name} {message['target']['name']}", words))
    return modules + units


def runs_of_modules(program: Path, folder: Path, words: list[str]) -> list[Run]:
    """Return a run for each file under `tests`, of the tests with at least one of the words in their names.

    A file that the program does not declare ends the script: its tests would never run.
    """
    tests = folder / "tests"
    declared = set(MODULE.findall((tests / "all.rs").read_text()))
    forgotten = sorted(path.stem for path in tests.glob("*.rs") if path.stem not in declared | {"all"})
    if forgotten:
        raise terminal.fail(f"{tests.relative_to(ROOT)}/all.rs does not declare: {', '.join(forgotten)}")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    by_module: dict[str, list[str]] = {}
    for name in names:
        if not words or any(word in name for word in words):
            by_module.setdefault(name.partition("::")[0], []).append(name)
    return [Run(program, folder, f"{folder.name} {module}", ["--exact", *own]) for module, own in by_module.items()]


def run_one(run: Run) -> Outcome:
    """Run one process to its end."""
    began = time.monotonic()
    done = subprocess.run(
        [run.program, "--quiet", *run.arguments],
        cwd=run.folder,
        env={**os.environ, "CARGO_MANIFEST_DIR": str(run.folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Outcome(run.name, done.returncode, time.monotonic() - began, done.stdout)


def run_all(runs: list[Run]) -> Iterator[Outcome]:
    """Run the processes side by side; return each when it has ended."""
    with ThreadPoolExecutor(TEST_WORKERS) as pool:
        for done in as_completed([pool.submit(run_one, run) for run in runs]):
            yield done.result()


def has_example(path: Path) -> bool:
    """Return whether the pages of a file have a block of code or text."""
    return EXAMPLE.search(path.read_text()) is not None


def run_pages(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run the examples in the documentation."""
    # rustdoc reads a whole crate to look for examples, which takes longer than to run them.
    folders = (path for path in sorted((ROOT / "crates").iterdir()) if path.name != "logspool-python")
    packages = [f"--package={path.name}" for path in folders if any(map(has_example, path.rglob("src/**/*.rs")))]
    command = ["cargo", "test", "--doc", "--quiet", *packages, "--", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main() -> None:
    """Run everything; the output of a program is shown if it fails."""
    arguments = sys.argv[1:]
    terminal.step("building the Rust tests")
    runs = build(arguments)
    terminal.step(f"{len(runs)} processes with Rust tests, {TEST_WORKERS} at once")
    count = 0
    failed = []
    slowest: list[Outcome] = []
    for outcome in run_all(runs):
        count += sum(map(int, PASSED.findall(outcome.output)))
        slowest.append(outcome)
        if outcome.code != 0:
            failed.append(outcome.name)
            print(f"{outcome.output}\n{terminal.paint(f'{outcome.name} FAILED ({outcome.code})', 'bold', 'red')}")
    for outcome in sorted(slowest, key=lambda each: each.seconds, reverse=True)[:10]:
        terminal.note(f"{outcome.seconds:5.1f} s  {outcome.name}")
    terminal.step("the examples of the Rust pages")
    pages = run_pages(arguments)
    count += sum(map(int, PASSED.findall(pages.stdout)))
    if pages.returncode != 0:
        failed.append("the examples of the Rust pages")
        print(pages.stdout)
    if failed:
        raise terminal.fail(f"failed: {', '.join(failed)}")
    if count == 0:
        raise terminal.fail("no Rust test was run")
    terminal.note(terminal.paint(f"{count} Rust tests passed", "green"))


if __name__ == "__main__":
    main()
