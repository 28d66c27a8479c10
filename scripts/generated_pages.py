"""Write the pages that are made from tables of the core: run it in an environment that has the built package.

`python scripts/generated_pages.py` writes them; a test compares them with the tables.
"""

from pathlib import Path

from logspool import _native

ROOT = Path(__file__).resolve().parent.parent

TYPES = {"text": "text", "path": "path", "switch": "bool", "whole": "int", "seconds": "float", "levels": "levels"}

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
            parts.append("\n| option | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
            parts += [_line(option) for option in row["options"]]
    return "".join(parts)


def _line(option: "dict[str, object]") -> str:
    if option["required"]:
        default = "required"
    elif option["default"] is None:
        default = "none"
    else:
        default = f"`{option['default']!r}`".replace("'", '"')
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
        return ", ".join(f'`"{word}"`' for word in option["choices"])  # type: ignore[attr-defined]
    unit = f" {option['unit']}" if option["unit"] else ""
    if option["range"] is None:
        return str(option["unit"])
    least, most = option["range"]  # type: ignore[misc]
    return f"{least:,} to {most:,}{unit}" if most < 2**32 - 1 else f"{least:,} or more{unit}"


PAGES = {"docs/reference/sinks.md": sinks}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
