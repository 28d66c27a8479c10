"""Native part of logspool. Use `logspool`."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from datetime import datetime
from types import FrameType, ModuleType, TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, final, type_check_only

from typing_extensions import Self, disjoint_base

__all__ = [
    "AccessLog",
    "CapturedLines",
    "Completions",
    "EventLoop",
    "EventRenderer",
    "Guard",
    "IsoStamper",
    "LineLogger",
    "PoolCore",
    "RecordQueue",
    "ReservedPlace",
    "Results",
    "Schedule",
    "Semaphore",
    "UnmadeRecord",
    "View",
    "Worker",
    "__version__",
    "after_fork_in_child",
    "after_fork_in_parent",
    "attribute_hook",
    "before_fork",
    "begin_end",
    "birth_second",
    "bound_logger_method",
    "bump",
    "check_options",
    "check_sink",
    "claim",
    "class_self_check",
    "class_state",
    "configure",
    "connect",
    "counter_names",
    "dict_self_check",
    "dict_word",
    "drain",
    "end",
    "entry",
    "exception_texts",
    "flush",
    "flush_durable",
    "flush_handler",
    "flush_local",
    "forget_dead",
    "frame_self_check",
    "go_on",
    "has_own_code",
    "install_crash_drain",
    "install_options",
    "install_signal_drain",
    "is_adopted",
    "json_object",
    "keep",
    "keep_memory",
    "lock_self_check",
    "metrics_text",
    "missing_calls",
    "native_method",
    "native_methods",
    "note_bound_fields",
    "note_once",
    "object_words",
    "opened_anew",
    "orphans",
    "paths",
    "plans_made",
    "pool_futures",
    "queue_formatted",
    "recover",
    "recovery_counts",
    "register_exit_drain",
    "remove_crash_drain",
    "rule_counts",
    "run_timers",
    "running",
    "segment_counters",
    "service_address",
    "set_adapter_classes",
    "set_catch_up",
    "set_drain",
    "set_follow",
    "set_keeper_command",
    "set_own_classes",
    "set_queue_prepare",
    "set_standard_error",
    "set_stock_formatting",
    "set_stream_offsets",
    "set_thread_handler",
    "set_traceback",
    "sidecars",
    "sink_table",
    "snapshot",
    "start",
    "stop",
    "stop_logging_threads",
    "timers_after_fork",
    "unwatch",
    "use_direct_frames",
    "watch_code",
    "watch_dict",
    "watch_part",
    "zone_changed",
]

__version__: str

# Facts about the interpreter and its classes.

# The table of the C functions, for extensions in C and C++: a capsule `logspool._native._C_API`.
_C_API: object

def frame_self_check() -> str: ...
def dict_self_check() -> str: ...
def lock_self_check(lock: Any = None, /) -> str: ...
def class_self_check(class_: type) -> str: ...
def go_on() -> None: ...
def use_direct_frames(allowed: bool) -> None: ...
def object_words(object: Any) -> list[int]: ...
def dict_word(dict: dict[Any, Any]) -> tuple[dict[Any, Any], int, int, int]: ...
def set_stream_offsets(pending_text: int, write_end: int) -> None: ...
def claim() -> None: ...
def missing_calls(*, forks: bool = False) -> list[dict[str, Any]]: ...
def birth_second(path: str | os.PathLike[str]) -> int | None: ...
def set_adapter_classes(is_plain: Callable[[type], bool], logger: type) -> None: ...
def set_catch_up(function: Callable[[Any], None]) -> None: ...
def set_drain(function: Callable[[float | None], bool]) -> None: ...
def set_follow(function: Callable[[Any], bool]) -> None: ...
def set_standard_error(descriptor: int, /) -> None: ...
def set_stock_formatting(functions: dict[str, Any], time: ModuleType, logging: dict[str, Any], /) -> None: ...
def set_queue_prepare(
    describe: Callable[[], tuple[bool, bool, list[Any], list[Any]]],
    class_: type,
    cleared: list[str],
    copied_otherwise: dict[type, Any],
    lock_class: type,
    queue_classes: list[type],
) -> None: ...
def connect(
    *,
    describe: Callable[[Any], Any],
    describe_format: Callable[[Any], Any],
    classify_logger: Callable[[type], tuple[str, str]],
    name_of_filter: Callable[[Any], str | tuple[Any, ...] | None],
    describe_factory: Callable[[Any], tuple[Any, ...] | None],
    describe_record_maker: Callable[[type], tuple[Any, ...] | None],
    open_streams: Callable[[Any, int], None],
    logging_globals: Callable[[], Any],
    logger_methods: list[str],
    lock: Any,
    record_class: type[logging.LogRecord],
    source_file: str,
    mapping: type,
    active_threads: dict[int, threading.Thread],
    current_thread: Callable[[], threading.Thread],
    thread_class: type[threading.Thread],
    modules: dict[str, Any],
    bound_fields: ContextVar[dict[str, Any] | None],
    exception_text: Callable[[Any], str],
    stack_text: Callable[[FrameType], str | None],
    made_text: type,
    record_names: frozenset[str],
) -> None: ...
def set_traceback(
    *,
    is_stock: Callable[[], bool],
    frame_texts: Callable[[TracebackType], list[tuple[str, int | None, Any]]],
    final_lines: Callable[[BaseException, TracebackType | None], str],
    final_line: Callable[[str, str], str],
    classes: list[type],
    traceback: dict[str, Any],
    linecache: dict[str, Any],
    sys: dict[str, Any],
    expected: list[tuple[dict[str, Any], str, Any]],
    cause_message: str,
    context_message: str,
    interactive_sources: dict[Any, Any] | None,
    absent_is_final: bool,
) -> None: ...
def forget_dead(reference: Any) -> None: ...
def service_address(
    address: str,
    authorities: str | None,
    certificate: str | None,
    key: str | None,
    server_name: str | None,
    /,
) -> tuple[str, str]: ...
def set_own_classes(classes: tuple[type, ...]) -> None: ...
def set_thread_handler(class_: type) -> None: ...
def sink_table() -> list[dict[str, Any]]: ...
def check_sink(kind: str, options: dict[str, Any], /) -> str: ...

# Functions that write Python's records with the formats of the core.

def json_object(members: list[tuple[Any, Any]], /) -> str: ...
def is_adopted(handler: logging.Handler, /) -> bool: ...
def note_once() -> None: ...
def rule_counts() -> dict[str, int]: ...
def queue_formatted(handler: logging.Handler, formatter: Any, record: logging.LogRecord, /) -> bool: ...
def entry(created: float, parts: list[tuple[Any, Any]], /) -> bytes: ...

# Methods and hooks that replace stock ones.

def native_methods() -> list[tuple[str, str]]: ...
def native_method(class_: type, owner: str, name: str, function: Any, /) -> Any: ...
def attribute_hook(class_: type, delete: bool, /) -> Any: ...
def watch_dict(dict: dict[Any, Any], names: list[Any] | None) -> None: ...

@final
class Guard:
    def __new__(cls, lock: Any) -> Guard: ...
    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...
    def _at_fork_reinit(self) -> None: ...

def watch_code(functions: list[Any]) -> None: ...
def has_own_code(function: object) -> bool: ...
def unwatch() -> None: ...
def bound_logger_method(class_: type, name: str, function: Any, drop_event: type, /) -> Any: ...
def bump() -> None: ...
def class_state(class_: type) -> int: ...
def watch_part(part: object) -> int: ...

# Functions for the start, the forks and the end of the process.

def install_options() -> list[dict[str, Any]]: ...
def check_options(options: dict[str, Any], /) -> dict[str, Any]: ...
def configure(options: dict[str, Any]) -> None: ...
def start() -> None: ...
def stop() -> None: ...
def exception_texts() -> tuple[int, int]: ...
def flush(timeout: float | None = None) -> bool: ...
def flush_durable(timeout: float | None = None) -> bool: ...
def flush_local(timeout: float) -> bool: ...
def flush_handler(handler: logging.Handler) -> bool: ...
def drain(timeout: float) -> int: ...
def end(timeout: float) -> None: ...
def note_bound_fields() -> None: ...
def zone_changed() -> None: ...
def begin_end() -> int: ...
def stop_logging_threads() -> None: ...
def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def install_signal_drain(timeout: float) -> None: ...
def install_crash_drain() -> None: ...
def remove_crash_drain() -> None: ...
def register_exit_drain() -> None: ...

# Counters, and recovery of the records of ended processes.

def snapshot() -> dict[str, Any] | None: ...
def metrics_text(python: str, pools: list[tuple[str, PoolCore]], deferred: list[tuple[str, int]]) -> str: ...
def recovery_counts() -> tuple[int, int]: ...
def counter_names() -> dict[str, Any]: ...
def recover(folder: str | os.PathLike[str] | None = None, paths: list[str] | None = None) -> dict[str, Any]: ...
def keep(watched: int, folder: str, /) -> None: ...
def keep_memory(program: int, /) -> None: ...
def set_keeper_command(command: tuple[list[bytes], list[bytes]] | None, why: str, /) -> None: ...
def opened_anew(path: str | os.PathLike[str]) -> None: ...
def orphans(folder: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]: ...
def running(folder: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]: ...
def segment_counters(path: str | os.PathLike[str]) -> dict[str, Any] | None: ...
def sidecars(folder: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]: ...
def plans_made() -> int: ...
def paths() -> Mapping[str, tuple[int, int, int, str]]: ...

@final
class UnmadeRecord:
    """The values of a logging call from which the thread of deferred formatters makes the record."""

    @property
    def levelno(self) -> int:
        """The level."""

    def make(self) -> logging.LogRecord:
        """Make the record, as the call would have made it."""

# The pool.

_P = ParamSpec("_P")
_T = TypeVar("_T")

@final
class ReservedPlace:
    """A place of a `RecordQueue` that is reserved for a caller that waits, until it is given back or dropped."""

    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def give_back(self) -> None:
        """Give the place back. A second call does nothing."""

@disjoint_base
class RecordQueue:
    """The records of one `ThreadHandler` that wait for its thread, and their counts. Each method is atomic."""

    def __new__(cls, capacity: int, max_bytes: int) -> Self:
        """Make an empty queue for at most `capacity` records and `max_bytes` bytes, or a single larger record."""

    def put(self, record: object, size: int) -> str | None:
        """Accept a record if a place is free. Return None, "wake" to wake the thread, or the reason for a refusal.

        Reasons: "queue_full", "queue_bytes", "shut".
        """

    def put_plain(self, record: logging.LogRecord, size: int) -> str | None:
        """Accept a copy of the fields of a plain record, of which `size` bytes and its texts are counted.

        Return what `put` returns, or "prepare" if the caller has to prepare the record.
        """

    def put_reserved(self, record: object, size: int) -> str | None:
        """The same as `put`, for a caller that has reserved a place."""

    def put_own(self, record: object, size: int) -> str | None:
        """The same as `put`, for the thread itself, which may add records even after `shut`."""

    def reserve(self) -> ReservedPlace:
        """Reserve a place for a caller that waits."""

    def take(self, most: int) -> list[Any]:
        """Take at most `most` of the oldest records.

        They keep their places until the next call, which counts them as written.
        """

    def remove_oldest(self) -> Any:
        """Remove and return the oldest record, or None. The caller counts it by `note_dropped`."""

    def note_direct(self) -> None:
        """Count a record that was accepted and written without the queue."""

    def note_refused(self, reason: str, level: int, mention: bool) -> None:
        """Count a refused record. With `mention`, also count it in `missed`."""

    def refuse(self, level: int) -> bool:
        """Count a record for which there was no room as refused, and return True.

        Return False if the caller has to count it and to look after the thread: the thread sleeps or makes the call
        itself, or no caller has looked for a while.
        """

    def note_dropped(self, reason: str, level: int) -> None:
        """Count a removed record as dropped; its place becomes free."""

    def shut(self) -> None:
        """Accept no more records."""

    def counts(self) -> tuple[int, int, int, int, dict[str, dict[int, int]], dict[str, dict[int, int]]]:
        """Return all counts, taken at the same moment: accepted, written, queued, queued bytes, refused, dropped."""

    def __len__(self) -> int:
        """Number of records that wait and are not taken."""

    wake_at: int
    @property
    def capacity(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def taken(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def missed(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def limit(self) -> int: ...

@disjoint_base
class EventRenderer:
    """A processor of structlog that renders events natively where it can, and else by `own`."""

    def __new__(cls, layout: str, options: dict[str, Any], own: Callable[..., Any], /) -> Self: ...
    def render(self, logger: Any, name: str, event_dict: Any, /) -> Any: ...

@final
class AccessLog:
    """Makes and queues the access lines of gunicorn's loggers."""

    def __new__(cls, describe: Callable[[Any], tuple[Any, ...]], /) -> Self: ...
    def write(self, logger: Any, resp: Any, req: Any, environ: Any, request_time: Any, /) -> bool: ...

@final
class CapturedLines:
    """Reads the pipe that is in place of a descriptor, on a native thread."""

    def __new__(cls, pipe: int, restored: int, original: int, max_line_bytes: int, /) -> Self: ...
    def take(self, seconds: float, /) -> tuple[list[tuple[bytes, int]], bool]: ...
    def dropped(self) -> int: ...

@disjoint_base
class IsoStamper:
    """A processor of structlog that adds the time in UTC under `key`."""

    def __new__(cls, key: str, own: Callable[..., Any], /) -> Self: ...
    def stamp(self, logger: Any, name: str, event_dict: Any, /) -> Any: ...

@disjoint_base
class LineLogger:
    """A logger whose methods queue their text as one line of a handler."""

    def __new__(cls, handler: Any, pass_on: Callable[[Any, int, object], None], /) -> Self: ...
    @property
    def handler(self) -> Any: ...
    def put(self, level: int, message: str | bytes, /) -> None: ...
    def msg(self, message: str | bytes, /) -> None: ...
    def log(self, message: str | bytes, /) -> None: ...
    def debug(self, message: str | bytes, /) -> None: ...
    def info(self, message: str | bytes, /) -> None: ...
    def warn(self, message: str | bytes, /) -> None: ...
    def warning(self, message: str | bytes, /) -> None: ...
    def err(self, message: str | bytes, /) -> None: ...
    def error(self, message: str | bytes, /) -> None: ...
    def failure(self, message: str | bytes, /) -> None: ...
    def exception(self, message: str | bytes, /) -> None: ...
    def fatal(self, message: str | bytes, /) -> None: ...
    def critical(self, message: str | bytes, /) -> None: ...

@disjoint_base
class Semaphore:
    """A counting semaphore: threads acquire and release permits."""

    def __new__(cls, value: int = 1) -> Self:
        """Make a semaphore with `value` free permits. Raises `ValueError` below 0 and above 2,147,483,647."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit and return True; if no permit is free, wait for at most `timeout` seconds.

        Returns False after the timeout, or at once with `blocking=False`. Python's signal handlers run during the
        wait, and their exceptions are raised here.
        """

    def release(self, n: int = 1) -> None:
        """Release `n` permits and wake up to `n` waiting threads. Raises `ValueError` for `n` below 1."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def value(self) -> int:
        """Number of free permits."""

@disjoint_base
class PoolCore:
    """The native half of `logspool.pool.Pool`."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self: ...
    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Call `fn(*args, **kwargs)` in a worker and return its future.

        Raises `RuntimeError` after `shutdown`, `BrokenPool` if the initializer failed, `queue.Full` if the pool is full
        and its policy is `"raise"`. So do all methods that take jobs.
        """

    def push(self, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call `fn(*args, **kwargs)` in a worker, without a future.

        An exception goes to the pool's `failed_callback`, or to `sys.unraisablehook`. If the call returns a generator,
        the worker runs it to its end.
        """

    def submit_first(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Like `submit`, before all waiting jobs."""

    def push_many(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> int:
        """Push a call of `fn` for each item of the iterables, as `map` would call it. Returns the number of calls."""

    def submit_later(self, delay: float, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Timer[_T]:
        """Like `submit`, `delay` seconds from now.

        Raises `ValueError` for a delay that is not a number, `OverflowError` for a delay beyond the range of the clock.
        """

    def submit_at(
        self, when: float | datetime, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Timer[_T]:
        """Like `submit`, at a time of the wall clock: seconds since the epoch, or a `datetime` with a time zone.

        If the clock is set, the job follows it within a second. Raises as `submit_later` does, and `ValueError`
        for a `datetime` without a time zone.
        """

    def schedule(self, interval: float, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> Schedule:
        """Call `fn(*args, **kwargs)` every `interval` seconds, counted from now, without drift.

        If a call takes longer than the interval, the calls that were due meanwhile are skipped and counted. Raises
        `ValueError` for an interval of 0 or less.
        """

    def schedule_with_delay(
        self, delay: float, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Schedule:
        """Call `fn(*args, **kwargs)` repeatedly, `delay` seconds after the last call ended. Raises as `schedule`."""

    def options(
        self,
        *,
        priority: str = "normal",
        timeout: float | None = None,
        done_callback: Callable[[Any], object] | None = None,
        failed_callback: Callable[[BaseException], object] | None = None,
        results: Results[Any] | None = None,
    ) -> View:
        """Return a view of the pool with other options for its jobs; keep the view for many jobs.

        - `priority`: `"high"` (before other jobs), `"low"` (when nothing else waits), `"first"` (before all).
        - `timeout`: seconds that a job may run; then its future, callback or results get `TimeoutError`. The job
          itself continues: a thread cannot be stopped.
        - `done_callback(result)` and `failed_callback(exception)` are called in the worker; after a timeout the
          timer thread calls `failed_callback`.
        - `results`: receives the return value of each job, or each value that a generator yields.

        Raises `ValueError` and `TypeError` for options that do not fit.
        """

    def run(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> asyncio.Future[_T]:
        """Call `fn(*args, **kwargs)` in a worker and return an awaitable for the running asyncio event loop.

        Results that are ready at the same time reach the loop with one wake-up. The loop never waits for room in the
        queue: with `overflow="block"` these jobs go beyond `queue_size`. A job whose awaitable is cancelled before it
        begins does not run. Raises `RuntimeError` without a running loop and after `shutdown`.
        """

    def cancel(self) -> int:
        """Cancel the jobs that wait for a worker. Returns their number."""

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits and no job runs. Returns False if `timeout` seconds passed first."""

    def _open(
        self,
        most_workers: int,
        queue_size: int,
        overflow: str,
        context: str,
        idle_timeout: float | None,
        done_callback: Callable[[Any], object] | None,
        failed_callback: Callable[[BaseException], object] | None,
    ) -> None: ...
    def _id(self) -> int: ...
    def _add_worker(self) -> None: ...
    def _close(self, cancel: bool) -> None: ...
    def _cancel_timers(self) -> None: ...
    def _wait_for_end(self, timeout: float | None) -> bool: ...
    def _resize(self, most_workers: int) -> None: ...
    def _counts(self) -> dict[str, Any]: ...
    def _after_fork(self, exception: BaseException, most_workers: int, queue_size: int) -> None: ...

@final
class View:
    """A view of a pool with other options for its jobs."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """As `Pool.submit`."""

    def push(self, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """As `Pool.push`."""

    def push_many(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> int:
        """As `Pool.push_many`."""

    def submit_later(self, delay: float, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Timer[_T]:
        """As `Pool.submit_later`."""

    def submit_at(
        self, when: float | datetime, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Timer[_T]:
        """As `Pool.submit_at`."""

    def schedule(self, interval: float, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> Schedule:
        """As `Pool.schedule`."""

    def schedule_with_delay(
        self, delay: float, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Schedule:
        """As `Pool.schedule_with_delay`."""

@type_check_only
class Timer(Future[_T]):
    """The future of a job that runs later."""

    @property
    def when(self) -> float:
        """Due time: `time.monotonic()` for `submit_later`, seconds since the epoch for `submit_at`."""

@final
class Schedule:
    """The handle of a job that runs repeatedly."""

    def cancel(self) -> bool:
        """End the schedule; a running call continues. Returns False if the schedule had ended already."""

    @property
    def cancelled(self) -> bool:
        """Whether the schedule has ended."""

    @property
    def runs(self) -> int:
        """Number of calls that have ended."""

    @property
    def missed(self) -> int:
        """Number of calls skipped because the previous call took too long."""

    @property
    def interval(self) -> float:
        """Seconds between two calls."""

    @property
    def when(self) -> float | None:
        """Time of the next call on the clock of `time.monotonic()`; None after the end."""

@final
class Results(Generic[_T]):
    """A queue of values: jobs put them in, an iterator takes them in order of arrival."""

    def __new__(cls, maxsize: int = 0) -> Self:
        """With a `maxsize`, workers wait while `maxsize` values are in the queue. Raises `ValueError` below 0."""

    def __class_getitem__(cls, _item: Any) -> type[Self]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def get(self, timeout: float | None = None) -> _T:
        """Return the next value, or raise the exception of a job; wait for at most `timeout` seconds.

        Raises `queue.Empty` after the timeout, and if all jobs have ended.
        """

    def close(self) -> None:
        """Accept no more values: jobs end at their next value, waiting values are dropped."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class Worker:
    """The native part of a worker thread."""

    def begin(self) -> bool: ...
    def give_back(self) -> bool: ...
    def run(self, name: str, breathe: Callable[[], object]) -> None: ...
    def give_up(self, exception: BaseException) -> None: ...
    def cancel(self) -> None: ...
    def waits_for_takers(self) -> bool: ...
    def forget_takers(self) -> None: ...
    def fail_after_fork(self, exception: BaseException) -> None: ...

@final
class EventLoop:
    """The connection to an asyncio event loop."""

    def __new__(cls, call_soon_threadsafe: Callable[..., object]) -> Self: ...
    def drain(self) -> None: ...

@final
class Completions:
    """A queue of futures in the order in which they end."""

    def __new__(cls) -> Self: ...
    def __call__(self, future: Future[Any]) -> None: ...
    def next(self, timeout: float | None) -> Future[Any] | None: ...

def pool_futures(start: Callable[[], None]) -> tuple[type[Future[Any]], type[Timer[Any]]]: ...
def run_timers(start_worker: Callable[[int], None]) -> None: ...
def timers_after_fork(exception: BaseException) -> None: ...
