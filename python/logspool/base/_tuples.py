"""`NamedTuple` as in `typing`, without the import of `typing`, which takes longer than importing all of logspool."""

from __future__ import annotations

from collections import namedtuple

# Type checkers recognise a variable of this name without `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Named(type):
        """Makes a named tuple of the annotations of a class. The class has no methods."""

        def __new__(meta, name, bases, members):
            if not bases:
                return super().__new__(meta, name, bases, members)
            fields = members["__annotations__"]
            defaults = [members[field] for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members["__module__"])
            made.__doc__ = members.get("__doc__")
            return made

    class NamedTuple(metaclass=_Named):
        """The base class of named tuples. Its subclasses use `from __future__ import annotations`."""
