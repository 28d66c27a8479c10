"""Programs of others that tests use, made ready on first use."""

from collections.abc import Callable
from typing import TypeVar

import service_tools
from suite import tools

Tool = TypeVar("Tool")


def tool(find: "Callable[[], Tool]") -> Tool:
    """Return what a function of `service_tools` finds; otherwise skip the test, or fail it where all are required."""
    try:
        return find()
    except service_tools.Missing as missing:
        tools.missing(str(missing))
