"""Flask and its development server write each record once."""

import importlib.util
import signal

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("flask") is None, reason="needs Flask"),
]

ORDERS = range(30)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_each_record_is_written_once(tmp_path, queue_dir, end):
    recipe = recipes.Recipe("flask.md", tmp_path, queue_dir)
    with recipe.serving("python -m logspool run -m flask") as server:
        server.ask_all(ORDERS)
        assert [500, 500] == [server.ask(f"/broken/{number}")[0] for number in (1, 2)]
        assert server.queues() == 1
        server.stop(end)
    text = server.text("shop.log")

    assert list(ORDERS) == recipes.numbers(text, r"^shop INFO order (\d+)$")
    assert list(ORDERS) == recipes.numbers(text, r'^werkzeug INFO .*"GET /orders/(\d+) HTTP/1.1" 200')
    assert [1, 2] == recipes.numbers(text, r"^shop ERROR Exception on /broken/(\d+) \[GET\]$")
    assert [1, 2] == recipes.numbers(text, r"^RuntimeError: order (\d+) is broken$")
    assert 1 == text.count("Press CTRL+C to quit")
