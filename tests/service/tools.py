"""Programs of others that tests use, made ready on first use."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

import service_tools

Tool = TypeVar("Tool")


def tool(find: "Callable[[], Tool]") -> Tool:
    """Return what a function of `service_tools` finds; otherwise skip the test, or fail it where all are required."""
    try:
        return find()
    except service_tools.Missing as missing:
        if os.environ.get("LOGSPOOL_TOOLS") == "required":
            pytest.fail(f"LOGSPOOL_TOOLS=required: {missing}")
        pytest.skip(str(missing))
