"""Count the lines that remain after SIGKILL ends a program right after its last call, by logger.

The Python loggers that can be imported are measured. With `--program`, a build of `bench/native/lines.cpp`, those of
C++ are measured too. Each run is a process of its own. The lines of logspool are counted before and after
`logspool recover`; nothing recovers those of others.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import apart
from cases import CASES
from parts import Column, Part
from results import Results
from runner import Bench, numbered
from targets import count

PYTHON_CASES = (
    *("logspool", "stdlib-file", "bqlog", "bqlog-sync", "rapidlog", "logust", "logust-enqueue", "logxide"),
    *("loguru", "loguru-enqueue", "spydlog", "spydlog-async"),
)
NATIVE_ROWS = ("logspool", "spdlog", "spdlog-async", "quill")
OWN_ROWS = ("Python: logspool, installed", "C++: logspool")
KILLED = "killed"
#: In a command, the folder of a run and the file in it.
FOLDER, FILE = "FOLDER", "out.log"

CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import loops
from cases import CASES
case, lines, folder = CASES[sys.argv[2]], int(sys.argv[3]), Path(sys.argv[4])
session = case.open(folder / "out.log")
program, _ = loops.load(case.call, folder)
program.back_to_back(session.log, "ada", lines)
os.kill(os.getpid(), signal.SIGKILL)
"""


def left(folder: Path) -> int:
    """Return the number of whole lines in the files of a folder."""
    files = (path for path in folder.iterdir() if path.is_file() and path.suffix == ".log")
    lines = (line for path in files for line in path.read_bytes().splitlines(keepends=True))
    return sum(line.endswith(b"\n") and b" did " in line for line in lines)


def measure(command: list[str | Path], recover: list[str | Path] | None, lines: int) -> dict[str, float]:
    """Run a program that logs into a folder and kills itself. Count its lines before and after the recovery."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as queue:
        folder = Path(name)
        command = [folder / part if part == FILE else folder if part == FOLDER else part for part in command]
        env = {**os.environ, "LOGSPOOL_QUEUE_DIR": queue}
        done = subprocess.run(command, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != -signal.SIGKILL:
            raise apart.Failed(f"{command} ended with {done.returncode}: {done.stderr}")
        before = left(folder)
        if recover:
            subprocess.run(recover, env=env, stdout=subprocess.DEVNULL, check=True)
        after = left(folder)
    return {"in_file": before, "recovered": after, "lost": lines - after}


class Killed(Bench):
    """The comparison of the remaining lines."""

    title = "Lines that SIGKILL leaves"
    folder = "killed"
    rounds, rounds_option = 3, "turns"
    sizes = (("lines", 100_000, "lines of a program"),)
    parts = (
        Part(KILLED, "lines left", (Column("in_file", "in the file", 0), Column("recovered", "after recovery", 0))),
    )
    counts = tuple(count(f"{row}: lines lost", row, KILLED, "lost") for row in OWN_ROWS)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the program of C++."""
        parser.add_argument("--program", type=Path, help="a build of bench/native/lines.cpp")

    def own(self, row: str) -> bool:
        """Say whether a row is logspool's."""
        return row.startswith(OWN_ROWS)

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Kill the program of each logger in turn."""
        programs: dict[str, tuple[list[str | Path], list[str | Path] | None]] = {}
        for name in PYTHON_CASES:
            row = "Python: " + CASES[name].title.strip("*")
            if all(importlib.util.find_spec(module) for module in CASES[name].needs):
                command = [sys.executable, "-c", CHILD, Path(__file__).parent, name, str(options.lines), FOLDER]
                programs[row] = command, [sys.executable, "-m", "logspool", "recover"] if self.own(row) else None
            else:
                results.skipped[row] = "not installed"
        for name in NATIVE_ROWS if options.program else ():
            row = f"C++: {name}"
            command = [options.program, name, "1", str(options.lines), FILE, "killed"]
            programs[row] = command, [options.program, "recover", "1", "1", "-"] if self.own(row) else None
        for number in numbered(options.rounds, "turn"):
            for row, (command, recover) in programs.items():
                results.take(row, KILLED, number, partial(measure, command, recover, options.lines))


if __name__ == "__main__":
    Killed().main()
