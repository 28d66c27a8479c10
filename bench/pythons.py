"""What calls cost on each interpreter at hand, beside stock logging on the same interpreter.

`python bench/pythons.py [--rounds N] [--pythons "3.12 3.14"] [--out FOLDER]`. The interpreters take turns, each
measurement is a process of its own, and a figure is the least of all rounds: processor time of the calling thread for
a call, of the process for the import and `install()`. The exit code is 1 where a goal is missed.

Compiled modules come from a folder that the first starts of each interpreter fill, as after an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import apart
from report import Table
from results import Results
from runner import Bench, alternating, numbered
from targets import Target

import environment  # isort: skip  (its folder was added by report)
import interpreters  # isort: skip
import terminal  # isort: skip

STOCK, OWN = "stock", "logspool"

#: The interpreter that the others are compared with, and for each figure the greatest ratio to it.
BASE = "3.12"
GOALS = {"info": 1.15, "exception": 1.3, "start": 1.1}
#: The interpreters that have goals. Builds without a GIL pay for locks that the others do not have.
JUDGED = ("3.14", "3.15")

TITLES = {
    "info": "`info`, three arguments, ns",
    "exception": "`exception`, six frames, us",
    "start": "import and `install()`, ms",
}

#: Runs on each interpreter: prints the figures of one process.
WORKER = """
import json, logging, os, sys, time
own = sys.argv[1] == "logspool"
before = time.process_time()
if own:
    import logspool
    logspool.install()
start = (time.process_time() - before) * 1e3
if sys.argv[2:] == ["start"]:
    print(json.dumps({"start": start}))
    sys.exit()
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
log = logging.getLogger("shop")
settle = logspool.flush if own else lambda: None

def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError("no such item")

def info(calls):
    began = time.thread_time_ns()
    for number in range(calls):
        log.info("order %d of %s costs %.2f", number, "customer", 2.5)
    return (time.thread_time_ns() - began) / calls

def exception(calls):
    total = 0
    for number in range(calls):
        try:
            fail(5)
        except ValueError:
            began = time.thread_time_ns()
            log.exception("failed")
            total += time.thread_time_ns() - began
    return total / calls / 1e3

def least(row, calls, turns):
    found = []
    for _ in range(turns):
        found.append(row(calls))
        settle()
    return min(found)

print(json.dumps({
    "info": least(info, 2_000 if own else 500, 20),
    "exception": least(exception, 100 if own else 20, 10),
    "start": start,
}))
"""

#: Further processes of a measurement, which only start. Chosen: together they take less time than one that calls.
STARTS = 10

# Chosen: a hundred times what one process needs.
PROCESS_SECONDS = 200.0


def measure(python: str, side: str, compiled: str) -> dict[str, float]:
    """Run the worker in processes of its own, with the compiled modules of a folder."""
    figures = run_worker(python, side, compiled=compiled)
    starts = [run_worker(python, side, "start", compiled=compiled)["start"] for _ in range(STARTS)]
    return {**figures, "start": min(figures["start"], *starts)}


def run_worker(python: str, *arguments: str, compiled: str) -> dict[str, float]:
    """Run one process of the worker and return its figures."""
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="logspool-bench-") as folder:
        # Not by `-c`: from 3.13 on its lines are sources of interactive code, and Python makes their tracebacks.
        (Path(folder) / "worker.py").write_text(WORKER, encoding="utf-8")
        command = [python, "worker.py", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROCESS_SECONDS, cwd=folder, env=variables
        )
    if done.returncode:
        raise apart.Failed(done.stderr.strip())
    return dict(json.loads(done.stdout))


def prepared(tag: str, build: bool) -> tuple[str, str] | None:
    """Return the command and version of an interpreter with the extension, None where it is not at hand."""
    interpreter = interpreters.resolve(tag)
    if interpreter is None:
        terminal.note(f"Python {tag} is not at hand")
        return None
    made = environment.Environment(interpreter, "bench")
    if build:
        with environment.locked(f"venv-{interpreter.tag}-bench"):
            made.ensure().build_extension()
    return str(made.python), interpreter.version


class Pythons(Bench):
    """The comparison of interpreters."""

    title = "What calls cost on each interpreter"
    folder = "pythons"
    rounds = 9
    sizes = (("pythons", "3.12 3.13t 3.14 3.15", "interpreters; those not at hand are left out"),)
    notes = (f"The least of all rounds; / {BASE} is the ratio to the figure of that interpreter.",)
    targets = tuple(
        Target(f"{tag}: {TITLES[row]}, of {BASE}", (tag, OWN, row), over=(BASE, OWN, row), at_most=goal, take=min)
        for tag in JUDGED
        for row, goal in GOALS.items()
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--built", action="store_true", help="take the extensions that are built")

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure all interpreters in turn."""
        asked = {tag: prepared(tag, not options.built) for tag in options.pythons.split()}
        found = {tag: python for tag, python in asked.items() if python is not None}
        pythons = {tag: python for tag, (python, _) in found.items()}
        results.facts["versions"] = [version for _, version in found.values()]
        if not pythons:
            raise terminal.fail("none of the interpreters is at hand", 2)
        with tempfile.TemporaryDirectory(prefix="logspool-bench-compiled-") as compiled:
            for number in numbered(options.rounds):
                for tag in alternating(pythons, number):
                    for side in (STOCK, OWN):
                        results.take(tag, side, number, partial(measure, pythons[tag], side, compiled))

    def facts_in_words(self, results: Results) -> str:
        return f"measured: CPython {', '.join(results.facts['versions'])}, {super().facts_in_words(results)}"

    def must_work(self, cell: str) -> bool:
        return True

    def tables(self, results: Results) -> list[tuple[Table, list[str]]]:
        """Return a row for each interpreter: each figure, that of stock logging, and the ratio."""
        head = ["CPython"]
        for row, title in TITLES.items():
            head += [f"{title}{'' if row == 'start' else ' (stock)'}", f"/ {BASE}"]
        rows = []
        for tag in results.cells:
            rows.append([tag])
            for row in TITLES:
                own, stock, base = (results.values(*at, row) for at in ((tag, OWN), (tag, STOCK), (BASE, OWN)))
                beside = f" ({min(stock):,.1f})" if row != "start" and stock else ""
                rows[-1] += [f"{min(own):,.1f}{beside}" if own else ""]
                rows[-1] += [f"{min(own) / min(base):.2f}" if own and base else ""]
        return [(Table("The least of all rounds", head, rows), [])]


if __name__ == "__main__":
    Pythons().main()
