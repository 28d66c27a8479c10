"""What is left of the lines of a program that SIGKILL ends right after its last call, by logger.

`python bench/killed.py [--lines N] [--turns N] [--program PATH] [--out FOLDER]`. The Python loggers that can be
imported are measured, and with `--program`, a build of `bench/native/lines.cpp`, those of C++. Each run is a process of
its own. The lines of logspool are counted before and after `logspool recover`; nothing recovers those of others.
"""

import argparse
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import machine
import report
import terminal
from cases import CASES
from report import Table

PYTHON_CASES = (
    *("logspool", "stdlib-file", "bqlog", "bqlog-sync", "rapidlog", "logust", "logust-enqueue", "logxide"),
    *("loguru", "loguru-enqueue", "spydlog", "spydlog-async"),
)
NATIVE_ROWS = ("logspool", "spdlog", "spdlog-async", "quill")

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


def run_killed(command: list[str | Path], recover: list[str | Path] | None, folder: Path) -> tuple[int, int]:
    """Run a program that kills itself. Return its lines before and after the recovery."""
    with tempfile.TemporaryDirectory() as queue:
        env = {**os.environ, "LOGSPOOL_QUEUE_DIR": queue}
        shown = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = subprocess.run(command, env=env, text=True, check=False, **shown)
        if done.returncode != -signal.SIGKILL:
            raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr}")
        before = left(folder)
        if recover:
            subprocess.run(recover, env=env, stdout=subprocess.DEVNULL, check=True)
        return before, left(folder)


def rows(lines: int, program: Path | None) -> dict[str, Callable[[Path], tuple[int, int]]]:
    """Return a function for each logger at hand: it logs into a folder."""
    found: dict[str, Callable[[Path], tuple[int, int]]] = {}
    own_recovery = [sys.executable, "-m", "logspool", "recover"]
    for name in PYTHON_CASES:
        if all(importlib.util.find_spec(module) for module in CASES[name].needs):
            command = [sys.executable, "-c", CHILD, Path(__file__).parent, name, str(lines)]
            recover = own_recovery if name == "logspool" else None
            title = "Python: " + CASES[name].title.strip("*")
            found[title] = lambda folder, command=command, recover=recover: run_killed(
                [*command, folder], recover, folder
            )
        else:
            terminal.note(f"{name} is not installed")
    for name in NATIVE_ROWS if program else ():
        found[f"C++: {name}"] = lambda folder, name=name: run_killed(
            [program, name, "1", str(lines), folder / "out.log", "killed"],
            [program, "recover", "1", "1", "-"] if name == "logspool" else None,
            folder,
        )
    return found


def main() -> None:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000, help="lines of a program")
    parser.add_argument("--turns", type=int, default=3, help="runs of each row")
    parser.add_argument("--program", type=Path, help="a build of bench/native/lines.cpp")
    parser.add_argument("--out", type=Path, help="folder of the results")
    options = parser.parse_args()
    runs: dict[str, list[tuple[int, int]]] = {}
    for _ in range(options.turns):
        for name, run in rows(options.lines, options.program).items():
            with tempfile.TemporaryDirectory() as folder:
                runs.setdefault(name, []).append(run(Path(folder)))
    shown = [
        [name, *(f"{statistics.median(run[index] for run in of_row):,.0f}" for index in (0, 1))]
        for name, of_row in runs.items()
    ]
    title = f"lines left of {options.lines:,} after SIGKILL"
    table = Table(title, ["", "in the file", "after recovery"], shown)
    report.print_table(table)
    if options.out:
        facts = machine.describe()
        where = ", ".join(str(facts[name]) for name in ("date", "processor", "commit"))
        options.out.mkdir(parents=True, exist_ok=True)
        text = ["# Lines that SIGKILL leaves", "", f"{where}, medians of {options.turns} runs in turns.", ""]
        (options.out / "summary.md").write_text("\n".join([*text, *report.markdown(table)]) + "\n")
        (options.out / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
    own = {name: {after for _, after in of_row} for name, of_row in runs.items() if "logspool" in name}
    if lost := [name for name, kept in own.items() if kept != {options.lines}]:
        raise terminal.fail(f"logspool lost lines: {', '.join(lost)}")


if __name__ == "__main__":
    main()
