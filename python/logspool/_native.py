"""Replaces the native module if it was not built for this Python: an extension module of this name comes first.

`_native.pyi` has the types of both. The stand-in has only what the package calls where nothing is accelerated.
"""

from logspool.pure._answers import *  # noqa: F403
from logspool.pure._formats import entry, json_object
from logspool.pure._guard import Guard
from logspool.pure._lines import LineLogger
from logspool.pure._missing import why
from logspool.pure._options import (
    __version__,
    check_options,
    check_sink,
    counter_names,
    install_options,
    service_address,
    sink_table,
)
from logspool.pure._records import RecordQueue, ReservedPlace, UnmadeRecord

#: Why nothing is accelerated. The native module has no such name.
without_core = why()

__all__ = [
    "Guard",
    "LineLogger",
    "RecordQueue",
    "ReservedPlace",
    "UnmadeRecord",
    "__version__",
    "check_options",
    "check_sink",
    "counter_names",
    "entry",
    "install_options",
    "json_object",
    "service_address",
    "sink_table",
    "without_core",
]
