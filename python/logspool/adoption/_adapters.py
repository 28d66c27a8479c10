"""Tells which classes of logger adapters have the stock methods, so that native code can do what these do.

Pipeline stage: *call site*, its slow part (see ARCHITECTURE.md).
"""

from __future__ import annotations

import logging

from logspool.base import _stock_classes

#: Methods of an adapter that a logging call runs.
_CALLED = ("process", "log", "isEnabledFor", "__getattribute__", "__getattr__")

#: Instance attributes that a logging call reads; a property of such a name could return any value.
_READ = ("logger", "extra", "merge_extra")


def is_plain(cls: type) -> bool:
    """Return whether adapters of this class have the stock methods. Native code keeps the answer until the class
    changes.
    """
    changed = _stock_classes.changed_method(cls, logging.LoggerAdapter, _CALLED)
    return changed is None and _stock_classes.defined_on_class(cls, _READ) is None
