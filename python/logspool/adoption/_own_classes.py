"""logspool's own classes of handlers and formatters, which planning knows without importing them.

The modules of the room `handlers` add their classes when they are imported. A class that is no `logging.StreamHandler`
describes its handlers itself, by `_described(handler, known)` and `_described_format(handler, known)`.
A class that is no `logging.FileHandler` may have a formatter of its own, by `_formatter_without_one(stream)`.
"""

from __future__ import annotations

#: logspool's own handler classes.
own_handlers: list[type] = []

#: logspool's own formatter classes. Each describes its formatters by `_native_formatting(formatting, utc)`.
own_formatters: list[type] = []


class SharedRotation:
    """Base of logspool's own rotating handlers. Several processes rotate the file of such a handler."""

    _compress: str | None = None

    @property
    def compress(self) -> str | None:
        """Return the compression of backups: "gzip", "zstd", or None."""
        return self._compress
