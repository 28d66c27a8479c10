"""Refuse a crate in which two types have the same name: a name says what a type is without its file."""

import re
from collections import defaultdict

import terminal
from rust_sources import Crate, crates

_TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|union|trait)\s+(\w+)", re.MULTILINE)

# Names that a crate has more than once, counted by crate: each figure may only become smaller.
REPEATED: dict[str, int] = {"logspool_decode": 3, "logspool_server": 15}


def repeated(crate: Crate) -> dict[str, list[str]]:
    """Return the names that more than one type of a crate has, with their files."""
    places = defaultdict(list)
    for module in crate.modules():
        for name in _TYPE.findall(module.code):
            places[name].append(str(module.file.relative_to(crate.folder)))
    return {name: sorted(files) for name, files in sorted(places.items()) if len(files) > 1}


def main() -> None:
    """Print every repeated name; exit with 1 where there are more than allowed."""
    faults = []
    total = 0
    for name, crate in crates().items():
        found = repeated(crate)
        total += len(found)
        allowed = REPEATED.get(name, 0)
        if len(found) > allowed:
            for type_name, files in found.items():
                print(f"{type_name}: {', '.join(files)}")
            faults.append(f"{name} has {len(found)} names twice, {allowed} allowed")
        elif len(found) < allowed:
            faults.append(f"{name} has only {len(found)} names twice: lower its figure in REPEATED")
    if faults:
        raise terminal.fail("; ".join(faults))
    terminal.note(f"{total} names of types are there twice in a crate")


if __name__ == "__main__":
    main()
