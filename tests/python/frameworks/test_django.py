"""Django writes each record once: under its own server, with and without its reloader, and under uvicorn."""

import importlib.util
import os
import signal

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("django", "uvicorn")), reason="needs Django, uvicorn"
    ),
]

ORDERS = range(30)

RELOADING = "python shop.py runserver 127.0.0.1:8000"
ALONE = "python shop.py runserver 127.0.0.1:8000 --noreload"
ASGI = "uvicorn shop:application"


@pytest.mark.parametrize("start", [RELOADING, ALONE, ASGI])
def test_each_record_is_written_once(tmp_path, queue_dir, start):
    recipe = recipes.Recipe("django.md", tmp_path, queue_dir)
    with recipe.serving(start) as server:
        server.ask_all(ORDERS)
        assert 500 == server.ask("/broken/1")[0]
        assert server.queues() >= 1
        if start == RELOADING:
            os.killpg(server.process.pid, signal.SIGINT)
            server.process.wait(recipes.SECONDS)
        else:
            server.stop()
    text = server.text("shop.log")

    assert list(ORDERS) == recipes.numbers(text, r"^INFO .* shop order (\d+)$")
    assert [1] == recipes.numbers(text, r"^ERROR .* django.request Internal Server Error: /broken/(\d+)$")
    assert [1] == recipes.numbers(text, r"^RuntimeError: order (\d+) is broken$")
    own = recipes.numbers(text, r'^\[.*\] "GET /orders/(\d+) HTTP/1.1" 200')
    assert own == ([] if start == ASGI else list(ORDERS))
