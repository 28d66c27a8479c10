"""Peers with an interface of their own; where it takes no arguments the caller formats with `%`."""

import re
from pathlib import Path

from case import (
    LATENCY,
    LOGGER_NAME,
    OWN_LAYOUT,
    OWN_LAYOUT_WITH_LINE,
    PACED,
    PREFORMATTED_CALL,
    THREADS,
    THROUGHPUT,
    Case,
    Session,
)

MODES = (THROUGHPUT, LATENCY, PACED, THREADS)
LOGURU_CALL = 'log.info("user {} did {:d} in {:.3f} ms", name, i, ms)'


def _open_loguru(path: Path, enqueue: bool) -> Session:
    from loguru import logger

    layout = "{time:YYYY-MM-DD HH:mm:ss,SSS} {level} {name}:{line} {message}"
    logger.remove()
    sink = logger.add(str(path), format=layout, level="INFO", enqueue=enqueue)

    def finish() -> None:
        logger.complete()
        logger.remove(sink)

    return Session(logger, finish)


def _open_logust(path: Path, enqueue: bool) -> Session:
    from logust import logger

    logger.remove()
    sink = logger.add(str(path), format="{time} {level} {name}:{line} {message}", level="INFO", enqueue=enqueue)

    def finish() -> None:
        logger.complete()
        logger.remove(sink)

    return Session(logger, finish)


def _open_fastlogging(path: Path, threads: bool) -> Session:
    import fastlogging

    log = fastlogging.LogInit(
        pathName=str(path), level=fastlogging.INFO, domain=LOGGER_NAME, console=False, useThreads=threads
    )
    return Session(log, log.shutdown)


def _open_spydlog(path: Path, queued: bool) -> Session:
    import spydlog

    if queued:
        log = spydlog.async_logger(LOGGER_NAME, spydlog.basic_file_sink_mt(str(path)))
    else:
        log = spydlog.basic_logger_mt(LOGGER_NAME, str(path))
    log.set_pattern("%Y-%m-%d %H:%M:%S,%e %l %n %v")
    return Session(log, lambda: _finish_spydlog(path, log))


def _finish_spydlog(path: Path, log: object) -> int | None:
    import spydlog

    from case import when_file_rests

    log.flush()  # type: ignore[attr-defined]
    spydlog.drop_all()
    return when_file_rests(path, 0.5)


BQLOG_CALL = 'log.info("user {} did {} in {:.3f} ms", name, i, ms)'


def _open_bqlog(path: Path, synchronous: bool) -> Session:
    from bq.log import log as bqlog

    settings = {"type": "text_file", "time_zone": "localtime", "levels": "[info,warning,error,fatal]"}
    settings |= {"base_dir_type": "1", "file_name": str(path)}
    config = "".join(f"appenders_config.file.{key}={value}\n" for key, value in settings.items())
    log = bqlog.create_log(LOGGER_NAME, f"{config}log.thread_mode={'sync' if synchronous else 'async'}\n")

    def finish() -> None:
        bqlog.force_flush_all_logs()
        # It puts the date and a number into the name of its file.
        (made,) = path.parent.glob(f"{path.name}_*.log")
        made.replace(path)

    return Session(log, finish)


RAPIDLOG_LAYOUT = re.compile(OWN_LAYOUT.pattern + r'".*\}')


def _open_rapidlog(path: Path, fast: bool) -> Session:
    import sys

    import rapidlog

    # It writes to standard output only, which its thread looks up when it starts.
    output, sys.stdout = sys.stdout, open(path, "w", encoding="utf-8")
    log = rapidlog.get_logger(level="INFO", **({"preset": "throughput"} if fast else {}))

    def finish() -> None:
        log.close()
        sys.stdout.close()
        sys.stdout = output

    return Session(log, finish)


def _case(name: str, title: str, opener: object, flag: bool, layout: re.Pattern[str], call: str, slow: bool) -> Case:
    return Case(
        name=name,
        title=title,
        group="peer",
        open=lambda path: opener(path, flag),  # type: ignore[operator]
        call=call,
        needs=({"bqlog": "bq"}.get(name.split("-")[0], name.split("-")[0]),),
        layout=layout,
        modes=MODES,
        slow=slow,
    )


CASES = [
    _case("loguru", "loguru", _open_loguru, False, OWN_LAYOUT_WITH_LINE, LOGURU_CALL, True),
    _case("loguru-enqueue", "loguru, enqueue", _open_loguru, True, OWN_LAYOUT_WITH_LINE, LOGURU_CALL, True),
    _case("logust", "logust", _open_logust, False, OWN_LAYOUT_WITH_LINE, PREFORMATTED_CALL, False),
    _case("logust-enqueue", "logust, enqueue", _open_logust, True, OWN_LAYOUT_WITH_LINE, PREFORMATTED_CALL, False),
    _case("bqlog", "BqLog", _open_bqlog, False, OWN_LAYOUT, BQLOG_CALL, False),
    _case("bqlog-sync", "BqLog, synchronous", _open_bqlog, True, OWN_LAYOUT, BQLOG_CALL, False),
    _case("rapidlog", "rapidlog", _open_rapidlog, False, RAPIDLOG_LAYOUT, PREFORMATTED_CALL, False),
    _case("rapidlog-fast", "rapidlog, throughput", _open_rapidlog, True, RAPIDLOG_LAYOUT, PREFORMATTED_CALL, False),
    _case("fastlogging", "fastlogging", _open_fastlogging, False, OWN_LAYOUT, PREFORMATTED_CALL, False),
    _case("fastlogging-thread", "fastlogging, thread", _open_fastlogging, True, OWN_LAYOUT, PREFORMATTED_CALL, False),
    _case("spydlog", "spydlog", _open_spydlog, False, OWN_LAYOUT, PREFORMATTED_CALL, False),
    _case("spydlog-async", "spydlog, async", _open_spydlog, True, OWN_LAYOUT, PREFORMATTED_CALL, False),
]
