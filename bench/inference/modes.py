"""The loggers that are compared. Each one writes the same records, one line each, to the stream that it gets.

The server calls `emit(template, *arguments)`; a template has its names, so that a structured logger gets fields.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import logging.handlers
import queue
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

Emit = Callable[..., object]

RECEIVED = "seq=%d request %s received, %d bytes"
CLASSIFIED = "seq=%d request %s is class %d, score %.3f"
GENERATED = "seq=%d request %s generated %d tokens, state %d"
TOKEN = "seq=%d request %s token %d is %d"
NAMES = {
    RECEIVED: ("received", ("seq", "request", "size")),
    CLASSIFIED: ("classified", ("seq", "request", "kind", "score")),
    GENERATED: ("generated", ("seq", "request", "tokens", "state")),
    TOKEN: ("token", ("seq", "request", "position", "token")),
}
BRACES = {template: template.replace("%d", "{}").replace("%s", "{}").replace("%.3f", "{:.3f}") for template in NAMES}
LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"


class Mode:
    """One logger. `open` makes it ready; `close` waits until its records are written."""

    title = ""
    #: Package without which it is skipped.
    needs = ""
    logs_access = False
    #: Whether records arrive at the sink.
    writes = True

    def open(self, stream: TextIO) -> Emit:
        """Return the function that logs one record to `stream`."""
        raise NotImplementedError

    def context(self, request: str) -> AbstractContextManager[object]:
        """Return the context for each request."""
        return nullcontext()

    def switch(self, on: bool) -> None:
        """Begin or pause the logging that happens without `emit`."""

    def close(self) -> None:
        """Write the queued records, and let go of the stream."""

    def counts(self) -> dict[str, int]:
        """Return `accepted`, `written` and so on, of a logger that counts them. Call it after `close`."""
        return {}

    def missing(self) -> str:
        """Return why it cannot run here, or nothing."""
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        return ""


class Nothing(Mode):
    """No calls: what everything else is compared with. As a mode of its own it shows the noise."""

    title, writes = "none", False

    def open(self, stream: TextIO) -> Emit:
        return lambda *_: None


class Stdlib(Mode):
    """`logging.StreamHandler`, synchronous."""

    title = "stdlib"

    def open(self, stream: TextIO) -> Emit:
        self.handler: logging.Handler = self.wrapped(self.stream_handler(stream))
        self.loggers = [logging.getLogger("bench.inference")]
        if self.logs_access:
            self.loggers.append(logging.getLogger("uvicorn.access"))
        for logger in self.loggers:
            logger.propagate = False
            logger.addHandler(self.handler)
        self.loggers[0].setLevel(logging.INFO)
        self.begin()
        return self.loggers[0].info

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        """Return the handler that writes."""
        handler = logging.StreamHandler(stream)
        handler.setFormatter(self.formatter())
        return handler

    def formatter(self) -> logging.Formatter:
        """Return the formatter of the lines."""
        return logging.Formatter(LINE)

    def wrapped(self, handler: logging.Handler) -> logging.Handler:
        """Return the handler that the loggers get."""
        return handler

    def begin(self) -> None:
        """Do the steps that follow the configuration."""

    def close(self) -> None:
        for logger in self.loggers:
            logger.removeHandler(self.handler)
        self.handler.close()


class Queue(Stdlib):
    """`QueueHandler` and `QueueListener`, unbounded as in most examples."""

    title = "QueueHandler"

    def wrapped(self, handler: logging.Handler) -> logging.Handler:
        records: queue.Queue[Any] = queue.Queue(-1)
        self.listener = logging.handlers.QueueListener(records, handler)
        self.listener.start()
        return logging.handlers.QueueHandler(records)

    def close(self) -> None:
        super().close()
        self.listener.stop()


class Backgroundlog(Stdlib):
    """backgroundlog's `ThreadHandler`, with its defaults."""

    title, needs = "backgroundlog", "backgroundlog"

    def wrapped(self, handler: logging.Handler) -> logging.Handler:
        from backgroundlog.handlers.thread_handler import ThreadHandler

        return ThreadHandler(handler)

    def close(self) -> None:
        for logger in self.loggers:
            logger.removeHandler(self.handler)
        self.handler._ThreadHandler__close()  # type: ignore[attr-defined]


class Picologging(Mode):
    """picologging's `StreamHandler`, synchronous."""

    title, needs = "picologging", "picologging"

    def open(self, stream: TextIO) -> Emit:
        import picologging

        self.handler = picologging.StreamHandler(stream)
        self.handler.setFormatter(picologging.Formatter(LINE))
        logger = picologging.getLogger("bench.inference")
        logger.setLevel(picologging.INFO)
        logger.propagate = False
        logger.addHandler(self.handler)
        return logger.info


class Loguru(Mode):
    """loguru, synchronous."""

    title, needs = "loguru", "loguru"
    enqueue = False

    def open(self, stream: TextIO) -> Emit:
        from loguru import logger

        logger.remove()
        logger.add(stream, format="{time} {level} {name} {message}", enqueue=self.enqueue, colorize=False)
        info = logger.info
        return lambda template, *arguments: info(BRACES[template], *arguments)

    def close(self) -> None:
        from loguru import logger

        logger.complete()
        logger.remove()


class LoguruEnqueue(Loguru):
    """loguru with `enqueue=True`."""

    title, enqueue = "loguru enqueue", True


class Structlog(Mode):
    """structlog as its page on performance advises: no stdlib, one JSON line, a plain writer."""

    title, needs = "structlog", "structlog"

    def open(self, stream: TextIO) -> Emit:
        import structlog

        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            logger_factory=structlog.WriteLoggerFactory(file=stream),
            cache_logger_on_first_use=False,
        )
        info = structlog.get_logger().bind().info

        def emit(template: str, *arguments: object) -> None:
            event, names = NAMES[template]
            info(event, **dict(zip(names, arguments)))

        return emit


class Thread(Stdlib):
    """`logspool.ThreadHandler` around a stock handler, without `install()`."""

    title, needs = "ThreadHandler", "logspool"

    def wrapped(self, handler: logging.Handler) -> logging.Handler:
        import logspool

        return logspool.ThreadHandler(handler, shutdown_timeout=30)

    def counts(self) -> dict[str, int]:
        stats = self.handler.stats()  # type: ignore[attr-defined]
        return {
            "accepted": stats.accepted, "written": stats.written, "queued": stats.queued,
            "dropped": stats.dropped_total, "refused": stats.refused_total,
        }  # fmt: skip


class SleepingHandler(logging.Handler):
    """A handler of Python code that takes a millisecond for a record, like a post to a service nearby."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        time.sleep(0.001)
        self.stream.write(line + "\n")

    def flush(self) -> None:
        self.stream.flush()


class ThreadSleeping(Thread):
    """`logspool.ThreadHandler` around a handler that sleeps a millisecond for each record."""

    title = "ThreadHandler, 1 ms a record"

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        handler = SleepingHandler(stream)
        handler.setFormatter(self.formatter())
        return handler


class QueueSleeping(Queue):
    """`QueueListener` around a handler that sleeps a millisecond for each record."""

    title = "QueueHandler, 1 ms a record"

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        handler = SleepingHandler(stream)
        handler.setFormatter(self.formatter())
        return handler


class SlowStream:
    """A stream of Python code. Each write takes a millisecond, as to a service nearby."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        """Wait, then write."""
        time.sleep(0.001)
        self.stream.write(text)

    def flush(self) -> None:
        """Write the contents of the buffer."""
        self.stream.flush()


class StallingStream(SlowStream):
    """A stream of Python code that stalls for 200 ms once a second."""

    def write(self, text: str) -> None:
        """Wait while the stream stalls, then write."""
        phase = time.monotonic() % 1
        if phase < 0.2:
            time.sleep(0.2 - phase)
        self.stream.write(text)


class ThreadSlowStream(Thread):
    """`logspool.ThreadHandler` around a stock handler whose stream is Python code, and `logspool.install()`."""

    title = "ThreadHandler, 1 ms a write"

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        return super().stream_handler(SlowStream(stream))  # type: ignore[arg-type]

    def begin(self) -> None:
        import logspool

        logspool.install()


class ThreadStallingStream(ThreadSlowStream):
    """The same with a stream that stalls."""

    title = "ThreadHandler, stalls 200 ms"

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        return Thread.stream_handler(self, StallingStream(stream))  # type: ignore[arg-type]


class ThreadInstalled(Thread):
    """`logspool.ThreadHandler` around a stock handler, and `logspool.install()`."""

    title = "ThreadHandler, installed"

    def begin(self) -> None:
        import logspool

        logspool.install()


class QueueSlowStream(Queue):
    """`QueueListener` around a stock handler whose stream is Python code."""

    title = "QueueHandler, 1 ms a write"

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        return super().stream_handler(SlowStream(stream))  # type: ignore[arg-type]


class NullCalls(Stdlib):
    """Stock logging with a handler that does nothing: the price of the calls alone."""

    title, writes = "calls alone", False

    def stream_handler(self, stream: TextIO) -> logging.Handler:
        return logging.NullHandler()


class Logspool(Stdlib):
    """`logspool.install()` over the stock handler."""

    title, needs = "logspool", "logspool"

    def begin(self) -> None:
        import logspool

        logspool.install(shutdown_timeout=30)

    def close(self) -> None:
        import logspool

        self.handler.flush()
        stats = logspool.stats()
        levels, sinks = stats.levels.values(), stats.sinks.values()
        self._counts = {
            "accepted": sum(level.accepted for level in levels),
            "refused": sum(sum(level.refused.values()) for level in levels),
            **{name: sum(sink.total(name) for sink in sinks) for name in ("written", "queued", "dropped", "uncertain")},
        }
        logspool.uninstall()
        super().close()

    def counts(self) -> dict[str, int]:
        return self._counts


class LogspoolAccess(Logspool):
    """logspool, with the access log of uvicorn."""

    title, logs_access = "logspool + access log", True

    def switch(self, on: bool) -> None:
        logging.getLogger("uvicorn.access").setLevel(logging.INFO if on else logging.CRITICAL)


class LogspoolJson(Logspool):
    """logspool, with JSON lines."""

    title = "logspool + JSON"

    def formatter(self) -> logging.Formatter:
        import logspool

        return logspool.JSONFormatter()


class LogspoolContext(Logspool):
    """logspool, with a field bound around each request, in JSON lines."""

    title = "logspool + bind"

    def formatter(self) -> logging.Formatter:
        import logspool

        return logspool.JSONFormatter()

    def context(self, request: str) -> AbstractContextManager[object]:
        import logspool

        return logspool.bind(request_id=request)


class LogspoolRedact(Logspool):
    """logspool, with redaction of keys and of a pattern. No record of the benchmark has a secret."""

    title = "logspool + redaction"

    def begin(self) -> None:
        import logspool

        keys, patterns = ["password", "authorization", "api_key"], [r"\bsk-[A-Za-z0-9]{20,}\b"]
        logspool.install(shutdown_timeout=30, redact_keys=keys, redact_patterns=patterns)

    def missing(self) -> str:
        reason = super().missing()
        if reason:
            return reason
        import logspool

        return "" if "redact_keys" in inspect.signature(logspool.install).parameters else "this logspool cannot redact"


MODES: dict[str, Mode] = {
    "none": Nothing(),
    "stdlib": Stdlib(),
    "queue": Queue(),
    "backgroundlog": Backgroundlog(),
    "loguru": Loguru(),
    "loguru-enqueue": LoguruEnqueue(),
    "structlog": Structlog(),
    "picologging": Picologging(),
    "thread-handler": Thread(),
    "null": NullCalls(),
    "thread-sleeping": ThreadSleeping(),
    "queue-sleeping": QueueSleeping(),
    "thread-slow-stream": ThreadSlowStream(),
    "thread-stalling-stream": ThreadStallingStream(),
    "thread-installed": ThreadInstalled(),
    "queue-slow-stream": QueueSlowStream(),
    "logspool": Logspool(),
    "logspool-access": LogspoolAccess(),
    "logspool-json": LogspoolJson(),
    "logspool-bind": LogspoolContext(),
    "logspool-redact": LogspoolRedact(),
}
