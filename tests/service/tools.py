"""Programs of others that tests use, made ready on first use."""

from collections.abc import Callable
from typing import TypeVar

import service_tools
from suite import tools

Tool = TypeVar("Tool")


def tool(find: "Callable[[], Tool]") -> Tool:
    """Return the tool that `find` finds; without it skip the test, or fail where all tools are required."""
    try:
        return find()
    except service_tools.Missing as missing:
        tools.missing(str(missing))
