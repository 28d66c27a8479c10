"""On the pages for users of other packages, the programs `before` and `after` write the same lines."""

import importlib.util
import re
import subprocess
import sys

import pytest

from suite import pages, programs

pytestmark = pytest.mark.real

SECONDS = 120
FOLDER = pages.ROOT / "docs" / "how-to" / "coming-from"

#: For each page the module that its programs need.
PAGES = {
    "queue-handler.md": None,
    "python-json-logger.md": "pythonjsonlogger",
    "loguru.md": "loguru",
    "structlog.md": "structlog",
}

PROCESSES, LINES = 4, 200


def _needs(module):
    is_missing = module is not None and importlib.util.find_spec(module) is None
    return [pytest.mark.skip(reason=f"needs {module}")] if is_missing else []


def _write(page, folder):
    """Write the programs of a page, each to a folder with its name; return the names."""
    names = []
    for block in pages.blocks(FOLDER / page):
        if match := re.match(r"# (\w+)\.py\n", block.text):
            names.append(match[1])
            (folder / match[1]).mkdir()
            (folder / match[1] / "program.py").write_text(block.text, encoding="utf-8")
    assert names == ["before", "after"]
    return names


@pytest.mark.parametrize("page", [pytest.param(page, marks=_needs(module)) for page, module in PAGES.items()])
def test_both_programs_of_a_page_write_the_same(tmp_path, queue_dir, page):
    found = {}
    for name in _write(page, tmp_path):
        folder = tmp_path / name
        environment = programs.environment(programs.STOCK, queue_dir)
        outcome = programs.run(["program.py"], env=environment, folder=folder, deadline_seconds=SECONDS)
        assert b"" == outcome.expect_success().err
        found[name] = re.sub(r"line \d+|/\w+/program", "", (folder / "app.log").read_text())

    assert found["before"] == found["after"]
    assert found["after"].count("\n") >= 1_000


@pytest.mark.skipif(importlib.util.find_spec("concurrent_log_handler") is None, reason="needs concurrent-log-handler")
def test_processes_that_rotate_one_file_lose_nothing(tmp_path, queue_dir):
    for name in _write("concurrent-log-handler.md", tmp_path):
        folder = tmp_path / name
        environment = programs.environment(programs.STOCK, queue_dir)
        running = [
            subprocess.Popen([sys.executable, "program.py", str(number)], cwd=folder, env=environment)
            for number in range(PROCESSES)
        ]
        assert [0] * PROCESSES == [process.wait(SECONDS) for process in running]
        files = [path for path in folder.iterdir() if re.fullmatch(r"app\.log(\.\d+)?", path.name)]
        text = "".join(path.read_text() for path in files)

        expected = [f"shop process {number} order {line}" for number in range(PROCESSES) for line in range(LINES)]
        assert sorted(expected) == sorted(text.splitlines())
        assert len(files) >= 3
