"""Servers and test runners that start and end workers by themselves: each record is in the file once."""

import concurrent.futures
import http.client
import importlib.util
import signal
import socket

import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

REQUESTS = 2000 if fixtures.faults_full() else 150
#: Requests after which a worker ends, so that several generations of them are seen.
EACH = 20
SECONDS = 60

APP = """\
import logging, os
from suite import side

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")

def app(environ, start_response):
    for number in range(3):
        log.info("%s %d end", environ["QUERY_STRING"], number)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % os.getpid()]
"""


def _ask(port: int, number: int) -> int:
    """Make a request on a connection of its own; return the process that answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", f"/?r{number}")
        answer = connection.getresponse()
        assert answer.status == 200
        return int(answer.read())
    finally:
        connection.close()


@pytest.mark.real
@pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="needs gunicorn")
@pytest.mark.parametrize(
    ("kind", "load"),
    [
        ("sync", "preloaded"),
        ("gthread", "by each worker"),
        pytest.param("gthread", "preloaded", marks=pytest.mark.full),
        pytest.param("sync", "by each worker", marks=pytest.mark.full),
    ],
)
def test_requests_to_gunicorn_whose_workers_are_recycled_are_logged_once(tmp_path, queue_dir, kind, load):
    (tmp_path / "shop.py").write_text(APP)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Gunicorn takes a socket that is open already, as from systemd.
        port = listener.getsockname()[1]
        options = ["--bind", f"fd://{listener.fileno()}", "--workers", "2", "--worker-class", kind, "--threads", "2"]
        options += ["--max-requests", str(EACH), "--no-control-socket"]
        # A worker that is just starting misses the signal to end, so the server waits less for it than by default.
        options += ["--graceful-timeout", "3"]
        if load == "preloaded":
            options.append("--preload")
        with (tmp_path / "stderr").open("wb") as errors:
            server = programs.start(
                ["-m", "gunicorn", *options, "shop:app"],
                env=programs.environment(programs.INSTALLED, queue_dir),
                folder=tmp_path,
                pass_fds=[listener.fileno()],
                stderr=errors,
            )
        with programs.ended(server):
            with concurrent.futures.ThreadPoolExecutor(4) as callers:
                answered_by = list(callers.map(lambda number: _ask(port, number), range(REQUESTS)))
            server.send_signal(signal.SIGTERM)
            until(lambda: server.poll() is not None, SECONDS, "the end of the server")
            status = server.returncode
    # A worker that is ending by itself when the server ends it has CPython's default for SIGTERM again, and may leave
    # its segment.
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-m", "logspool", "recover"], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    found = lines.count(tmp_path / "app.log")
    assert status == 0, (tmp_path / "stderr").read_text()
    assert len(set(answered_by)) > 2, "no worker was recycled"
    assert found.numbers == {f"r{number}": [0, 1, 2] for number in range(REQUESTS)}
    assert found.other == []
    assert queue_folder.left_in(queue_dir) == []


CONFTEST = """\
import logging
from suite import side

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s", force=True)
side.install()
"""

TESTS = """\
import logging, os
import pytest

@pytest.mark.parametrize("number", range(200))
def test_that_logs(number):
    for line in range(5):
        logging.getLogger("app").info("test%d %d end", number, line)
    logging.getLogger("app").info("process %d", os.getpid())
"""


def test_tests_that_two_workers_of_xdist_run_log_to_one_file(tmp_path, queue_dir):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    outcome = programs.run(
        ["-m", "pytest", "-q", "-p", "xdist", "-n", "2", "-p", "no:cacheprovider"],
        env=programs.environment(programs.INSTALLED, queue_dir, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        folder=tmp_path,
        deadline_seconds=SECONDS,
    )

    found = lines.count(tmp_path / "app.log")
    assert b"200 passed" in outcome.expect_success().out
    assert found.numbers == {f"test{number}": list(range(5)) for number in range(200)}
    assert len(found.other) == 200
    assert len(set(found.other)) == 2, "both workers ran tests"
    assert queue_folder.left_in(queue_dir) == []
