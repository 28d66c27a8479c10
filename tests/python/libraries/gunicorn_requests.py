"""Logs requests of hypothesis with `logspool.gunicorn.Logger`; compares its lines with those of gunicorn's own code.

Runs in a process of its own: `main` installs logspool.
"""

import logging
import os
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

from gunicorn import glogging
from gunicorn.config import Config
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logspool
import logspool.gunicorn as ours

EXAMPLES = int(os.environ.get("LOGSPOOL_EXAMPLES", "4000")) // 2
TIME = re.compile(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\]")

texts = st.one_of(st.sampled_from(['say "x"', '"', "a b", "", "-", "é", "10%", "\\"]), st.text(max_size=8))
plain_values = st.one_of(texts, texts, texts, st.integers(-(2**40), 2**40), st.none())
values = st.integers(0, 19).flatmap(
    lambda number: plain_values if number else st.sampled_from([2**70, 1.5, True, b"bytes", ()])
)
names = st.integers(0, 29).flatmap(
    lambda number: st.sampled_from(["Host", "X-A", "x-a", "Accept", "", "{x}", "}i"] if number else ["X-\u212a", "é"])
)
headers = st.lists(st.tuples(names, values), max_size=4)
authorizations = st.sampled_from(
    [
        "Basic YTpi",
        "basic  YTpi ",
        "Basic",
        "Basic ",
        "Bearer x",
        "",
        "BASIC OmI=",
        "Basic w6k6eA==",
        "Basic %",
        "Basic /w==",
    ]
)
letters = ["h", "l", "u", "t", "r", "s", "m", "U", "q", "H", "b", "B", "f", "a", "T", "D", "M", "L", "p", "x", "", "hh"]
named = [f"{{{name}}}{end}" for name in ("Host", "x-a", "X-k", "", "missing", "wsgi.name", "RAW_URI") for end in "ioex"]
keys = st.sampled_from([*letters, *named, "{", "{x", "{é}i", "a(b)"])
plain = st.one_of(
    keys.map("%({})s".format),
    keys.map("%({})s".format),
    st.sampled_from(['"', " ", "%%", "é", "-"]),
    st.text(max_size=3),
)
odd = st.sampled_from(["%(h)5s", "%(D)d", "%s", "%(T)r", "%(s)d", "%", "%(h"])
formats = st.one_of(
    st.just(Config().access_log_format),
    st.lists(plain, max_size=8).map("".join),
    st.lists(st.one_of(plain, plain, odd), max_size=5).map("".join),
)


@st.composite
def requests(draw):
    """Draw arguments as gunicorn passes them to `access`."""
    environ = {"REQUEST_METHOD": draw(texts), "RAW_URI": draw(texts), "SERVER_PROTOCOL": "HTTP/1.1"}
    optional = ["REMOTE_ADDR", "PATH_INFO", "QUERY_STRING", "HTTP_REFERER", "HTTP_USER_AGENT", "wsgi.name", "Wsgi.Name"]
    for name in optional:
        if draw(st.booleans()):
            environ[name] = draw(values)
    if draw(st.booleans()):
        environ["HTTP_AUTHORIZATION"] = draw(authorizations)
    if draw(st.integers(0, 15)) == 0:
        del environ[draw(st.sampled_from(["REQUEST_METHOD", "RAW_URI", "SERVER_PROTOCOL"]))]
    if draw(st.integers(0, 15)) == 0:
        environ[draw(st.sampled_from([5, "é", "REMOTE_ADDR"]))] = draw(st.sampled_from([(), b"x", 5]))
    usual = draw(st.integers(0, 9)) > 0
    status = draw(
        st.sampled_from(["200 OK", "404", " 500\tx", 204, 'a"b c'] if usual else ["", "2\u00a00", True, None])
    )
    response = SimpleNamespace(status=status, headers=draw(headers), sent=draw(st.sampled_from([0, 1234, None])))
    if draw(st.integers(0, 19)) == 0:
        response.sent = "7"
    if draw(st.integers(0, 19)) == 0:
        response.headers = dict(response.headers)
    request = SimpleNamespace(headers=draw(headers))
    if draw(st.integers(0, 19)) == 0:
        request = draw(st.sampled_from([request.headers, dict(request.headers), SimpleNamespace(headers=[("x",)])]))
    days, seconds, micros = draw(st.tuples(st.integers(-1, 1), st.integers(0, 90000), st.integers(0, 999999)))
    return response, request, environ, timedelta(days=days, seconds=seconds, microseconds=micros)


def main(path: str = "access.log") -> None:
    """Log the requests, then compare the file with the lines that gunicorn's own code makes."""
    config = Config()
    config.set("accesslog", path)
    config.set("errorlog", "error.log")
    config.set("loglevel", "debug")
    log = ours.Logger(config)
    expected: list[str] = []
    taken = {True: 0, False: 0}
    write = ours._write

    def counted(*values):
        native = write(*values)
        taken[native] += 1
        return native

    ours._write = counted

    @given(format=formats, request=requests())
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    def check(format, request):
        config.set("access_log_format", format)
        format = config.access_log_format
        raised = wanted = None
        try:
            atoms = glogging.SafeAtoms(glogging.Logger.atoms(log, *request))
        except Exception as error:
            raised = error
        else:
            try:
                wanted = format % atoms
            except Exception:
                wanted = None
        try:
            log.access(*request)
        except Exception as error:
            assert raised is not None and type(error) is type(raised) and str(error) == str(raised), (error, raised)
        else:
            assert raised is None, raised
            if wanted is not None:
                expected.append(wanted + "\n")

    logging.raiseExceptions = False
    check()
    logspool.flush()
    found = TIME.sub("[time]", Path(path).read_bytes().decode())
    wanted_text = TIME.sub("[time]", "".join(expected))
    for line, want in zip(found.split("\n"), wanted_text.split("\n")):
        assert line == want, (line, want)
    assert found == wanted_text
    assert taken[True] > EXAMPLES // 4 and taken[False] > EXAMPLES // 50, taken
    print("same")
