"""Litestar writes each record once, without its own queue and listener."""

import importlib.util

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("litestar", "uvicorn")),
        reason="needs Litestar, uvicorn",
    ),
]

ORDERS = range(30)


def test_each_record_is_written_once(tmp_path, queue_dir):
    recipe = recipes.Recipe("litestar.md", tmp_path, queue_dir)
    recipe.run("python -m logspool preset")
    with recipe.serving("uvicorn shop:app") as server:
        server.ask_all(ORDERS)
        assert 500 == server.ask("/broken/1")[0]
        assert server.queues() == 1
        server.stop()
    text, of_server = server.text("shop.log"), server.text("server.log")

    assert list(ORDERS) == recipes.numbers(text, r"^INFO - .* - shop - shop - order (\d+)$")
    assert [1] == recipes.numbers(text, r"^RuntimeError: order (\d+) is broken$")
    assert 1 == text.count("ERROR - ")
    assert list(ORDERS) == recipes.numbers(of_server, r'"GET /orders/(\d+) HTTP/1.1" 200')
    assert 1 == of_server.count("Finished server process")
    assert "" == server.text("err.txt")
