"""Every scenario writes the same bytes with stock logging and with logspool installed, on the path it states.

`LOGSPOOL_KINDS=all` runs each row of the invalidation table on all its kinds of handler; by default it runs on two.
"""

import importlib.util
import os

import pytest

from differential import pairs
from differential.scenarios import all_scenarios
from suite import package

IS_SHORT = os.environ.get("LOGSPOOL_KINDS") != "all"
SCENARIOS = [found for found in all_scenarios().values() if found.short or not IS_SHORT]


def _parameters(surprises_differ=False):
    for found in SCENARIOS:
        marks = [pytest.mark.xdist_group(pairs.group_of(found))]
        for module in found.requires:
            if importlib.util.find_spec(module) is None:
                marks.append(pytest.mark.skip(reason=f"needs {module}"))
        if surprises_differ and found.surprise:
            marks.append(pytest.mark.xfail(reason=found.surprise, strict=True))
        yield pytest.param(found, id=found.id, marks=marks)


@pytest.fixture(scope="session")
def played(request):
    """Give the pairs of all scenarios that this run selected."""
    wanted = {
        item.callspec.params["scenario"].id: item.callspec.params["scenario"]
        for item in request.session.items
        if "scenario" in getattr(getattr(item, "callspec", None), "params", {}) and not item.get_closest_marker("skip")
    }
    return pairs.Pairs(wanted.values())


@pytest.mark.parametrize("scenario", list(_parameters(surprises_differ=package.is_real())))
def test_output_equals_stock_logging(scenario, played):
    stock, installed = played.of(scenario)

    difference = pairs.complaint(stock, installed)
    if difference:
        pytest.fail(difference, pytrace=False)


# The stand-in has no paths, so this test does not run with it.
@pytest.mark.parametrize("scenario", list(_parameters()) if package.is_real() else [])
def test_calls_take_the_stated_path(scenario, played):
    _, installed = played.of(scenario)

    if installed.complaints:
        pytest.fail("\n".join(installed.complaints), pytrace=False)
