"""Runs the cases of a module in a process of their own, where logspool is installed and writes JSON lines."""

import ast
import importlib
import json
import logging
import traceback
from pathlib import Path

import logspool


class Lines:
    """The records of this process, read from its log file."""

    def __init__(self, path: str = "app.log") -> None:
        self._path = Path(path)
        self._read = 0
        handler = logging.FileHandler(path)
        handler.setFormatter(logspool.JSONFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        logspool.install()

    def new(self) -> list[dict]:
        """Return the records since the last call."""
        logspool.flush()
        lines = self._path.read_text().splitlines()
        found = [json.loads(line) for line in lines[self._read :]]
        self._read = len(lines)
        return found

    def access(self) -> dict:
        """Return the only access record since the last call."""
        found = [record for record in self.new() if record["logger"] == "logspool.access"]
        assert len(found) == 1, found
        return found[0]


def names(module: str) -> list[str]:
    """Return the names of the cases in a module of this folder, without importing it."""
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if not function.name.startswith("_") and function.args.args]


def main(module: str) -> None:
    """Run every case, and print its name with `ok` or its traceback."""
    cases = importlib.import_module(f"web.{module}")
    lines = Lines()
    for name in names(module):
        lines.new()
        try:
            getattr(cases, name)(lines)
            outcome = "ok"
        except BaseException:
            outcome = traceback.format_exc()
        print(json.dumps([name, outcome]), flush=True)


def outcomes(outcome) -> dict[str, str]:
    """Return the outcomes that a run of `main` printed, by name of the case."""
    return dict(json.loads(line) for line in outcome.expect_success().out.splitlines())
