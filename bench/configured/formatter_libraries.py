"""Formatters of libraries and web servers."""

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from case import Session
from cases import customised
from cases.stock import file_handler, with_handler
from configured.configuration import Configuration

ACCESS_CALL = """log.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:5000", "GET", f"/users/{name}/{i}", "1.1", 200)"""
SERVER_CALL = """log.info('"%s" %s %s', f"GET /users/{name}/{i} HTTP/1.1", "200", "1234")"""


def _formatted(make: Callable[[], logging.Formatter]) -> Callable[[Path], Session]:
    return with_handler(lambda path: file_handler(path, make()))


def _json_logger(path: Path) -> logging.Handler:
    makers = {name: make for name, _, make, _ in customised.KINDS}
    return makers["json-logger"](path)


def _uvicorn() -> logging.Formatter:
    from uvicorn.logging import DefaultFormatter

    return DefaultFormatter("%(levelprefix)s %(message)s", use_colors=None)


def _uvicorn_access() -> logging.Formatter:
    from uvicorn.logging import AccessFormatter

    return AccessFormatter('%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s')


def _colorlog() -> logging.Formatter:
    import colorlog

    return colorlog.ColoredFormatter("%(asctime)s %(log_color)s%(levelname)-8s%(reset)s %(blue)s%(message)s")


def _ecs() -> logging.Formatter:
    import ecs_logging

    return ecs_logging.StdlibFormatter()


def _django() -> logging.Formatter:
    from django.utils.log import ServerFormatter

    return ServerFormatter("[{server_time}] {message}", style="{")


def _open_gunicorn(path: Path) -> Session:
    from gunicorn.glogging import Logger

    return _access_log(path, Logger)


def _open_gunicorn_by_logspool(path: Path) -> Session:
    from logspool.gunicorn import Logger

    return _access_log(path, Logger)


def _open_gunicorn_errors(path: Path) -> Session:
    from gunicorn.config import Config
    from gunicorn.glogging import Logger

    config = Config()
    config.set("errorlog", str(path))
    return Session(Logger(config), logging.shutdown)


def _access_log(path: Path, make: Callable[[Any], Any]) -> Session:
    from gunicorn.config import Config

    config = Config()
    config.set("accesslog", str(path))
    log = make(config)
    request = SimpleNamespace(headers=[("HOST", "example.org"), ("USER-AGENT", "curl/8.5.0")])
    response = SimpleNamespace(status="200 OK", sent=1234, headers=[("Content-Type", "text/html")])
    environ = {"REMOTE_ADDR": "127.0.0.1", "REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1"}
    environ["HTTP_USER_AGENT"] = "curl/8.5.0"
    # gunicorn has made the duration before it calls its logger.
    duration = timedelta(milliseconds=0.25)

    def access(name: str, number: int) -> None:
        environ["RAW_URI"] = f"/users/{name}/{number}"
        log.access(response, request, environ, duration)

    return Session(access, lambda: logging.shutdown())


CONFIGURATIONS = [
    Configuration(
        "python-json-logger", "python-json-logger", with_handler(_json_logger), needs=("pythonjsonlogger.json",)
    ),
    Configuration("uvicorn", "uvicorn's DefaultFormatter", _formatted(_uvicorn), needs=("uvicorn",)),
    Configuration(
        "uvicorn-access",
        "uvicorn's AccessFormatter",
        _formatted(_uvicorn_access),
        call=ACCESS_CALL,
        needs=("uvicorn",),
    ),
    Configuration("colorlog", "colorlog", _formatted(_colorlog), needs=("colorlog",)),
    Configuration("ecs", "ecs-logging", _formatted(_ecs), needs=("ecs_logging",)),
    Configuration("django", "Django's ServerFormatter", _formatted(_django), call=SERVER_CALL, needs=("django",)),
    Configuration(
        "gunicorn",
        "gunicorn's access line, by `logspool.gunicorn.Logger`",
        _open_gunicorn,
        call="log(name, i)",
        needs=("gunicorn",),
        open_own=_open_gunicorn_by_logspool,
    ),
    Configuration(
        "gunicorn-stock-class", "gunicorn's access line", _open_gunicorn, call="log(name, i)", needs=("gunicorn",)
    ),
    Configuration(
        "gunicorn-error",
        "gunicorn's error log",
        _open_gunicorn_errors,
        needs=("gunicorn",),
        moving=(re.compile(rb"(?<=\] \[)\d+(?=\] )"),),
    ),
]
