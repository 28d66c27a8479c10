"""A test without its program is skipped, but never in CI."""

import pytest
from tools import tool

import service_tools


def missing():
    raise service_tools.Missing("there is no program chromium on the PATH")


@pytest.mark.parametrize("setting, outcome", [("required", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_program_skips_a_test_or_fails_it_where_all_are_required(monkeypatch, setting, outcome):
    monkeypatch.setenv("LOGSPOOL_TOOLS", setting)

    assert "found" == tool(lambda: "found")
    with pytest.raises(outcome, match="no program chromium"):
        tool(missing)
