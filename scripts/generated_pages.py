"""Write the pages and code that are made from tables of the core, in an environment that has the built package.

`make generated` writes them; with `--check`, as `make lint` calls it, it compares.
"""

import argparse
import json
import re
import textwrap
from pathlib import Path

import c_interface
from c_interface import between
from logspool import _native

ROOT = Path(__file__).resolve().parent.parent

TYPES = {
    "text": "text",
    "path": "path",
    "switch": "bool",
    "whole": "int",
    "seconds": "float",
    "levels": "levels",
    "texts": "texts",
}

#: The types as a type checker reads them.
ANNOTATIONS = {
    "text": "str",
    "choice": "str",
    "path": "str | os.PathLike[str]",
    "switch": "bool",
    "whole": "int",
    "seconds": "float",
    "levels": "Collection[int | str]",
    "texts": "Collection[str]",
}

TABLE_HEAD = "| option | type | default | allowed | meaning |\n|---|---|---|---|---|\n"

INSTALL = "python/logspool/process/_install.py"
REFERENCE = "docs/reference/python.md"
DESTINATIONS = "python/logspool/handlers/_destinations.py"
TABLES = "python/logspool/pure/tables.json"

SINKS_HEAD = """\
# Sinks

<!-- Written by scripts/generated_pages.py from the table in crates/logspool/src/sinks/. -->

`logspool.SinkHandler(NAME, OPTION=..., ...)` sends records to one of these, from `dictConfig` too.
It also takes the options of [`install`](python.md#options-of-install).
A sink gets lines, as the handler's formatter makes them, or entries, with all parts of a record.
"""


def sinks() -> str:
    """Return the page of all sinks."""
    parts = [SINKS_HEAD]
    for row in sorted(_native.sink_table(), key=lambda row: row["kind"]):
        parts.append(f"\n## `{row['kind']}`\n\n{row['about']}\nIt gets {row['takes']}.\n")
        if row["options"]:
            parts += ["\n", TABLE_HEAD, *(_line(option) for option in row["options"])]
    return "".join(parts)


def install() -> str:
    """Return the module with `install()`: the rows of the table make its signature and its Args."""
    options = _native.install_options()
    text = (ROOT / INSTALL).read_text(encoding="utf-8")
    signature = "".join(f"    {_parameter(option)},\n" for option in options)
    text = between(text, "def install(\n    *,\n", ") -> None:\n", signature)
    return between(text, "    Args:\n", "\n    Raises:\n", "".join(_explanation(option) for option in options))


def destinations() -> str:
    """Return the module with a class for each receiver: the rows of a sink make the signature and the Args."""
    text = (ROOT / DESTINATIONS).read_text(encoding="utf-8")
    table = {row["kind"]: row["options"] for row in _native.sink_table()}
    head, *classes = re.split(r"(?=^class \w+\(_Destination\):)", text, flags=re.MULTILINE)
    for number, cls in enumerate(classes):
        options = table.get(re.search(r'^    _name = "(\w+)"', cls, re.MULTILINE)[1])
        if options is not None:  # this build has the sink
            first, *others = (f"        {_parameter(option)},\n" for option in options)
            signature = first + "        *,\n" * bool(others) + "".join(others)
            cls = between(cls, "        self,\n", "        **options", signature)
            explained = "".join(_explanation(option) for option in options)
            classes[number] = between(cls, "    Args:\n", "        options: ", explained)
    return head + "".join(classes)


def reference() -> str:
    """Return the page of the Python interface, with the table of the options of `install()`."""
    text = (ROOT / REFERENCE).read_text(encoding="utf-8")
    lines = "".join(_line(option) for option in _native.install_options())
    return between(text, f"## Options of `install`\n\n{TABLE_HEAD}", "\n", lines)


def tables() -> str:
    """Return the tables of the core for a copy of the package without its native module."""

    def rows(options: "list[dict[str, object]]") -> "list[dict[str, object]]":
        return [{name: value for name, value in row.items() if name != "meaning"} for row in options]

    sinks = [{**row, "options": rows(row["options"])} for row in _native.sink_table()]
    content = {
        "version": _native.__version__,
        "counters": _native.counter_names(),
        "options": rows(_native.install_options()),
        "sinks": [{name: value for name, value in row.items() if name != "about"} for row in sinks],
    }
    # A line for each row.
    text = json.dumps(content)
    return re.sub(r'(?<=[\[ ])(\{"(?:name|kind)": )', r"\n\1", text).replace(", \n", ",\n") + "\n"


def _parameter(option: "dict[str, object]") -> str:
    none = " | None" if option["optional"] else ""
    default = "" if option["required"] else f" = {_literal(option['default'])}"
    return f"{option['name']}: {ANNOTATIONS[str(option['shape'])]}{none}{default}"


def _explanation(option: "dict[str, object]") -> str:
    allowed = _allowed(option).replace("`", "")
    text = f"{option['name']}: {option['meaning']}{f' Allowed: {allowed}.' if allowed else ''}"
    indents = {"initial_indent": " " * 8, "subsequent_indent": " " * 12}
    return "\n".join(textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False, **indents)) + "\n"


def _literal(value: object) -> str:
    """Return a value as a Python program writes it."""
    if type(value) is int and value >= 10_000:
        return f"{value:_}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _line(option: "dict[str, object]") -> str:
    if option["required"]:
        default = "required"
    else:
        default = f"`{_literal(option['default'])}`"
    cells = [
        f"`{option['name']}`",
        _type(option),
        default,
        _allowed(option),
        str(option["meaning"]).replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |\n"


def _type(option: "dict[str, object]") -> str:
    return "text" if option["shape"] == "choice" else TYPES[str(option["shape"])]


def _allowed(option: "dict[str, object]") -> str:
    if option["choices"]:
        words = [f'`"{word}"`' for word in option["choices"]]  # type: ignore[attr-defined]
        return ", ".join([*words, "`None`"] if option["optional"] else words)
    unit = f" {option['unit']}" if option["unit"] else ""
    if option["range"] is None:
        return str(option["unit"])
    least, most = option["range"]  # type: ignore[misc]
    return f"{_number(least)} to {_number(most)}{unit}" if most < 2**32 - 1 else f"{_number(least)} or more{unit}"


def _number(value: "int | float") -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


PAGES = {
    "docs/reference/sinks.md": sinks,
    REFERENCE: reference,
    INSTALL: install,
    DESTINATIONS: destinations,
    TABLES: tables,
    **c_interface.PAGES,
}


def main() -> None:
    """Write every page, or name the pages that differ from their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs from its table")
    is_check = parser.parse_args().check
    differing = [name for name, make in PAGES.items() if (ROOT / name).read_text(encoding="utf-8") != make()]
    for name in differing:
        if is_check:
            print(f"{name} differs from its table in the core: run `make generated`")
        else:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
    if is_check and differing:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
