"""Check that imports go down only: between crates and between rooms of the Python package by the tables below, and
without cycles of files or rooms in a crate or in the package.

A room is a folder directly in `src` with the file of its name, or a file there; the root of a crate is none. The Python
package has rooms in the same way (`scripts/python_sources.py`).

An import is a `use` line, or a path that begins with `crate`, `self` or `super`. A re-export (`pub use`) is no import:
an import of the name through it counts as an import of the file that defines the name. Tests and models are left out.

`python scripts/check_layers.py --show` lists every cycle with the imports that make it.
"""

import argparse
import re
from collections.abc import Callable, Iterator

import python_sources
import terminal
from rust_sources import ROOT, Crate, Module, crates

# Layers, lowest first: the crates that each crate may use.
BELOW_THE_CORE = {"logspool_sys", "logspool_record", "logspool_lanes", "logspool_spool", "logspool_pool"}
MAY_USE = {
    "logspool_sys": set(),
    "logspool_record": set(),
    "logspool_lanes": {"logspool_sys", "logspool_record"},
    "logspool_spool": {"logspool_sys"},
    "logspool_pool": {"logspool_sys"},
    "logspool_rules": {"logspool_record"},
    "logspool": BELOW_THE_CORE,
    "logspool_abi": {"logspool", *BELOW_THE_CORE},
    "logspool_c": {"logspool_abi"},
    "logspool_python": {"logspool", "logspool_abi", "logspool_rules", *BELOW_THE_CORE},
    "logspool_decode": {"logspool_record"},
    "logspool_server": {"logspool", "logspool_decode", *BELOW_THE_CORE},
}

# The ground layer uses the operating system alone.
SYSTEM_CRATES = {"logspool_sys": {"libc", "loom", "rustix"}}

PACKAGE = ROOT / "python" / "logspool"

# The rooms of the Python package, lowest layer first. A room imports only rooms of lower layers.
PACKAGE_LAYERS = (
    {"_forks", "pure"},
    {"_native"},
    {"_imports", "base"},
    {"pool", "thread"},
    {"adoption"},
    {"process"},
    {"_bind", "_once", "handlers", "presets", "watch"},
    {"commands", "gunicorn", "llm", "loguru", "prometheus", "structlog", "web"},
    {"__main__", "asgi", "wsgi"},
)

# Files that are in a cycle of imports, by crate: each figure may only become smaller.
FILES_IN_CYCLES: dict[str, int] = {}

# Rooms that are in a cycle of imports, by crate: each figure may only become smaller.
ROOMS_IN_CYCLES: dict[str, int] = {}

# Chosen: above a quarter of the code, a crate has more than one purpose.
LARGEST_SHARE = 0.27


class Reader:
    """Resolves paths to the files that define the named items."""

    def __init__(self, found: dict[str, Crate]) -> None:
        self.crates = found

    def imports(self, module: Module) -> dict[Module, set[str]]:
        """Return the files whose definitions `module` uses, with the names."""
        taken: dict[str, tuple[Module, set[str]]] = {}

        def note(path: tuple[str, ...]) -> None:
            target, name = self.resolve(module, path)
            if target is not None and target is not module:
                taken.setdefault(str(target.file), (target, set()))[1].add(name)

        for path, name, shared in module.uses:
            target, rest = self._module_at(module, path)
            if shared:
                continue
            if target is not None and not rest:
                for item in module.names_after(name):
                    note((*path, item))
            else:
                note(path)
        for path in module.inline_paths:
            note(path)
        for child in module.children:
            for item in module.names_after(child):
                note(("self", child, item))
        return dict(taken.values())

    def resolve(self, module: Module, path: tuple[str, ...], depth: int = 0) -> tuple[Module | None, str]:
        """Return the file that defines the item at `path` as seen from `module`, and the item's name."""
        target, rest = self._module_at(module, path)
        if target is None or depth > 8:
            return None, ""
        if not rest:
            return target, path[-1]
        for inner, name, shared in target.uses:
            if shared and name == rest[0]:
                found, defined = self.resolve(target, inner, depth + 1)
                if found is not None:
                    return found, defined
        for inner, name, shared in target.uses:
            if shared and name == "*":
                found, defined = self.resolve(target, (*inner[:-1], rest[0]), depth + 1)
                if found is not None and re.search(rf"\b{rest[0]}\b", found.code):
                    return found, defined
        return target, rest[0]

    def _module_at(self, module: Module, path: tuple[str, ...]) -> tuple[Module | None, tuple[str, ...]]:
        """Follow `path` through module files; return the last file and the rest of the path."""
        first, rest = path[0], path[1:]
        if first == "crate":
            here = self.crates[module.crate].root
        elif first in ("self", "super"):
            here = module
            rest = path
            while rest and rest[0] in ("self", "super"):
                if rest[0] == "super":
                    here = self._parent(here)
                rest = rest[1:]
        elif first in module.children:
            here, rest = module, path
        elif first in self.crates:
            here = self.crates[first].root
        else:
            return None, path
        while rest and rest[0] in here.children:
            here, rest = here.children[rest[0]], rest[1:]
        return here, rest

    def _parent(self, module: Module) -> Module:
        here = self.crates[module.crate].root
        for name in module.path[:-1]:
            here = here.children[name]
        return here


def cycles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of files that reach each other, the largest first (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(file: str) -> None:
        order[file] = low[file] = len(order)
        stack.append(file)
        for other in sorted(arrows.get(file, ())):
            if other not in order:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], order[other])
        if low[file] == order[file]:
            group = stack[stack.index(file) :]
            del stack[stack.index(file) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for file in sorted(arrows):
        if file not in order:
            visit(file)
    return sorted(groups, key=len, reverse=True)


def imports_within(crate: Crate, reader: Reader) -> dict[str, dict[str, set[str]]]:
    """Return, for each file of a crate, the other files of it that it imports, with the names."""

    def shown(module: Module) -> str:
        return str(module.file.relative_to(crate.folder / "src"))

    return {
        shown(module): {
            shown(other): names for other, names in reader.imports(module).items() if other.crate == crate.name
        }
        for module in crate.modules()
    }


def between_rooms(
    imports: dict[str, dict[str, set[str]]], room: Callable[[str], str] | None = None
) -> dict[str, dict[str, set[str]]]:
    """Return, for each room, the other rooms that it imports, with the names."""
    rooms: dict[str, dict[str, set[str]]] = {}
    for file, taken in imports.items():
        for other, names in taken.items():
            here, there = (room or _room)(file), (room or _room)(other)
            if here and there and here != there:
                rooms.setdefault(here, {}).setdefault(there, set()).update(names)
    return rooms


def upward(imports: dict[str, dict[str, set[str]]], layers: tuple[set[str], ...]) -> Iterator[str]:
    """Yield one line for each import between files whose rooms are not in lower layers, and for each unknown room."""
    layer_of = {room: number for number, rooms in enumerate(layers) for room in rooms}
    rooms = {python_sources.room(file) for file in imports} - {""}
    yield from (f"{room} is in no layer of scripts/check_layers.py" for room in sorted(rooms - set(layer_of)))
    yield from (f"{room} is in a layer of scripts/check_layers.py, and is no room" for room in set(layer_of) - rooms)
    for file, taken in imports.items():
        for other, names in taken.items():
            here, there = python_sources.room(file), python_sources.room(other)
            if here and here != there and {here, there} <= set(layer_of) and layer_of[there] >= layer_of[here]:
                yield f"{file} imports {', '.join(sorted(names))} of {other}, which is in no lower layer"


def _room(file: str) -> str:
    """Return the room of a file, "" for the root of the crate."""
    first = file.split("/")[0].removesuffix(".rs")
    return "" if first in ("lib", "main") else first


def wrong_layers(found: dict[str, Crate], may_use: dict[str, set[str]]) -> Iterator[str]:
    """Yield one line for each import against the table, and for each dependency that the table does not have."""
    for name, crate in found.items():
        if name not in may_use:
            yield f"crates/{crate.folder.name} has no row in the table of scripts/check_layers.py"
            continue
        manifest = (crate.folder / "Cargo.toml").read_text(encoding="utf-8")
        # Dependencies of tests and of the build may be anything.
        tables = re.findall(r"^\[(?:target\..*\.)?dependencies\]\n(.*?)(?=^\[|\Z)", manifest, re.MULTILINE | re.DOTALL)
        needed = {line.replace("-", "_") for table in tables for line in re.findall(r"^([\w-]+)", table, re.MULTILINE)}
        for other in sorted(needed & set(found)):
            if other not in may_use[name]:
                yield f"crates/{crate.folder.name}/Cargo.toml depends on {other}"
        for other in sorted(needed - set(found) - SYSTEM_CRATES.get(name, needed)):
            yield f"crates/{crate.folder.name}/Cargo.toml depends on {other}"
        for module in crate.modules():
            for path, _, _ in module.uses:
                if path[0] in found and path[0] != name and path[0] not in may_use[name]:
                    yield f"{crate.folder.name}/{module.file.relative_to(crate.folder)} uses {'::'.join(path)}"


def shares(found: dict[str, Crate]) -> dict[str, float]:
    """Return each crate's share of the source lines without tests; the Python package is included."""
    lines = {name: sum(_lines(module) for module in crate.modules()) for name, crate in found.items()}
    package = sum(
        len(file.read_text(encoding="utf-8").splitlines())
        for pattern in ("*.py", "*.pyi")
        for file in (ROOT / "python").rglob(pattern)
    )
    total = sum(lines.values()) + package
    return {name: count / total for name, count in lines.items()}


def _lines(module: Module) -> int:
    """Count the lines of a file up to the module with its tests."""
    text = module.file.read_text(encoding="utf-8")
    tests = re.search(r"^#\[cfg\((?:all\()?test.*\)\]\n(?:#\[.*\n)*mod \w+ \{", text, re.MULTILINE)
    return len((text[: tests.start()] if tests else text).splitlines())


def _show(title: str, groups: list[list[str]], imports: dict[str, dict[str, set[str]]]) -> None:
    for number, group in enumerate(groups, 1):
        print(f"{title}, cycle {number}: {len(group)}")
        for place in group:
            for other in group:
                if other in imports[place]:
                    print(f"  {place} -> {other}: {', '.join(sorted(imports[place][other]))}")


def main() -> None:
    """Print the violations of the layers; exit with 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list every cycle with the imports that make it")
    show = parser.parse_args().show
    found = crates()
    reader = Reader(found)
    faults = list(wrong_layers(found, MAY_USE))
    summary = []
    package = python_sources.imports_within(PACKAGE)
    faults += [f"python/logspool/{fault}" for fault in upward(package, PACKAGE_LAYERS)]
    houses = [
        (crate.folder.name, files := imports_within(crate, reader), between_rooms(files), name)
        for name, crate in found.items()
    ]
    houses.append(("python/logspool", package, between_rooms(package, python_sources.room), "python"))
    for house, files, rooms, name in houses:
        for what, imports, figures in (("files", files, FILES_IN_CYCLES), ("rooms", rooms, ROOMS_IN_CYCLES)):
            groups = cycles({place: set(taken) for place, taken in imports.items()})
            tied, allowed = sum(len(group) for group in groups), figures.get(name, 0)
            if groups:
                summary.append(f"{house} {tied} {what}")
            if tied > allowed:
                faults.append(f"{house} has {tied} {what} in cycles of imports, {allowed} allowed")
            if tied < allowed:
                faults.append(f"{house} has only {tied} {what} in cycles: lower its figure")
            if show or tied > allowed:
                _show(f"{house}, {what}", groups, imports)
    largest, share = max(shares(found).items(), key=lambda item: item[1])
    if share > LARGEST_SHARE:
        faults.append(f"{largest} has {share:.1%} of the source lines, {LARGEST_SHARE:.0%} allowed")
    for fault in faults:
        print(fault)
    if faults:
        raise terminal.fail(
            "imports go down only (ARCHITECTURE.md, layers): move what both sides need to the lower one"
        )
    tied_places = ", ".join(summary) or "none"
    terminal.note(f"in cycles of imports: {tied_places}; largest crate: {largest}, {share:.1%} of the source lines")


if __name__ == "__main__":
    main()
