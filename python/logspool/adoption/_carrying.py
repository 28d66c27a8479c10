"""Make the records of stock logging carry the fields of `bind`. `uninstall()` takes that back."""

from __future__ import annotations

import logging

from logspool import _native
from logspool.adoption import _bound_fields, _planning
from logspool.base import _stock_classes

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def carry_fields() -> None:
    """Make every LogRecord carry the fields of `bind`. Called at the first use of `bind`."""
    cls = logging.Logger
    _native.note_bound_fields()
    with _planning.lock:
        if (cls, "makeRecord") in _stock_classes.replaced or not _stock_classes.is_stock(cls, "makeRecord"):
            return
        stock = cls.makeRecord
        fields = _bound_fields.fields

        def makeRecord(self: logging.Logger, *args: Any, **kwargs: Any) -> logging.LogRecord:
            record = stock(self, *args, **kwargs)
            bound = fields.get()
            if bound:
                attributes = record.__dict__
                for name, value in bound.items():
                    attributes.setdefault(name, value)
            return record

        makeRecord.__doc__ = stock.__doc__
        makeRecord.__qualname__ = stock.__qualname__
        _stock_classes.replaced[cls, "makeRecord"] = (makeRecord, stock)
        cls.makeRecord = makeRecord  # type: ignore[method-assign]
        _native.bump()
