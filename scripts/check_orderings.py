"""Count the strong orderings of atomics that no model guards.

A strong ordering is every use of `Acquire`, `Release`, `AcqRel` or `SeqCst` outside of tests and models. It is guarded
where its line passes it to `guarded("name", ...)`, or its fence is skipped by `is_weakened("name")` in the line above;
`make loom` shows that a model fails for each of these names. Other lines call a method that is guarded, or a function
that returns a guarded ordering, and so they name no ordering. A line that loom cannot model has a comment directly
above it that begins with `// Ordering:` and names the pair and the reason. The figures may only become smaller.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import terminal
from rust_sources import ROOT, without_comments, without_tests

# Strong orderings without a model and without an `// Ordering:` comment.
UNGUARDED = 0

# Lines with an `// Ordering:` comment in place of a model.
EXPLAINED = 1

_STRONG = re.compile(r"\b(?:Ordering::)?(?:Acquire|Release|AcqRel|SeqCst)\b")
_QUALIFIED = re.compile(r"\bOrdering::(?:Acquire|Release|AcqRel|SeqCst)\b")
_IMPORTED = re.compile(
    r"\buse\s+[^;]*\bOrdering::(?:\{[^}]*\b(?:Acquire|Release|AcqRel|SeqCst)\b|(?:Acquire|Release|AcqRel|SeqCst)\b|\*)"
)
_IMPORTED_IN_TREE = re.compile(r"\buse\s+[^;]*\batomic::\{[^;]*\bOrdering::(?:\{|\w)")
_GUARDED = re.compile(r"\bguarded\(")
_WEAKENED = re.compile(r"\bis_weakened\(")


@dataclass
class Found:
    """Lines of strong orderings, by the proof that they have."""

    guarded: list[int] = field(default_factory=list)
    explained: list[int] = field(default_factory=list)
    unguarded: list[int] = field(default_factory=list)


def strong_orderings(text: str) -> Found:
    """Return the lines of a Rust file with strong orderings."""
    lines = text.split("\n")
    code = without_tests(without_comments(text))
    imported = _IMPORTED.search(code) or _IMPORTED_IN_TREE.search(code)
    pattern = _STRONG if imported else _QUALIFIED
    code_lines = re.sub(r"\buse\s[^;]*;", lambda use: "\n" * use.group().count("\n"), code).split("\n")
    found = Found()
    for number, line in enumerate(code_lines):
        if pattern.search(line) is None:
            continue
        before = code_lines[number - 1] if number > 0 else ""
        if _GUARDED.search(line) or _GUARDED.search(before) or _WEAKENED.search(before):
            found.guarded.append(number + 1)
        elif _is_explained(lines, number):
            found.explained.append(number + 1)
        else:
            found.unguarded.append(number + 1)
    return found


def _is_explained(lines: list[str], number: int) -> bool:
    """Return whether the comment directly above a line begins with `// Ordering:`."""
    above = number - 1
    while above >= 0 and re.match(r"\s*// ", lines[above]):
        if lines[above].lstrip().startswith("// Ordering: "):
            return True
        above -= 1
    return False


def is_model(file: Path) -> bool:
    """Return whether a file is compiled for tests or models only."""
    return file.stem in {"models", "tests"} or "tests" in file.parts


def main() -> None:
    """Print the figures; exit with 1 where one is above its limit."""
    guarded, explained, unguarded = 0, 0, []
    for file in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if is_model(file.relative_to(ROOT)):
            continue
        found = strong_orderings(file.read_text(encoding="utf-8"))
        guarded += len(found.guarded)
        explained += len(found.explained)
        unguarded += [f"{file.relative_to(ROOT)}:{line}" for line in found.unguarded]
    terminal.note(f"strong orderings: {guarded} with a model, {explained} explained, {len(unguarded)} without either")
    faults = []
    if len(unguarded) > UNGUARDED:
        print(*unguarded, sep="\n")
        faults.append(f"{len(unguarded)} strong orderings have no model, {UNGUARDED} allowed")
    if explained > EXPLAINED:
        faults.append(f"{explained} are explained in place of a model, {EXPLAINED} allowed")
    if faults:
        raise terminal.fail("; ".join(faults))


if __name__ == "__main__":
    main()
