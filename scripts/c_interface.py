"""Make the header and the imports of the C interface from the table in `crates/logspool-abi/src/table.rs`.

The table has the name, the types and the comment of each function. Made from it are the prototypes and the struct of
function pointers in `logspool.h`, the exports of `logspool-c`, and the procs of the Nim module. A new function of the
header comes after the others that anybody may call; move it to a better place, and it stays there.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

TABLE = "crates/logspool-abi/src/table.rs"
HEADER = "crates/logspool-c/include/logspool.h"
EXPORTS = "crates/logspool-c/src/lib.rs"
NIM = "bindings/nim/src/logspool/capi.nim"

WIDTH = 120

#: Each type of the table, in C and in Nim.
TYPES = {
    "*const c_char": ("const char *", "cstring"),
    "*mut c_char": ("char *", "cstring"),
    "*mut c_void": ("void *", "pointer"),
    "Id": ("logspool_id", "Id"),
    "*const Id": ("const logspool_id *", "ptr Id"),
    "u16": ("uint16_t", "uint16"),
    "u32": ("uint32_t", "uint32"),
    "u64": ("uint64_t", "uint64"),
    "usize": ("size_t", "csize_t"),
    "f64": ("double", "cdouble"),
    "c_int": ("int", "cint"),
    "c_long": ("long", "clong"),
    "c_longlong": ("long long", "clonglong"),
    "*const SiteInfo": ("const struct logspool_site_info *", "ptr SiteInfo"),
    "*const Argument": ("const struct logspool_arg *", "ptr Arg"),
    "*mut LaneView": ("struct logspool_view *", "ptr View"),
    "*const PublicHandle": ("const struct logspool_handle *", "ptr Handle"),
    "*const Api": ("const struct logspool_api *", "pointer"),
    "": ("void", ""),
}


#: Names that would hide another one in the Nim module.
NIM_NAMES = {"text": "emit_text"}


class Function(NamedTuple):
    """A function of the table."""

    minor: int
    #: Whether programs may call it; the others are for copies of the library.
    is_public: bool
    name: str
    #: Names and types.
    arguments: "list[tuple[str, str]]"
    result: str
    #: Lines of its comment.
    comment: "list[str]"

    def prototype(self) -> str:
        """Return the lines of the prototype."""
        arguments = [_joined(TYPES[kind][0], name) for name, kind in self.arguments]
        return _call(_joined(TYPES[self.result][0], f"logspool_{self.name}("), arguments)

    def pointer(self) -> str:
        """Return the lines of the field in the struct."""
        arguments = [TYPES[kind][0] for _, kind in self.arguments]
        return _call("    " + _joined(TYPES[self.result][0], f"(*{self.name})("), arguments)

    def export(self) -> str:
        """Return the line of the Rust crate that exports the function."""
        arguments = ", ".join(f"{name}: {kind}" for name, kind in self.arguments)
        return f"    logspool_{self.name} = {self.name}({arguments}){f' -> {self.result}' if self.result else ''};\n"

    def proc(self) -> str:
        """Return the lines of the Nim module."""
        head, *tail = NIM_NAMES.get(self.name, self.name).split("_")
        arguments = [f"{name}: {TYPES[kind][1]}" for name, kind in self.arguments]
        result = f": {TYPES[self.result][1]}" if self.result else ""
        name = head + "".join(map(str.capitalize, tail))
        pragma = f'{{.importc: "logspool_{self.name}", header: "logspool.h".}}'
        return f"proc {name}*({', '.join(arguments)}){result}\n  {pragma}\n"


def _joined(kind: str, name: str) -> str:
    return kind + name if kind.endswith("*") else f"{kind} {name}"


def _call(head: str, arguments: "list[str]") -> str:
    """Return a prototype in lines of `WIDTH`, with the arguments below each other."""
    lines = [head]
    for number, argument in enumerate(arguments or ["void"]):
        last = number + 1 >= len(arguments)
        space = " " if number else ""
        piece = argument + (");" if last else ",")
        if len(lines[-1] + space + piece) <= WIDTH:
            lines[-1] += space + piece
        else:
            lines.append(" " * len(head) + piece)
    return "\n".join(lines) + "\n"


def functions() -> "list[Function]":
    """Read the table."""
    text = (ROOT / TABLE).read_text(encoding="utf-8")
    rows = re.search(r"^table! \{\n(.*?)^\}\n", text, re.MULTILINE | re.DOTALL)[1]
    entry = re.compile(
        r"^    \[minor (?P<minor>\d+)\]\n"
        r"|^(?P<comment>(?:    ///[^\n]*\n)*)"
        r"    (?P<users>public|internal) (?P<name>\w+): fn\((?P<arguments>[^)]*)\)"
        r"(?: -> (?P<result>[^,]+))?, failed [^;]+;\n"
        r"|^\n",
        re.MULTILINE,
    )
    found, place, minor = [], 0, 0
    while place < len(rows):
        row = entry.match(rows, place)
        if row is None:
            raise SystemExit(f"{TABLE}: cannot read {rows[place:].splitlines()[0]!r}")
        place = row.end()
        if row["minor"]:
            minor = int(row["minor"])
        elif row["name"]:
            arguments = [tuple(each.split(": ")) for each in row["arguments"].split(", ") if each]
            comment = [line.strip()[4:] for line in row["comment"].splitlines()]
            is_public, result = row["users"] == "public", row["result"] or ""
            found.append(Function(minor, is_public, row["name"], arguments, result, comment))
    if unknown := {kind for each in found for _, kind in [*each.arguments, ("", each.result)]} - set(TYPES):
        raise SystemExit(f"{TABLE}: scripts/c_interface.py does not know {', '.join(sorted(unknown))} in C and Nim")
    return found


def header() -> str:
    """Return `logspool.h` with the comments and prototypes of the table, and its struct."""
    text, listed = (ROOT / HEADER).read_text(encoding="utf-8"), functions()
    text = re.sub(r"(#define LOGSPOOL_ABI_MINOR) \d+", rf"\1 {listed[-1].minor}", text)
    for each in filter(lambda each: each.is_public, listed):
        made = f"/* {chr(10).join(each.comment)} */\n".replace("\n", "\n * ").removesuffix(" * ") + each.prototype()
        place = re.compile(rf"/\*(?:(?!\*/).)*\*/\n[\w *]*\blogspool_{each.name}\([^;]*;\n", re.DOTALL)
        if place.search(text):
            text = place.sub(lambda _, made=made: made, text, count=1)
        else:
            text = text.replace("/* ---- For headers", f"{made}\n/* ---- For headers", 1)
    known = {f"logspool_{each.name}" for each in listed if each.is_public} | {"logspool_api_table"}
    if foreign := set(re.findall(r"^\w[\w *]*\b(logspool_\w+)\(", text, re.MULTILINE)) - known:
        raise SystemExit(f"{HEADER}: {', '.join(sorted(foreign))} is not in the table")
    return between(text, "    uint32_t reserved;\n", "};\n", "".join(_fields(listed)))


def _fields(listed: "list[Function]") -> "list[str]":
    lines, minor, is_public = [], 0, True
    for each in listed:
        if each.minor != minor:
            lines.append(f"    /* Since 1.{each.minor} */\n")
            minor, is_public = each.minor, True
        if is_public and not each.is_public:
            lines.append("    /* For other copies of the library only: the queue moves to another copy. */\n")
        is_public = each.is_public
        lines.append(each.pointer())
    return lines


def exports() -> str:
    """Return the source that exports the functions."""
    text = (ROOT / EXPORTS).read_text(encoding="utf-8")
    return between(text, "exports! {\n", "}\n", "".join(each.export() for each in functions() if each.is_public))


def nim() -> str:
    """Return the Nim module with a proc for each function."""
    text = (ROOT / NIM).read_text(encoding="utf-8")
    head, mark, _ = text.partition("# The rest is written by scripts/c_interface.py.\n")
    return head + mark + "\n" + "".join(each.proc() for each in functions() if each.is_public)


def between(text: str, begin: str, end: str, middle: str) -> str:
    """Return `text` with `middle` between the first `begin` in it and the next `end` after a line."""
    head, found, rest = text.partition(begin)
    _, found_end, tail = rest.partition("\n" + end)
    if not found or not found_end:
        raise SystemExit(f"cannot find {begin!r} and {end!r} after it")
    return head + begin + middle + end + tail


PAGES = {HEADER: header, EXPORTS: exports, NIM: nim}
