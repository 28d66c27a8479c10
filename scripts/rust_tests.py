"""Build the Rust tests, and run the test programs side by side.

Most of them wait for disks, clocks and other processes, and cargo runs one after the other. Each program runs in the
folder of its package, as under cargo. Words after the script are passed to each program: `python scripts/rust_tests.py
fork` runs the tests whose name has `fork`.
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

PASSED = re.compile(r"^test result: \w+\. (\d+) passed", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """One test program that has ended."""

    name: str
    code: int
    seconds: float
    output: str


def build() -> list[tuple[Path, Path]]:
    """Build all test programs. Return the path of each and the folder of its package, the largest program first."""
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json-render-diagnostics", *WORKSPACE]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        raise terminal.fail("the Rust tests cannot be built", built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    programs = [
        (Path(message["executable"]), Path(message["manifest_path"]).parent)
        for message in messages
        if message.get("executable") and message["profile"]["test"]
    ]
    return sorted(programs, key=lambda program: program[0].stat().st_size, reverse=True)


def run_program(program: Path, folder: Path, arguments: list[str]) -> Outcome:
    """Run one test program to its end."""
    began = time.monotonic()
    variables = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    done = subprocess.run(
        [program, "--quiet", *arguments],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    name = program.name.rpartition("-")[0]
    return Outcome(f"{folder.name} {name}", done.returncode, time.monotonic() - began, done.stdout)


def run_all(programs: list[tuple[Path, Path]], arguments: list[str]) -> Iterator[Outcome]:
    """Run the programs side by side; return each when it has ended."""
    with ThreadPoolExecutor(TEST_WORKERS) as pool:
        for done in as_completed([pool.submit(run_program, *program, arguments) for program in programs]):
            yield done.result()


def run_pages(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run the examples in the documentation."""
    command = ["cargo", "test", "--doc", "--quiet", *WORKSPACE, "--", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main() -> None:
    """Run everything; the output of a program is shown if it fails."""
    arguments = sys.argv[1:]
    terminal.step("building the Rust tests")
    programs = build()
    terminal.step(f"{len(programs)} Rust test programs, {TEST_WORKERS} at once")
    count = 0
    failed = []
    slowest: list[Outcome] = []
    for outcome in run_all(programs, arguments):
        count += sum(map(int, PASSED.findall(outcome.output)))
        slowest.append(outcome)
        if outcome.code != 0:
            failed.append(outcome.name)
            print(f"{outcome.output}\n{terminal.paint(f'{outcome.name} FAILED ({outcome.code})', 'bold', 'red')}")
    for outcome in sorted(slowest, key=lambda each: each.seconds, reverse=True)[:5]:
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
