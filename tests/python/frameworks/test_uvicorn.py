"""The programs of the page on FastAPI and uvicorn write each record once: the application's and the server's."""

import importlib.util

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")), reason="needs FastAPI, uvicorn"
    ),
]

ORDERS = range(40)

#: For each command: the number of workers, and the files with the lines of the server.
COMMANDS = {
    "python -m logspool run -m uvicorn shop:app --port 8000": (1, ("out.txt", "err.txt")),
    "uvicorn shop:app --port 8000 --log-config logging.json": (1, ("server.log",)),
    "uvicorn shop:app --port 8000 --workers 4 --log-config logging.json": (4, ("server.log",)),
    "python serve.py": (1, ("server.log",)),
}


@pytest.fixture
def recipe(tmp_path, queue_dir):
    return recipes.Recipe("uvicorn.md", tmp_path, queue_dir)


def _check_server(text, workers, requests):
    """Check that each line of the server is there once for each worker or request."""
    expected = {
        "Started server process": workers,
        "Waiting for application startup": workers,
        "Application startup complete": workers,
        "Application shutdown complete": workers,
        "Finished server process": workers,
        "Uvicorn running on": 1,
    }
    assert expected == {line: text.count(line) for line in expected}, text
    assert list(requests) == recipes.numbers(text, r'"GET /orders/(\d+) HTTP/1.1" 200'), text


@pytest.mark.parametrize("command", COMMANDS)
def test_each_record_is_written_once(recipe, command):
    workers, files = COMMANDS[command]
    recipe.run("python -m logspool preset")
    with recipe.serving(command) as server:
        server.wait_for("shop.log", "shop opened", workers)
        server.ask_all(ORDERS)
        queues = server.queues()
        server.stop()
    own = server.text("shop.log")

    assert list(ORDERS) == recipes.numbers(own)
    assert (workers, workers) == (own.count("shop opened\n"), own.count("shop closed\n"))
    assert queues >= workers
    assert server.queues() == 0
    _check_server("".join(map(server.text, files)), workers, ORDERS)


def test_a_reload_loses_and_duplicates_nothing(recipe):
    recipe.run("python -m logspool preset")
    with recipe.serving("uvicorn shop:app --port 8000 --reload") as server:
        server.wait_for("shop.log", "shop opened")
        server.ask_all(range(20))
        recipe.change("shop.py", "order %d", "new order %d")
        server.wait_for("shop.log", "shop opened", 2)
        server.ask_all(range(20, 40))
        server.stop()
    own = server.text("shop.log")

    assert list(range(20)) == recipes.numbers(own, r"shop order (\d+)$")
    assert list(range(20, 40)) == recipes.numbers(own, r"shop new order (\d+)$")
    assert (2, 2) == (own.count("shop opened\n"), own.count("shop closed\n"))
    _check_server(server.text("server.log"), 2, range(40))
    assert 1 == server.text("server.log").count("Reloading..."), server.text("server.log")
