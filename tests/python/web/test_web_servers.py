"""The middlewares work with real frameworks and servers; each test is one program."""

import importlib.util

import pytest

pytestmark = pytest.mark.real

NEEDED = {
    "fastapi_with_uvicorn": ("fastapi", "uvicorn"),
    "starlette_with_hypercorn": ("starlette", "hypercorn"),
    "flask_with_werkzeug": ("flask",),
    "flask_with_gunicorn": ("flask", "gunicorn"),
    "django_with_both": ("django",),
    "opentelemetry_span": ("opentelemetry.sdk",),
}


def _is_missing(module):
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


@pytest.mark.parametrize("name", NEEDED)
def test_program(run_program, name):
    if missing := [module for module in NEEDED[name] if _is_missing(module)]:
        pytest.skip(f"needs {', '.join(missing)}")
    text = f"from web import server_programs\nserver_programs.{name}()\nprint('done')\n"

    outcome, _ = run_program(text, deadline_seconds=180)

    assert outcome.status == 0, outcome.err.decode(errors="replace")[-6000:]
    assert outcome.out.splitlines()[-1] == b"done"
