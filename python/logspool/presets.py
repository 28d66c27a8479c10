"""Configurations of frameworks for `logging.config.dictConfig`, with logspool installed.

    uvicorn.run("shop:app", log_config=logspool.presets.uvicorn())

Each function returns a new dict. It has the loggers, streams, levels and formats that the framework has by itself,
keeps existing loggers, and writes no line twice. Its handlers install logspool when `dictConfig` makes them, so the
program needs no other line; `install()` of the program still decides about the options.
`python -m logspool preset NAME` prints the same as JSON, for frameworks that load a file.
"""

from __future__ import annotations

import logging

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any, TextIO

    _Path = str | os.PathLike[str]

__all__ = [
    "celery",
    "django",
    "file_handler",
    "gunicorn",
    "preset",
    "ray",
    "sglang",
    "stream_handler",
    "uvicorn",
    "vllm",
]


def uvicorn(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of uvicorn, for `--log-config` or `uvicorn.run(log_config=...)`.

    As with uvicorn's own, the root logger stays as the application configures it.

    Args:
        level: of uvicorn's loggers.
        file: write everything to this file instead of the console.
        json: write a JSON object per line instead of uvicorn's format.
    """
    access = '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s'
    return _dict(
        json,
        formatters={
            "default": {"()": "uvicorn.logging.DefaultFormatter", "fmt": "%(levelprefix)s %(message)s"},
            "access": {"()": "uvicorn.logging.AccessFormatter", "fmt": access},
        },
        handlers={"default": _handler("default", "stderr", file), "access": _handler("access", "stdout", file)},
        loggers={
            "uvicorn": {"handlers": ["default"], "level": level, "propagate": False},
            "uvicorn.error": {"level": level},
            "uvicorn.access": {"handlers": ["access"], "level": level, "propagate": False},
        },
    )


def gunicorn(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of gunicorn, for its setting `logconfig_dict`, or `logconfig_json` with a file.

    Access lines are written, too. With a configuration of its own, gunicorn writes each line twice, because it also
    configures the root logger; here the root logger stays as the application configures it.

    Args:
        level: of gunicorn's loggers.
        file: write everything to this file instead of the console.
        json: write a JSON object per line instead of gunicorn's format.
    """
    format = "%(asctime)s [%(process)d] [%(levelname)s] %(message)s"
    return _dict(
        json,
        formatters={
            "generic": {"format": format, "datefmt": "[%Y-%m-%d %H:%M:%S %z]"},
            "access": {"format": "%(message)s"},
        },
        handlers={
            "error_console": _handler("generic", "stderr", file),
            "console": _handler("access", "stdout", file),
        },
        loggers={
            "gunicorn.error": {"handlers": ["error_console"], "level": level, "propagate": False},
            "gunicorn.access": {"handlers": ["console"], "level": level, "propagate": False},
        },
        # gunicorn adds its own configuration of the root logger where there is none.
        root={},
    )


def vllm(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of vLLM, for a JSON file that `VLLM_LOGGING_CONFIG_PATH` names.

    Args:
        level: of vLLM's loggers.
        file: write everything to this file instead of standard output; all processes of the server append to it.
        json: write a JSON object per line instead of vLLM's format.
    """
    return _dict(
        json,
        formatters={
            "vllm": {
                "class": "vllm.logging_utils.NewLineFormatter",
                "format": "%(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s",
                "datefmt": "%m-%d %H:%M:%S",
            }
        },
        handlers={"vllm": _handler("vllm", "stdout", file)},
        loggers={"vllm": {"handlers": ["vllm"], "level": level, "propagate": False}},
    )


def sglang(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of SGLang, for a JSON file that `SGLANG_LOGGING_CONFIG_PATH` names.

    Args:
        level: of the root logger.
        file: write everything to this file instead of standard error; all processes of the server append to it.
        json: write a JSON object per line instead of SGLang's format.
    """
    return _dict(
        json,
        formatters={"sglang": {"format": "[%(asctime)s] %(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}},
        handlers={"sglang": _handler("sglang", "stderr", file)},
        root={"handlers": ["sglang"], "level": level},
    )


def ray(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return a configuration for Ray's logger `ray` and the root logger, for a `worker_process_setup_hook`.

    Args:
        level: of both loggers.
        file: write everything to this file instead of standard error.
        json: write a JSON object per line instead of Ray's format.
    """
    return _dict(
        json,
        formatters={"ray": {"format": "%(asctime)s\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s"}},
        handlers={"ray": _handler("ray", "stderr", file)},
        loggers={"ray": {"handlers": ["ray"], "level": level, "propagate": False}},
        root={"handlers": ["ray"], "level": level},
    )


def django(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of Django, for its setting `LOGGING`.

    Django's own loggers have no handler of their own on the console, so that the root logger writes their lines once,
    whether `DEBUG` is set or not. Errors are mailed to `ADMINS` as before. `runserver` keeps its format.

    Args:
        level: of the root logger and Django's loggers.
        file: write everything to this file instead of standard error.
        json: write a JSON object per line.
    """
    return _dict(
        json,
        filters={"require_debug_false": {"()": "django.utils.log.RequireDebugFalse"}},
        formatters={
            "verbose": {"format": "{levelname} {asctime} {name} {message}", "style": "{"},
            "django.server": {
                "()": "django.utils.log.ServerFormatter",
                "format": "[{server_time}] {message}",
                "style": "{",
            },
        },
        handlers={
            "console": _handler("verbose", "stderr", file),
            "django.server": _handler("django.server", "stderr", file),
            "mail_admins": {
                "class": "django.utils.log.AdminEmailHandler",
                "level": "ERROR",
                "filters": ["require_debug_false"],
            },
        },
        loggers={
            "django": {"handlers": ["mail_admins"], "level": level, "propagate": True},
            "django.server": {"handlers": ["django.server"], "level": level, "propagate": False},
        },
        root={"handlers": ["console"], "level": level},
    )


def celery(*, level: str = "INFO", file: _Path | None = None, json: bool = False) -> dict[str, Any]:
    """Return the configuration of a Celery worker, for a receiver of the signal `setup_logging`.

    Celery configures nothing itself while that signal has a receiver, so `worker_hijack_root_logger` does not matter.

    Args:
        level: of the root logger and of the loggers of tasks.
        file: write everything to this file instead of standard error; all processes of the worker append to it.
        json: write a JSON object per line instead of Celery's formats.
    """
    start = "[%(asctime)s: %(levelname)s/%(processName)s] "
    return _dict(
        json,
        formatters={
            "celery": {"format": start + "%(message)s"},
            "task": {
                "()": "celery.app.log.TaskFormatter",
                "fmt": start + "%(task_name)s[%(task_id)s]: %(message)s",
                "use_color": False,
            },
        },
        handlers={"celery": _handler("celery", "stderr", file), "task": _handler("task", "stderr", file)},
        loggers={"celery.task": {"handlers": ["task"], "level": level, "propagate": False}},
        root={"handlers": ["celery"], "level": level},
    )


#: For each preset its function, and how its framework loads the JSON file.
PRESETS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "uvicorn": (uvicorn, "uvicorn shop:app --log-config logging.json"),
    "gunicorn": (gunicorn, "gunicorn --log-config-json logging.json shop:app"),
    "vllm": (vllm, "VLLM_LOGGING_CONFIG_PATH=logging.json vllm serve MODEL"),
    "sglang": (sglang, "SGLANG_LOGGING_CONFIG_PATH=logging.json python -m sglang.launch_server ..."),
    "ray": (ray, 'runtime_env={"worker_process_setup_hook": ...}, a function that calls dictConfig'),
    "django": (django, "LOGGING = logspool.presets.django() in the settings"),
    "celery": (celery, "a receiver of the signal setup_logging that calls dictConfig"),
}


def preset(name: str, **options: Any) -> dict[str, Any]:
    """Return the configuration with this name; `options` are `level`, `file` and `json`.

    Raises:
        ValueError: no preset has the name.
        TypeError: there is no such option.
    """
    from logspool.base import _options

    if name not in PRESETS:
        raise ValueError(f"no preset is named {name!r}; {_options.meant(str(name), PRESETS)}")
    make = PRESETS[name][0]
    if unknown := options.keys() - set(_options.keywords(make)):
        raise _options.unknown_option(f"{name}()", unknown, _options.keywords(make))
    return make(**options)


def stream_handler(stream: TextIO | None = None) -> logging.Handler:
    """Install logspool, unless it is installed or `LOGSPOOL=off`, and return a `logging.StreamHandler`.

    For `"()"` in a configuration of handlers: `{"()": "logspool.presets.stream_handler", "stream": "ext://sys.stdout"}`.
    """
    from logspool.process import _install

    _install.install_by_environment()
    return logging.StreamHandler(stream)


def file_handler(filename: _Path, mode: str = "a", encoding: str | None = "utf-8") -> logging.Handler:
    """Install logspool, unless it is installed or `LOGSPOOL=off`, and return a `logging.WatchedFileHandler`.

    It opens the file again after logrotate has moved it. Several processes may append to one file.
    """
    from logging.handlers import WatchedFileHandler

    from logspool.process import _install

    _install.install_by_environment()
    return WatchedFileHandler(filename, mode, encoding)


def _handler(formatter: str, stream: str, file: _Path | None) -> dict[str, Any]:
    if file is None:
        target: dict[str, Any] = {"()": "logspool.presets.stream_handler", "stream": f"ext://sys.{stream}"}
    else:
        import os

        target = {"()": "logspool.presets.file_handler", "filename": os.path.abspath(file)}
    return {**target, "formatter": formatter}


def _dict(json: bool, *, formatters: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    if json:
        formatters = {name: {"()": "logspool.JSONFormatter"} for name in formatters}
    return {"version": 1, "disable_existing_loggers": False, "formatters": formatters, **parts}
