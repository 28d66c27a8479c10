"""Reads the answers of a service: the part of MessagePack that Fluent Forward uses."""

from __future__ import annotations

import struct
from typing import Any

#: The most bytes of an answer. Chosen: an answer repeats an id, and has one line of text at most.
_MOST_BYTES = 65_536

#: The most values of an answer, and their depth, so that no answer takes long to read.
_MOST_ITEMS = 100
_MOST_DEPTH = 4

_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: "f",
    0xCB: "d",
    0xCC: "B",
    0xCD: "H",
    0xCE: "I",
    0xCF: "Q",
    0xD0: "b",
    0xD1: "h",
    0xD2: "i",
    0xD3: "q",
}
_SIZES = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"}


class _Incomplete(Exception):
    """The value goes on beyond the bytes that have arrived."""


def first(data: bytes) -> tuple[Any, int] | None:
    """Return the first value and its size in bytes; None if it is not complete yet.

    Raises:
        ValueError: it is no answer of a service.
    """
    reader = _Reader(data)
    try:
        return reader.value(0), reader.at
    except _Incomplete:
        if len(data) > _MOST_BYTES:
            raise ValueError("the answer of the service is too long") from None
        return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def _take(self, size: int) -> bytes:
        part = self._data[self.at : self.at + size]
        if len(part) < size:
            raise _Incomplete
        self.at += size
        return part

    def _number(self, form: str) -> Any:
        return struct.unpack(f">{form}", self._take(struct.calcsize(form)))[0]

    def value(self, depth: int) -> Any:
        mark = self._take(1)[0]
        if mark < 0x80:
            return mark
        if mark >= 0xE0:
            return mark - 0x100
        if mark in _FIXED:
            return _FIXED[mark]
        if mark in _NUMBERS:
            return self._number(_NUMBERS[mark])
        if mark < 0xC0:
            kind, size = mark & 0xE0, mark & 0x1F
            kind = kind if kind == 0xA0 else mark & 0xF0
            size = size if kind == 0xA0 else mark & 0x0F
        elif mark in _SIZES:
            size = self._number(_SIZES[mark])
            kind = 0xC4 if mark < 0xC7 else 0xA0 if mark < 0xDC else 0x90 if mark < 0xDE else 0x80
        else:
            raise ValueError("the answer of the service is no Fluent Forward")
        if kind == 0xA0:
            return self._take(size).decode("utf-8", "surrogateescape")
        if kind == 0xC4:
            data = self._take(size)
            try:
                return data.decode()
            except UnicodeDecodeError:
                return data
        if size > _MOST_ITEMS or depth >= _MOST_DEPTH:
            raise ValueError("the answer of the service is too long")
        if kind == 0x90:
            return [self.value(depth + 1) for _ in range(size)]
        pairs = [(self.value(depth + 1), self.value(depth + 1)) for _ in range(size)]
        return {key: value for key, value in pairs if isinstance(key, (str, int))}
