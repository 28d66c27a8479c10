"""`logspool.gunicorn.Logger` writes the access lines that gunicorn's own `Logger` writes."""

import base64
import http.client
import importlib.util
import re
import signal
import socket

import pytest

from suite import programs
from suite.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="needs gunicorn"),
]

SECONDS = 120


@pytest.mark.skipif(importlib.util.find_spec("hypothesis") is None, reason="needs hypothesis")
def test_lines_and_exceptions_equal_those_of_gunicorn_for_any_request(run_program):
    outcome, _ = run_program(
        "from libraries import gunicorn_requests\ngunicorn_requests.main()\n",
        side=programs.INSTALLED,
        deadline_seconds=SECONDS * 3,
    )

    assert outcome.status == 0, outcome.err.decode()
    assert outcome.out == b"same\n"


SET_UP = """\
import logging, sys, datetime
from pathlib import Path
from types import SimpleNamespace
from gunicorn import config, glogging
import logspool, logspool.gunicorn as ours

cfg = config.Config()
cfg.set("accesslog", "access.log")
request = SimpleNamespace(headers=[("HOST", "a")])
response = SimpleNamespace(status="200 OK", sent=5, headers=[("X", "1")])
environ = {"REQUEST_METHOD": "GET", "RAW_URI": "/a", "SERVER_PROTOCOL": "HTTP/1.1"}
asked = response, request, environ, datetime.timedelta(seconds=2, microseconds=3)

def lines():
    logspool.flush()
    return Path("access.log").read_text().splitlines()

def is_native(log):
    return ours._write(log, *asked)
"""

CASES = {
    "plain": """
log = ours.Logger(cfg)
assert is_native(log)
cfg.set("access_log_format", "%(s)s %({host}i)s %({x}o)s %(L)s")
log.access(*asked)
assert lines()[1:] == ["200 a 1 2.000003"], lines()
assert logspool.stats().loggers["gunicorn.access"].reason == ""
""",
    "atoms_of_a_subclass": """
class Own(ours.Logger):
    def atoms(self, *values):
        return {**super().atoms(*values), "h": "own"}

cfg.set("access_log_format", "%(h)s")
log = Own(cfg)
assert not is_native(log)
log.access(*asked)
assert lines() == ["own"]
assert logspool.stats().loggers["gunicorn.access"].reason == "atoms of gunicorn's Logger is not its own"
""",
    "now_of_the_instance": """
cfg.set("access_log_format", "%(t)s")
log = ours.Logger(cfg)
assert is_native(log)
log.now = lambda: "now"
log.access(*asked)
assert lines()[1:] == ["now"]
""",
    "patched_class": """
cfg.set("access_log_format", "%(h)s")
log = ours.Logger(cfg)
assert is_native(log)
glogging.SafeAtoms.__getitem__ = lambda self, key: "patched"
log.access(*asked)
glogging.Logger.access = lambda self, *values: self.access_log.info("whole")
log.access(*asked)
assert lines()[1:] == ["patched", "whole"], lines()
""",
    "filter_and_formatter_see_template_and_arguments": """
cfg.set("access_log_format", "%(s)s")
log = ours.Logger(cfg)
assert is_native(log)
seen = []
log.access_log.addFilter(lambda record: seen.append((record.msg, type(record.args), record.funcName)) or True)
assert not is_native(log)
log.access(*asked)
assert seen == [("%(s)s", glogging.SafeAtoms, "access")], seen
log.access_log.filters.clear()
log.access_log.handlers[0].setFormatter(logging.Formatter("%(filename)s %(funcName)s %(message)s"))
log.access(*asked)
assert lines()[2:] == ["glogging.py access 200"], lines()
""",
    "no_access_log": """
cfg.set("accesslog", None)
log = ours.Logger(cfg)
assert not is_native(log)
log.access(*asked)
assert not Path("access.log").exists()
""",
    "dict_config": """
cfg.set("accesslog", None)
cfg.set("access_log_format", "%(s)s")
cfg.set("logconfig_dict", {
    "formatters": {"generic": {"format": "dict %(message)s"}},
    "handlers": {"console": {"class": "logging.FileHandler", "filename": "access.log", "formatter": "generic"},
                 "error_console": {"class": "logging.FileHandler", "filename": "e.log", "formatter": "generic"}},
})
log = ours.Logger(cfg)
assert is_native(log)
log.access(*asked)
# gunicorn gives the root logger the same handler.
assert lines() == ["dict 200"] * 4, lines()
""",
    "level_and_uninstall": """
cfg.set("access_log_format", "%(s)s")
log = ours.Logger(cfg)
log.access_log.setLevel(logging.WARNING)
log.access(*asked)
log.access_log.setLevel(logging.INFO)
log.access(*asked)
logspool.uninstall()
assert not is_native(log)
log.access(*asked)
logspool.install()
assert is_native(log)
assert lines() == ["200"] * 3, lines()
""",
    "unknown_release": """
import gunicorn
gunicorn.__version__ = "99.0"
log = ours.Logger(cfg)
assert not is_native(log)
log.access(*asked)
path = logspool.stats().loggers["gunicorn.access"]
assert path.reason == (
    "gunicorn 99.0 is not known to this release of logspool: its own code makes the access lines"), path.reason
assert "release of logspool" in path.advice, path.advice
assert len(lines()) == 1
""",
    "reopen": """
cfg.set("access_log_format", "%(s)s")
log = ours.Logger(cfg)
log.access(*asked)
Path("access.log").rename("old.log")
log.access(*asked)
log.reopen_files()
log.access(*asked)
assert lines() == ["200"] and Path("old.log").read_text() == "200\\n" * 2
""",
}


@pytest.mark.parametrize("name", CASES)
def test_gunicorn_formats_the_line_itself_after_any_change(run_program, name):
    outcome, _ = run_program(SET_UP + CASES[name], side=programs.INSTALLED, deadline_seconds=SECONDS)

    assert outcome.status == 0, outcome.err.decode()


APP = """\
def app(environ, start_response):
    body = environ["PATH_INFO"].encode()
    start_response("200 OK" if len(body) < 9 else "404 Not Found", [("Content-Type", "text/plain"), ("X-Own", 'a"b')])
    return [body]
"""

FORMAT = (
    '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s %(B)s "%(f)s" "%(a)s" %(q)s %(U)s %(T)s '
    "%({x-asked}i)s %({x-own}o)s %({wsgi.url_scheme}e)s %({none}i)s"
)


def _serve(folder, queue_dir, side, *logger_class):
    """Run a server, send requests, reopen its log in between, and return the lines of both files."""
    folder.mkdir()
    (folder / "shop.py").write_text(APP)
    log = folder / "access.log"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        options = ["--bind", f"fd://{listener.fileno()}", "--access-logfile", str(log), "--access-logformat", FORMAT]
        options += ["--error-logfile", str(folder / "error.log"), "--pid", str(folder / "pid"), *logger_class]
        server = programs.start(
            ["-m", "gunicorn", *options, "shop:app"],
            env=programs.environment(side, queue_dir),
            folder=folder,
            pass_fds=[listener.fileno()],
        )
        with programs.ended(server):
            for number in range(3):
                _ask(port, number)
            until(lambda: log.read_bytes().count(b"\n") == 3, SECONDS, "the lines")
            log.rename(folder / "old.log")
            server.send_signal(signal.SIGUSR1)
            until(log.exists, SECONDS, "the new file")
            # The worker reopens the log after the parent.
            until(lambda: _ask(port, 3) or log.read_bytes(), SECONDS, "a line in the new file")
            _ask(port, 4)
            server.send_signal(signal.SIGTERM)
            until(lambda: server.poll() is not None, SECONDS, "the end of the server")
    found = (folder / "old.log").read_bytes() + log.read_bytes()
    errors = (folder / "error.log").read_bytes()
    return re.sub(rb"\[\d\d/\w+/[^]]*\]", b"[time]", found), errors


def _ask(port, number):
    """Send a request that depends on its number."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    user = base64.b64encode(f"user{number}:secret".encode()).decode()
    fields = {"X-Asked": f'q"{number}', "Referer": "http://a/", "User-Agent": 'test "1"'}
    if number % 2:
        fields["Authorization"] = f"Basic {user}"
    connection.request("GET", f"/{'x' * 4 * number}?n={number}", headers=fields)
    connection.getresponse().read()
    connection.close()


def test_a_server_writes_the_same_access_log_and_reopens_it(tmp_path, queue_dir):
    stock, _ = _serve(tmp_path / "stock", queue_dir, programs.STOCK)
    own, errors = _serve(tmp_path / "own", queue_dir, programs.INSTALLED, "--logger-class", "logspool.gunicorn.Logger")

    # The number of requests until the worker has reopened its file differs.
    assert set(stock.splitlines()) == set(own.splitlines())
    assert own.splitlines()[:3] == stock.splitlines()[:3]
    assert b"Traceback" not in errors
