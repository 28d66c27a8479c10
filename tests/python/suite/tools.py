"""Programs of other projects that tests use."""

import os
from typing import NoReturn

import pytest


def missing(why: str) -> NoReturn:
    """Skip the test because a program is missing; fail it if all are required, as in CI."""
    if os.environ.get("LOGSPOOL_TOOLS") == "required":
        pytest.fail(f"LOGSPOOL_TOOLS=required: {why}")
    pytest.skip(why)
