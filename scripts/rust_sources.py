"""Read the Rust sources of the workspace: crates, module files, code without comments and tests, and `use` paths.

This reads tokens, not meaning: macros are not expanded, and a glob import counts as an import of its module.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<text>b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])')""",
    re.DOTALL | re.VERBOSE,
)
_TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|loom|all\((?:test|loom)\b[^\]]*|any\((?:test|loom)\b[^\]]*)\)\]")
_USE = re.compile(r"(?P<shared>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_INLINE = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
_ROW_OF_TABLE = re.compile(r"^ +mod \w+; (?:pub )?use ", re.MULTILINE)
_MODULE = re.compile(r"\bmod\s+(\w+)\s*;")


def without_comments(text: str) -> str:
    """Return `text` with comments and the inside of strings removed; lines keep their numbers."""

    def blank(match: re.Match[str]) -> str:
        lines = "\n" * match.group().count("\n")
        return lines if match.group("comment") is not None else '""' + lines

    return _TOKEN.sub(blank, text)


def without_tests(code: str) -> str:
    """Return `code`, without comments, without the items that only tests or models compile."""
    while (found := _TEST_ATTRIBUTE.search(code)) is not None:
        end = _end_of_item(code, found.end())
        code = code[: found.start()] + "\n" * code[found.start() : end].count("\n") + code[end:]
    return code


def _end_of_item(code: str, start: int) -> int:
    """Return the place after the item that begins at `start`: after its `;`, or after its closing brace."""
    depth = 0
    for place in range(start, len(code)):
        character = code[place]
        if character in "{([":
            depth += 1
        elif character in "})]":
            depth -= 1
            if depth == 0 and character == "}":
                return place + 1
        elif depth == 0 and character in ";,":
            return place + 1
    return len(code)


def paths_of(tree: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each path of a `use` tree with the name it has in the importing file."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, renamed = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.split("::") if part.strip())
        if parts and parts[-1] == "self":
            parts = parts[:-1]
        if parts:
            yield parts, renamed.strip() or parts[-1]
        return
    prefix = tuple(part.strip() for part in tree[:brace].split("::") if part.strip())
    for inner in _split(tree[brace + 1 : tree.rindex("}")]):
        for parts, name in paths_of(inner) if inner.strip() != "self" else [((), prefix[-1])]:
            yield (*prefix, *parts), name


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas that are in no inner brace."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text[start:].strip():
        yield text[start:]


@dataclass(eq=False)
class Module:
    """One file: its path in the crate, and its code without comments and tests."""

    crate: str
    path: tuple[str, ...]
    file: Path
    children: dict[str, "Module"] = field(default_factory=dict)

    @cached_property
    def code(self) -> str:
        return without_tests(without_comments(self.file.read_text(encoding="utf-8")))

    @cached_property
    def uses(self) -> list[tuple[tuple[str, ...], str, bool]]:
        """Every imported path, the name it gets here, and whether it is re-exported."""
        return [
            (path, name, match["shared"] is not None)
            for match in _USE.finditer(self.code)
            for path, name in paths_of(match["tree"])
        ]

    @cached_property
    def inline_paths(self) -> list[tuple[str, ...]]:
        """Paths in expressions and types that begin with `crate`, `self` or `super`."""
        code = _USE.sub("", re.sub(r"\bpub\((?:in )?[\w:]+\)", "pub", self.code))
        return [tuple(match.group().split("::")) for match in _INLINE.finditer(code)]

    def names_after(self, name: str) -> set[str]:
        """The names that this file takes from an imported module, as in `name::Item`."""
        code = _USE.sub("", self.code)
        return set(re.findall(rf"(?<![\w:]){re.escape(name)}::(\w+)", code))


@dataclass(eq=False)
class Crate:
    """A library or program of the workspace."""

    name: str
    folder: Path
    root: Module

    def modules(self) -> Iterator[Module]:
        """Yield every file that is compiled outside of tests, parents first."""
        waiting = [self.root]
        while waiting:
            module = waiting.pop()
            yield module
            waiting.extend(module.children.values())


def files_declared_by_macros() -> list[str]:
    """Return the files that `cargo fmt` does not find, because a macro declares their modules: those of the tables."""
    sources = (ROOT / "crates").glob("*/src/**/*.rs")
    folders = (path.with_suffix("") for path in sources if _ROW_OF_TABLE.search(path.read_text()))
    return sorted(str(path) for folder in folders for path in folder.rglob("*.rs"))


def crates(workspace: Path = ROOT) -> dict[str, Crate]:
    """Return the libraries of a workspace by their name in Rust (`logspool_sys`)."""
    found = {}
    for manifest in sorted((workspace / "crates").glob("*/Cargo.toml")):
        folder = manifest.parent
        name = folder.name.replace("-", "_")
        root = Module(name, (), folder / "src" / "lib.rs")
        _add_children(root, folder / "src")
        found[name] = Crate(name, folder, root)
    return found


def _add_children(module: Module, folder: Path) -> None:
    for name in _MODULE.findall(module.code):
        beside, inside = folder / f"{name}.rs", folder / name / "mod.rs"
        file = beside if beside.exists() else inside
        if not file.exists():  # made by a macro, or a path attribute: nothing to read
            continue
        child = Module(module.crate, (*module.path, name), file)
        module.children[name] = child
        _add_children(child, folder / name)
