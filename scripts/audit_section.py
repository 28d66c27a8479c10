"""The list of crates inside a program or module, in the section that `cargo auditable` writes: `.dep-v0`.

Scanners of images and of servers (`cargo audit bin`, Trivy, Grype) read it. It is added to a finished ELF file, so it
costs no second build; the loader does not see it.
"""

import json
import struct
import zlib
from collections.abc import Iterable

from linked_crates import Crate

SECTION = ".dep-v0"

#: Fields of the header of an ELF file of 64 bits: where the table of sections is, its entries, and the one with names.
_TABLE = struct.Struct("<Q")
_COUNTS = struct.Struct("<HHH")
_TABLE_AT, _COUNTS_AT = 0x28, 0x3A
#: An entry: name, kind, flags, address, offset, size, link, info, alignment, size of its entries.
_ENTRY = struct.Struct("<IIQQQQIIQQ")
_PLAIN_DATA = 1


def listed(crates: Iterable[Crate], root: str, version: str) -> bytes:
    """Return the contents of the section: the crates from crates.io, and the program itself."""
    packages: list[dict[str, object]] = [
        {"name": crate.name, "version": crate.version, "source": "crates.io"} for crate in crates if crate.checksum
    ]
    packages.append({"name": root, "version": version, "source": "local", "root": True})
    packages.sort(key=lambda package: (package["name"], package["version"]))
    return zlib.compress(json.dumps({"packages": packages}, separators=(",", ":")).encode(), 9)


def add(binary: bytes, content: bytes) -> bytes:
    """Return an ELF file with the section at its end. A file that has one already stays as it is."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits, little-endian")
    entries, names_at, names = _sections(binary)
    if SECTION in names:
        return binary
    made = bytearray(binary)
    # The names are written once more, with the new one, and the table after them.
    kind = list(entries[names_at])
    old = binary[kind[4] : kind[4] + kind[5]]
    kind[4], kind[5] = len(made), len(old) + len(SECTION) + 1
    made += old + SECTION.encode() + b"\0"
    entries[names_at] = tuple(kind)
    entries.append((len(old), _PLAIN_DATA, 0, 0, len(made), len(content), 0, 0, 1, 0))
    made += content
    made += bytes(-len(made) % 8)
    table = len(made)
    for entry in entries:
        made += _ENTRY.pack(*entry)
    _TABLE.pack_into(made, _TABLE_AT, table)
    _COUNTS.pack_into(made, _COUNTS_AT, _ENTRY.size, len(entries), names_at)
    return bytes(made)


def read(binary: bytes) -> list[dict[str, object]] | None:
    """Return the crates that a file lists; None: it has no such section."""
    entries, _, names = _sections(binary)
    if SECTION not in names:
        return None
    entry = entries[names.index(SECTION)]
    return json.loads(zlib.decompress(binary[entry[4] : entry[4] + entry[5]]))["packages"]


def _sections(binary: bytes) -> tuple[list[tuple[int, ...]], int, list[str]]:
    """Return the entries of the table of sections, the number of the one with the names, and the names."""
    [table] = _TABLE.unpack_from(binary, _TABLE_AT)
    size, count, names_at = _COUNTS.unpack_from(binary, _COUNTS_AT)
    entries = [_ENTRY.unpack_from(binary, table + number * size) for number in range(count)]
    text = entries[names_at][4]
    names = [binary[text + entry[0] : binary.index(b"\0", text + entry[0])].decode() for entry in entries]
    return entries, names_at, names
