"""Every `python` and `console` block of the pages runs, and prints the output that the page shows."""

import re
import sys

import pytest

from suite import pages, programs, queue_folder

pytestmark = pytest.mark.real

ALL = [(page, block) for page in pages.PAGES for block in pages.blocks(page)]
WITH_BLOCKS = sorted({page for page, _ in ALL})

#: Number of blocks that nothing runs; the page gives the reason of each. Raise it only for a good reason.
NOT_RUN = 12

#: Number of times that a page runs if a block loses the race that its marker names.
TRIES = 3


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_every_block_of_a_page_prints_what_the_page_shows(page, tmp_path):
    for left in reversed(range(TRIES)):
        try:
            assert _run_page(page, tmp_path / str(left)) > 0
            break
        except pages.RaceLost:
            if not left:
                raise


def _run_page(page, folder):
    """Run a page in an empty folder with an empty queue folder; return the number of its blocks."""
    folder.mkdir()
    with queue_folder.private() as queue_dir:

        def same(text):
            text = text.replace(str(queue_dir), "/dev/shm/logspool-1000").replace(str(folder), "/home/you")
            return re.sub(r"process \d+", "process 4711", text)

        environment = programs.environment(programs.STOCK, queue_dir)
        return pages.Runner(folder, sys.executable, environment, same).run_page(page)


def test_a_block_that_nothing_runs_says_why():
    reasons = [reason for _, block in ALL if (reason := block.value("not run")) is not None]

    assert NOT_RUN == len(reasons)
    assert all(reasons)


def test_a_block_that_another_test_runs_names_that_test():
    named = [block.value("run by") for _, block in ALL if block.value("run by") is not None]
    missing = []
    for name in named:
        path, _, test = name.partition("::")
        file = pages.ROOT / path
        if not file.is_file() or f"def {test}(" not in file.read_text(encoding="utf-8"):
            missing.append(name)

    assert len(named) > 5
    assert missing == []


def test_a_file_of_a_page_is_used_by_a_command_below_it():
    unused = []
    for page, block in ALL:
        if name := block.value("file"):
            rest = [other for other in pages.blocks(page) if other.line > block.line and other.language == "console"]
            if not any(name in other.text for other in rest):
                unused.append((page.name, name))

    assert unused == []


def test_every_marker_has_a_known_name():
    known = ("", "file", "continues", "run by", "race", "not run")

    assert [] == [block.marker for _, block in ALL if block.marker.partition(":")[0] not in known]


def test_a_page_whose_output_differs_is_refused(tmp_path, queue_dir):
    page = pages.ROOT / "docs" / "wrong.md"
    block = pages.Block(page, 1, "python", "", "print(1)\n", pages.Block(page, 4, "text", "", "2\n"))
    with pytest.raises(AssertionError, match="but the block printed"):
        block.check("1\n")


def test_a_command_runs_after_the_keeper_of_the_command_before(tmp_path, queue_dir):
    """Otherwise a keeper that still looks for dead processes could deliver records that the page shows as left."""
    tutorial = {block.value("file"): block.text for block in pages.blocks(pages.ROOT / "docs" / "tutorial.md")}
    for name in ("plain.py", "killed.py"):
        (tmp_path / name).write_text(tutorial[name], encoding="utf-8")
    # Because of a file that belongs to no process, each keeper searches for its whole time.
    (queue_dir / "unknown.lock").touch()
    text = (
        "$ python -m logspool run plain.py\n"
        "$ python killed.py\nKilled\n"
        "$ sleep 0.5\n"
        "$ python -m logspool recover\n... record... written to killed.log\n"
    )
    marker = "race: the writer may be done before the kill"
    runner = pages.Runner(
        tmp_path,
        sys.executable,
        programs.environment(programs.STOCK, queue_dir),
        lambda printed: printed.replace(f"{tmp_path}/", ""),
    )

    # A keeper that delivers the records loses this race each time.
    for tries_left in reversed(range(5)):
        try:
            runner.run_commands(pages.Block(pages.ROOT / "docs" / "tutorial.md", 1, "console", marker, text))
            break
        except pages.RaceLost:
            if not tries_left:
                raise


@pytest.mark.parametrize(("marker", "raised"), [("race: it may be late", pages.RaceLost), ("", AssertionError)])
def test_only_a_block_that_names_a_race_may_lose_it(marker, raised, tmp_path, queue_dir):
    runner = pages.Runner(tmp_path, sys.executable, programs.environment(programs.STOCK, queue_dir), str)
    block = pages.Block(pages.ROOT / "docs" / "wrong.md", 1, "console", marker, "$ echo early\nlate\n")
    with pytest.raises(AssertionError) as caught:
        runner.run_commands(block)

    assert caught.type is raised
