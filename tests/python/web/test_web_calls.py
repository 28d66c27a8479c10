"""The middlewares for ASGI and WSGI keep what they promise, called without a framework or a server."""

import pytest

from suite import programs, queue_folder
from web import cases

pytestmark = pytest.mark.real

MODULES = ("asgi_cases", "wsgi_cases")


@pytest.fixture(scope="module")
def run_module(tmp_path_factory):
    """Give a function that runs the cases of a module once, and returns the outcome of each."""
    done = {}

    def run(module):
        if module not in done:
            with queue_folder.private() as queue_dir:
                folder = tmp_path_factory.mktemp(module)
                done[module] = programs.run(
                    ["-c", f"from web import cases; cases.main({module!r})"],
                    env=programs.environment(programs.INSTALLED, queue_dir),
                    folder=folder,
                    deadline_seconds=120,
                )
        return cases.outcomes(done[module])

    return run


@pytest.mark.xdist_group("web-calls")
@pytest.mark.parametrize("module, name", [(module, name) for module in MODULES for name in cases.names(module)])
def test_case(run_module, module, name):
    outcome = run_module(module)[name]

    assert outcome == "ok", outcome
