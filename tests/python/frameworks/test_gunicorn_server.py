"""gunicorn writes each record of the application and of itself once, however its workers end or restart."""

import importlib.util
import re
import signal

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="needs gunicorn"),
]

ORDERS = range(40)

BY_CLASS = "gunicorn shop:app --bind 127.0.0.1:8000 --workers 2 --logger-class"
BY_RUN = "python -m logspool run -- gunicorn"
BY_PRESET = "gunicorn shop:app --bind 127.0.0.1:8000 --workers 2 --log-config-json"
BY_UVICORN = "gunicorn shop_asgi:app"


@pytest.fixture
def recipe(tmp_path, queue_dir):
    return recipes.Recipe("gunicorn.md", tmp_path, queue_dir)


def _check_error_log(text, workers):
    """Check gunicorn's own lines; `workers` is the number of workers that it started in all."""
    expected = {
        "Starting gunicorn": 1,
        "Listening at": 1,
        "Booting worker with pid": workers,
        "Shutting down: Master": 1,
    }
    assert expected == {line: text.count(line) for line in expected}, text
    assert "Traceback" not in text


def _check_requests(server, orders, access="access.log"):
    """Check that the application and the access log have each request once."""
    assert list(orders) == recipes.numbers(server.text("shop.log"))
    assert list(orders) == recipes.numbers(server.text(access), r'"GET /orders/(\d+) HTTP/1.1" 200')


@pytest.mark.parametrize(
    ("start", "options"),
    [
        (BY_CLASS, ""),
        (BY_CLASS, "--worker-class gthread --threads 4"),
        (BY_CLASS, "--preload"),
        (BY_RUN, ""),
    ],
)
def test_each_record_is_written_once(recipe, start, options):
    with recipe.serving(start, options=options) as server:
        server.wait_for("error.log", "Booting worker", 2)
        server.ask_all(ORDERS)
        queues = server.queues()
        assert server.stop() == 0

    assert queues >= 2
    assert server.queues() == 0
    _check_requests(server, ORDERS)
    _check_error_log(server.text("error.log"), 2)


def test_the_preset_writes_each_record_once(recipe):
    recipe.run("python -m logspool preset")
    with recipe.serving(BY_PRESET) as server:
        server.wait_for("gunicorn.log", "Booting worker", 2)
        server.ask_all(ORDERS)
        assert server.stop() == 0

    _check_requests(server, ORDERS, "gunicorn.log")
    _check_error_log(server.text("gunicorn.log"), 2)
    assert ("", "") == (server.text("out.txt"), server.text("err.txt"))


@pytest.mark.skipif(importlib.util.find_spec("uvicorn_worker") is None, reason="needs uvicorn-worker")
def test_a_worker_of_uvicorn_writes_each_record_once(recipe):
    with recipe.serving(BY_UVICORN) as server:
        server.wait_for("error.log", "Application startup complete|ASGI 'lifespan' protocol appears unsupported")
        server.ask_all(ORDERS)
        assert server.stop() == 0

    _check_requests(server, ORDERS)
    text = server.text("error.log")
    _check_error_log(text, 1)
    expected = {"Started server process": 1, "Finished server process": 1}
    assert expected == {line: text.count(line) for line in expected}, text


@pytest.mark.parametrize("options", ["", "--worker-class gthread --threads 2"])
def test_recycled_workers_lose_and_duplicate_nothing(recipe, options):
    with recipe.serving(BY_CLASS, options=f"{options} --max-requests 5") as server:
        server.ask_all(ORDERS)
        server.wait_for("error.log", "Autorestarting worker", 4)
        assert server.stop() == 0
    text = server.text("error.log")

    _check_requests(server, ORDERS)
    _check_error_log(text, text.count("Booting worker"))
    assert text.count("Booting worker") > 4
    assert len(set(re.findall(r"^(\d+) shop", server.text("shop.log"), re.MULTILINE))) > 4


def test_usr1_reopens_all_files(recipe):
    names = ("shop.log", "access.log", "error.log")
    with recipe.serving(BY_CLASS) as server:
        server.wait_for("error.log", "Booting worker", 2)
        server.ask_all(range(10))
        for name in names:
            (recipe.folder / name).rename(recipe.folder / f"old.{name}")
        server.process.send_signal(signal.SIGUSR1)
        asked = 10
        # The workers reopen their files after the master, one after the other.
        while len(set(re.findall(r"^(\d+) shop", server.text("shop.log"), re.MULTILINE))) < 2:
            assert asked < 20_000, "both workers reopen"
            server.ask_all(range(asked, asked + 4))
            asked += 4
        assert server.stop() == 0
    old, new = ("".join(server.text(start + name) for name in names) for start in ("old.", ""))

    assert list(range(asked)) == recipes.numbers(old + new, r"shop order (\d+)$")
    assert list(range(asked)) == recipes.numbers(old + new, r'"GET /orders/(\d+) HTTP/1.1" 200')
    assert set(range(10)) <= set(recipes.numbers(old))
    _check_error_log(old + new, 2)


#: Hangs, and gunicorn's first signal cannot end it.
STUCK = """
import signal
import threading

answer = app


def app(environ, start_response):
    if environ["PATH_INFO"] == "/stuck":
        log.info("order %d", 1000)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGABRT})
        threading.Event().wait(600)
    return answer(environ, start_response)
"""


def _ask_in_vain(server):
    with pytest.raises(OSError):
        server.ask("/stuck")


def test_the_records_of_a_worker_killed_after_its_timeout_are_written(recipe):
    recipe.write("shop.py", (recipe.folder / "shop.py").read_text() + STUCK)
    with recipe.serving(BY_CLASS, options="--timeout 2") as server:
        server.ask_all(range(10))
        asking = recipes.background(_ask_in_vain, server)
        server.wait_for("error.log", "was sent SIGKILL")
        server.wait_for("shop.log", "order 1000")
        asking.join(recipes.SECONDS)
        server.ask_all(range(10, 20))
        assert server.stop() == 0
    text = server.text("error.log")

    assert [*range(20), 1000] == recipes.numbers(server.text("shop.log"))
    assert 1 == text.count("WORKER TIMEOUT") == text.count("was sent SIGKILL")
    _check_error_log(text, 3)
