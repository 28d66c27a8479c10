"""Input that is small when it is sent and large when it is decoded, for each stream protocol.

Each bomb is the bytes that one connection sends. Bombs for Forward ask for an ack.
"""

from __future__ import annotations

import gzip
import struct


def text(value: str) -> bytes:
    """Return a short text as MessagePack."""
    data = value.encode()
    return bytes([0xA0 | len(data)]) + data if len(data) < 32 else b"\xd9" + bytes([len(data)]) + data


def binary(data: bytes) -> bytes:
    """Return bytes as MessagePack."""
    return b"\xc6" + struct.pack(">I", len(data)) + data


def forward(entries: bytes, *, compressed: bool = False) -> bytes:
    """Return a message of Forward with packed entries that asks for an ack."""
    options = {"chunk": "bomb"} | ({"compressed": "gzip"} if compressed else {})
    pairs = b"".join(text(name) + text(value) for name, value in options.items())
    return b"\x93" + text("bomb") + binary(entries) + bytes([0x80 | len(options)]) + pairs


def post(body: bytes, kind: str = "application/json") -> bytes:
    """Return a request with a compressed body."""
    data = gzip.compress(body)
    head = f"POST /ingest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    return head.encode() + f"Content-Encoding: gzip\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


EMPTY = b"\x92\xc0\x80"
NILS = b"\xdc\xff\xff" + b"\xc0" * 65_535
DEEP = b"\x92\xc0" + b"\x81\xa1a" * 300_000 + b"\xc0"

BOMBS: dict[str, bytes] = {
    "Forward, empty entries, gzip": forward(gzip.compress(EMPTY * 340_000), compressed=True),
    "Forward, empty entries, packed": forward(EMPTY * 300_000),
    "Forward, entries of two nils, packed": forward(b"\x92\xc0\xc0" * 300_000),
    "Forward, arrays of nils as entries": forward(NILS * 15),
    "Forward, deep maps": forward(DEEP),
    "Forward, arrays of nils in maps": forward((b"\x92\xc0\x81\xa1a" + NILS) * 15),
    "pickle, zero bytes": bytes(64 * 1024),
    "pickle, frames of one byte": b"\0\0\0\1x" * 13_000,
    "pickle, nested lists": struct.pack(">I", 800_001) + b"(" * 400_000 + b"l" * 400_000 + b".",
    "syslog, frames of no bytes": b"5 <1>ab" + b"0 " * 32_000,
    "JSON lines, empty objects": b"{}\n" * 21_000,
    "JSON lines, an array of nulls": b'{"a":[' + b"null," * 200_000 + b"null]}\n",
    "JSON lines, deep maps": b'{"a":' * 150_000 + b"1" + b"}" * 150_000 + b"\n",
    "HTTP, empty objects, gzip": post(b"{}\n" * 340_000),
}
