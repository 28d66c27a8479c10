"""Refuse a crate in which two types have the same name: a name has to identify a type without its file."""

import re
from collections import defaultdict

import terminal
from rust_sources import Crate, crates

_TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|union|trait)\s+(\w+)", re.MULTILINE)


def repeated(crate: Crate) -> dict[str, list[str]]:
    """Return the names that more than one type of a crate has, with their files."""
    places = defaultdict(list)
    for module in crate.modules():
        for name in _TYPE.findall(module.code):
            places[name].append(str(module.file.relative_to(crate.folder)))
    return {name: sorted(files) for name, files in sorted(places.items()) if len(files) > 1}


def main() -> None:
    """Print every repeated name with its files; exit with 1 if there is one."""
    faults = []
    for name, crate in crates().items():
        found = repeated(crate)
        for type_name, files in found.items():
            print(f"{type_name}: {', '.join(files)}")
        if found:
            faults.append(f"{name} has two types of one name: {', '.join(found)}")
    if faults:
        raise terminal.fail("; ".join(faults))
    terminal.note("no crate has two types of one name")


if __name__ == "__main__":
    main()
