"""Refuse locks of the package that do not come from `logspool.base._locks`.

A plain lock stays taken in a forked child, makes a signal handler wait for the code that it interrupted, and hangs the
end of the interpreter when a daemon thread has it. `_locks.guard()` makes a lock without these faults.
"""

import ast

import terminal
from environment import ROOT

PACKAGE = ROOT / "python" / "logspool"
#: Files that make locks. `_imports.py` is imported before `_locks.py`, and renews its lock in a forked child; so is
#: the queue of `pure`, which a child makes anew.
MAKERS = [PACKAGE / "base" / "_locks.py", PACKAGE / "_imports.py", PACKAGE / "pure" / "_records.py"]

_MODULES = {"threading", "_thread"}
_LOCKS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "allocate_lock"}


def plain_locks(text: str) -> list[int]:
    """Return the lines of a Python file that name a function which makes a plain lock."""
    tree = ast.parse(text)
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in _MODULES and node.attr in _LOCKS:
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            lines += [node.lineno for name in node.names if name.name in _LOCKS]
    return sorted(lines)


def main() -> None:
    """Print the lines with plain locks; exit with 1 if there are any."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if file not in MAKERS]
    found = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in plain_locks(file.read_text("utf-8"))]
    terminal.note(f"plain locks: {len(found)} in {len(files)} files")
    if found:
        print(*found, sep="\n")
        raise terminal.fail("a lock of the package comes from `_locks.guard()` or `_locks.flag()`")


if __name__ == "__main__":
    main()
