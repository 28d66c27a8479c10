"""Read the imports of the Python package: which of its files takes which names from which other file.

Imports count wherever they are: at the top, in a function, for type checkers only. A module that is named as text
counts too, as in `sys.modules.get("logspool.thread._deferring")` or `_imports.part("thread._deferring")`: such an
import does not run before it is needed, but the file still knows the other one.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

#: The function that imports a part of the package by its name.
_BY_NAME = "part"


def imports_within(package: Path) -> dict[str, dict[str, set[str]]]:
    """Return, for each file of a package, the other files of it that it imports, with the names.

    Names of files are relative to the folder of the package.
    """
    files = {_module(package, file): file for file in sorted(package.rglob("*.py"))}
    return {
        _shown(package, file): {
            _shown(package, files[other]): names for other, names in _imports(files, module).items() if other != module
        }
        for module, file in files.items()
    }


def room(file: str) -> str:
    """Return the room of a file: a folder or a file of the package's folder; "" for the file of the package itself."""
    first = file.split("/")[0].removesuffix(".py")
    return "" if first == "__init__" else first


def _module(package: Path, file: Path) -> str:
    parts = (package.name, *file.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _shown(package: Path, file: Path) -> str:
    return str(file.relative_to(package))


def _imports(files: dict[str, Path], module: str) -> dict[str, set[str]]:
    package = module.partition(".")[0]
    taken: dict[str, set[str]] = {}
    for name in _named(ast.parse(files[module].read_text(encoding="utf-8")), files, module, package):
        home, rest = name, ""
        while home and home not in files:
            home, _, last = home.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
        # The file of the package imports all parts when they are asked for, so nothing in it is somebody's need.
        if home and home != package:
            taken.setdefault(home, set()).add(rest or home.rpartition(".")[2])
    return taken


def _named(tree: ast.AST, files: dict[str, Path], module: str, package: str) -> Iterator[str]:
    """Yield the full name of each module or member that a file names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, files, module)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_BY_NAME) and node.args:
            if isinstance(node.args[0], ast.Constant):
                yield f"{package}.{node.args[0].value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(rf"{package}(\.\w+)+", node.value) and node.value in files:
                yield node.value


def _absolute(node: ast.ImportFrom, files: dict[str, Path], module: str) -> str:
    if not node.level:
        return node.module or ""
    steps = node.level - (files[module].name == "__init__.py")
    parts = module.split(".")
    return ".".join([*parts[: len(parts) - steps], *([node.module] if node.module else [])])
