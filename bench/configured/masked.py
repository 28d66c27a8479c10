"""Compares the lines of two processes, without the times and numbers that differ between them."""

import re
from collections.abc import Iterable, Sequence

# Only digits are replaced, so that a time of another form still differs.
_TIMES = re.compile(
    rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d\d/[A-Z][a-z]{2}/\d{4}[: ]\d\d:\d\d:\d\d(?:,\d+| [+-]\d{4})"
)
# JSON fields with the number of the process or of the thread.
_NUMBERS = re.compile(rb'(?<="pid":)\d+|(?<="thread":\{"id":)\d+')

# Chosen: enough to recognise the kind of difference.
SHOWN_LINES = 3


def mask(data: bytes, moving: Iterable[re.Pattern[bytes]] = ()) -> bytes:
    """Return the data with fixed digits in times, and a word for the numbers of processes and threads."""
    data = _TIMES.sub(lambda match: re.sub(rb"\d", b"0", match[0]), data)
    for pattern in (_NUMBERS, *moving):
        data = pattern.sub(b"NUMBER", data)
    return data


def difference(stock: bytes, own: bytes, moving: Sequence[re.Pattern[bytes]] = ()) -> str | None:
    """Return the first lines that differ, None if no byte does."""
    stock, own = mask(stock, moving), mask(own, moving)
    if stock == own:
        return None
    pairs = _pairs(stock.splitlines(keepends=True), own.splitlines(keepends=True))
    different = [(number, *pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1]]
    shown = [
        f"line {number}: stock {first!r}, logspool {second!r}" for number, first, second in different[:SHOWN_LINES]
    ]
    return "\n".join([f"lines that differ from stock logging: {len(different)}", *shown])


def _pairs(stock: list[bytes], own: list[bytes]) -> Iterable[tuple[bytes | None, bytes | None]]:
    for number in range(max(len(stock), len(own))):
        yield stock[number] if number < len(stock) else None, own[number] if number < len(own) else None
