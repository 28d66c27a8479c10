"""Finds the blocks of code in the Markdown pages and runs them in the order of the page.

A comment before a block says how the block runs:

| comment | meaning |
|---|---|
| `<!-- file: NAME -->` | the block is written to this file; a command below it on the page uses the file |
| `<!-- continues -->` | the block continues the program of the Python block before it |
| `<!-- any order -->` | before a block of output: its lines may come in any order |
| `<!-- run by: FILE::TEST -->` | the named test reads this block and runs it with a service |
| `<!-- race: WHAT -->` | WHAT may be faster than the block expects; then the page runs again from its beginning |
| `<!-- not run: REASON -->` | nothing runs the block |

A `text` or `json` block below a program is its output; in a `console` block it is every line below a `$ ` line.
`...` in an output matches any text. Standard output and standard error share one pipe.
"""

import doctest
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from logspool.process import _keeper

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"]

DEADLINE_SECONDS = 60

_BLOCK = re.compile(r"(?:^<!-- (?P<marker>[^\n]*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.M | re.S)
_BETWEEN = "logspool-pages: the next block begins"


class RaceLost(AssertionError):
    """A block whose marker names a race has not printed the output that the page shows."""


@dataclass
class Block:
    """One block of a page: a program, commands, or something that is only read."""

    page: Path
    line: int
    language: str
    marker: str
    text: str
    #: The output that the page shows below the block, or None.
    output: "Block | None" = field(default=None, repr=False)

    @property
    def is_run(self) -> bool:
        """Whether the block is a program, commands or a file; other blocks are only read."""
        return self.language in ("python", "console") or self.value("file") is not None

    def value(self, name: str) -> "str | None":
        """Return the value of the block's marker if the marker has this name, else None."""
        key, _, value = self.marker.partition(":")
        return value.strip() if key == name else None

    def check(self, printed: str) -> None:
        """Compare the printed text with the output that the page shows."""
        shown = self.output.text if self.output else ""
        # Only some interpreters have such a line.
        printed = re.sub(r"(?m)^slow on this Python: .*\n", "", printed)
        if self.output and self.output.marker == "any order":
            shown, printed = ("".join(sorted(text.splitlines(keepends=True))) for text in (shown, printed))
        place = f"{self.page.relative_to(ROOT)}:{self.line}"
        same = doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)
        assert same, f"{place}: the page shows\n{shown}\nbut the block printed\n{printed}"


def blocks(page: Path) -> "list[Block]":
    """Return the programs and commands of a page in its order, each with its output."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(page, line, match["language"], match["marker"] or "", match["text"])
        if block.language == "text" and found and found[-1].language == "python" and not found[-1].output:
            found[-1].output = block
        elif block.is_run:
            found.append(block)
    return found


def commands(block: Block) -> "list[tuple[str, str]]":
    """Return each command of a `console` block with the output that the page shows for it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.page}:{block.line}: a console block begins with a command"
    pairs = []
    for part in parts[1:]:
        lines = part.splitlines(keepends=True)
        length = 1
        while lines[length - 1].endswith("\\\n"):
            length += 1
        pairs.append(("".join(lines[:length]), "".join(lines[length:])))
    return pairs


class Runner:
    """Runs the blocks of one page in one folder."""

    def __init__(self, folder: Path, python: str, environment: Mapping[str, str], same: Callable[[str], str]):
        """Use the interpreter `python`; `same` replaces paths of the test by the paths that pages show."""
        self.folder, self.python, self.environment, self.same = folder, python, dict(environment), same
        self.environment.update(PYTHONUNBUFFERED="1", PATH=f"{Path(python).parent}:{self.environment['PATH']}")

    def run_page(self, page: Path) -> int:
        """Run the blocks without a `run by` or `not run` marker; return the number of all blocks of the page."""
        todo = [block for block in blocks(page) if block.value("run by") is None and block.value("not run") is None]
        while todo:
            chain = [todo.pop(0)]
            while todo and todo[0].marker == "continues":
                chain.append(todo.pop(0))
            if name := chain[0].value("file"):
                (self.folder / name).write_text(chain[0].text, encoding="utf-8")
            elif chain[0].language == "python":
                self._run_programs(chain)
            else:
                self.run_commands(chain[0])
        return len(blocks(page))

    def _run_programs(self, chain: "list[Block]") -> None:
        """Run blocks that make one program, and compare the output of each."""
        program = f"\nprint({_BETWEEN!r}, flush=True)\n".join(block.text for block in chain)
        (self.folder / "page.py").write_text(program, encoding="utf-8")
        code, printed = self._run([self.python, "page.py"])
        place = f"{chain[0].page.relative_to(ROOT)}:{chain[0].line}"
        assert code == 0, f"{place} ends with {code}:\n{printed}"
        for block, part in zip(chain, printed.split(_BETWEEN + "\n"), strict=True):
            block.check(part)

    def run_commands(self, block: Block) -> None:
        """Run commands one after the other, like a shell on a terminal, and compare their output."""
        for command, shown in commands(block):
            self._await_keepers()
            code, printed = self._run(["bash", "-c", command])
            killed = code in (-9, 137)
            printed += "Killed\n" if killed else ""
            # A command such as `doctor` ends with 1 if it has findings; the page shows them.
            expected = code == 0 or killed or (code == 1 and shown)
            assert expected, f"{block.page}:{block.line}: {command} ends with {code}:\n{printed}"
            try:
                Block(block.page, block.line, "", "", command, Block(block.page, 0, "", "", shown)).check(printed)
            except AssertionError as error:
                if block.value("race") is None:
                    raise
                raise RaceLost(*error.args) from None

    def _await_keepers(self) -> None:
        """Wait for the keepers of programs that have ended; a person who types the next command needs as long.

        A keeper works for up to two seconds after its program has ended, and delivers records of other dead processes.
        """
        folder = self.environment["LOGSPOOL_QUEUE_DIR"]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(not os.path.isdir(f"/proc/{program}") for _, program in _keeper.running(folder)):
            assert time.monotonic() < deadline, f"a keeper in {folder} outlives its program"
            time.sleep(0.01)

    def _run(self, command: "list[str]") -> "tuple[int, str]":
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_SECONDS,
        )
        return done.returncode, self.same(done.stdout.decode())
