"""The middlewares for ASGI and WSGI, called directly, without a framework or a server."""

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


STOCK = """\
import logging, sys
from web import asgi_cases
import logspool.asgi

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(request_id)s %(route)s %(message)s")
asgi_cases._run(logspool.asgi.Middleware(asgi_cases._plain), asgi_cases._scope("/a", ("x-request-id", "r-1")))
"""


@pytest.mark.parametrize("switch", [None, "off"])
def test_stock_logging_shows_the_fields_too(run_program, switch):
    outcome, _ = run_program(STOCK, **({} if switch is None else {"LOGSPOOL": switch}))

    inside, access = outcome.expect_success().out.decode().splitlines()
    assert inside == "app r-1 /a inside"
    assert access.startswith("logspool.access r-1 /a GET /a 200 ") and access.endswith(" ms")


@pytest.mark.xdist_group("web-calls")
@pytest.mark.parametrize("module, name", [(module, name) for module in MODULES for name in cases.names(module)])
def test_case(run_module, module, name):
    outcome = run_module(module)[name]

    assert outcome == "ok", outcome
