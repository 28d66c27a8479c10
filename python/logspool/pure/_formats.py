"""The formats of the core that Python code calls: JSON lines, and the entries of Fluent Forward.

`crates/logspool-record/src/format/json.rs` and `entry.rs` beside it have the rules; tests compare the bytes.
"""

from __future__ import annotations

import struct
from typing import Any

#: As in `entry.rs`: bytes of the texts of an entry, bytes of a name, parts of a record, nested values and their depth.
_MOST_BYTES = 6 * 1024 * 1024
_MOST_NAME_BYTES = 250
_MOST_PARTS = 1000
_MOST_VALUES = 2000
_MOST_DEPTH = 16

#: The last time in nanoseconds that the core has.
_LAST = (1 << 63) - 1

_INFINITE = (float("inf"), -float("inf"))


def json_object(members: list[tuple[Any, Any]], /) -> str:
    """Return the members as a JSON object on one line."""
    return "{" + ",".join(f"{_json(key)}:{_json(value)}" for key, value in members) + "}"


def _json(value: Any) -> str:
    import json

    kind = type(value)
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if kind is int:
        return str(value)
    if kind is float:
        return "null" if value != value or value in _INFINITE else repr(value)
    return json.dumps(value if kind is str else str(value), ensure_ascii=False)


def entry(created: float, parts: list[tuple[Any, Any]], /) -> bytes:
    """Return the entry of a record, with its time and its parts in their order."""
    seconds, nanoseconds = divmod(min(max(round(created * 1e9), 0), _LAST), 10**9)
    left_out = len(parts) - _MOST_PARTS
    written = parts if left_out <= 0 else parts[:_MOST_PARTS]
    packed = _Packed(b"\x92\xd7\x00" + struct.pack(">II", min(seconds, 0xFFFFFFFF), nanoseconds))
    packed.out += struct.pack(">BH", 0xDE, len(written) + (left_out > 0))
    for name, value in written:
        packed.name(name)
        packed.value(value)
    if left_out > 0:
        packed.name("fields_left_out")
        packed.value(left_out)
    return bytes(packed.out)


def text(value: str) -> bytes:
    """Return a text in MessagePack."""
    return _head(value.encode(), 0xA0, 31, 0xD9)


def binary(value: bytes) -> bytes:
    """Return bytes in MessagePack, with a length of four bytes."""
    return struct.pack(">BI", 0xC6, len(value)) + value


def integer(value: int) -> bytes:
    """Return a whole number that fits 64 bits, with a sign, in its shortest form."""
    if -32 <= value < 128:
        return struct.pack(">b", value)
    if value > 0:
        for code, form, limit in ((0xCC, "B", 8), (0xCD, "H", 16), (0xCE, "I", 32), (0xCF, "Q", 64)):
            if value < 1 << limit:
                return struct.pack(f">B{form}", code, value)
    for code, form, limit in ((0xD0, "b", 7), (0xD1, "h", 15), (0xD2, "i", 31)):
        if value >= -1 << limit:
            return struct.pack(f">B{form}", code, value)
    return struct.pack(">Bq", 0xD3, value)


def _head(data: bytes, short: int, most: int, code: int) -> bytes:
    size = len(data)
    if size <= most:
        return bytes([short | size]) + data
    if size < 1 << 8:
        return struct.pack(">BB", code, size) + data
    if size < 1 << 16:
        return struct.pack(">BH", code + 1, size) + data
    return struct.pack(">BI", code + 2, size) + data


def _counted(count: int, short: int, code: int) -> bytes:
    if count < 16:
        return bytes([short | count])
    return struct.pack(">BH", code, count) if count < 1 << 16 else struct.pack(">BI", code + 1, count)


class _Packed:
    """An entry that grows. A text gets at most half of the bytes that are left."""

    def __init__(self, begin: bytes) -> None:
        self.out = bytearray(begin)
        self._values_left = _MOST_VALUES

    def name(self, name: Any) -> None:
        self._text(name, _MOST_NAME_BYTES)

    def value(self, value: Any) -> None:
        """Add the value of a part. If it nests too deep or has too many values, its text is added."""
        start, values_left = len(self.out), self._values_left
        if not self._push(value, 0):
            del self.out[start:]
            self._values_left = values_left
            self._text(value)

    def _push(self, value: Any, depth: int) -> bool:
        if depth > 0:
            if depth > _MOST_DEPTH or self._values_left == 0:
                return False
            self._values_left -= 1
        kind = type(value)
        if value is None:
            self.out += b"\xc0"
        elif kind is bool:
            self.out += b"\xc3" if value else b"\xc2"
        elif kind is int and -(1 << 63) <= value < 1 << 63:
            self.out += integer(value)
        elif kind is float:
            self.out += struct.pack(">Bd", 0xCB, value)
        elif isinstance(value, dict):
            items = list(value.items())
            self.out += _counted(len(items), 0x80, 0xDE)
            for key, item in items:
                self.name(key)
                if not self._push(item, depth + 1):
                    return False
        elif isinstance(value, (list, tuple)):
            listed = list(value)
            self.out += _counted(len(listed), 0x90, 0xDC)
            return all(self._push(item, depth + 1) for item in listed)
        else:
            self._text(value)
        return True

    def _text(self, value: Any, room: int | None = None) -> None:
        if room is None:
            room = max(_MOST_BYTES - len(self.out), 0) // 2
        data = (value if type(value) is str else str(value)).encode("utf-8", "backslashreplace")
        if len(data) > room:
            # A character is not cut.
            while room > 0 and data[room] & 0xC0 == 0x80:
                room -= 1
            data = data[:room] + b"..."
        self.out += _head(data, 0xA0, 31, 0xD9)
