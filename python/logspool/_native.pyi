"""Native part of logspool. Use `logspool`."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar, final

from typing_extensions import Self, disjoint_base

__all__ = [
    "Completions",
    "EventLoop",
    "Lane",
    "PoolCore",
    "Semaphore",
    "Worker",
    "__version__",
    "after_fork_in_child",
    "after_fork_in_parent",
    "attribute_hook",
    "before_fork",
    "begin_end",
    "birth_second",
    "bump",
    "configure",
    "connect",
    "counter_names",
    "dict_state_offset",
    "drain",
    "end",
    "flush",
    "flush_handler",
    "forget_dead",
    "frame_self_check",
    "go_on",
    "install_signal_drain",
    "metrics_text",
    "native_method",
    "native_methods",
    "note_bound_fields",
    "object_words",
    "opened_anew",
    "orphans",
    "paths",
    "pool_future",
    "recover",
    "recovery_counts",
    "register_exit_drain",
    "set_catch_up",
    "set_follow",
    "set_own_classes",
    "set_stream_offsets",
    "snapshot",
    "start",
    "stop",
    "unwatch_dicts",
    "use_direct_frames",
    "watch_dict",
    "zone_changed",
]

__version__: str

# What the interpreter and its classes look like.

def frame_self_check() -> bool: ...
def go_on() -> None: ...
def use_direct_frames(allowed: bool) -> None: ...
def object_words(object: Any) -> list[int]: ...
def dict_state_offset() -> int: ...
def set_stream_offsets(pending_text: int, write_end: int) -> None: ...
def birth_second(path: str | os.PathLike[str]) -> int | None: ...
def set_catch_up(function: Callable[[Any], None]) -> None: ...
def set_follow(function: Callable[[Any], bool]) -> None: ...
def connect(
    *,
    describe: Callable[[Any], Any],
    classify_logger: Callable[[type], str],
    open_streams: Callable[[Any, int], None],
    world: Callable[[], Any],
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
    record_names: frozenset[str],
) -> None: ...
def forget_dead(reference: Any) -> None: ...
def set_own_classes(classes: tuple[type, ...]) -> None: ...

# Methods and hooks that are put in place of stock ones.

def native_methods() -> list[tuple[str, str]]: ...
def native_method(class_: type, owner: str, name: str, function: Any, /) -> Any: ...
def attribute_hook(class_: type, delete: bool, /) -> Any: ...
def watch_dict(dict: dict[Any, Any], names: list[Any] | None) -> None: ...
def unwatch_dicts() -> None: ...
def bump() -> None: ...

# The life of the process.

def configure(options: dict[str, Any]) -> None: ...
def start() -> None: ...
def stop() -> None: ...
def flush(timeout: float | None = None) -> bool: ...
def flush_handler(handler: logging.Handler) -> bool: ...
def drain(timeout: float) -> int: ...
def end(timeout: float) -> int: ...
def note_bound_fields() -> None: ...
def zone_changed() -> None: ...
def begin_end() -> int: ...
def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def install_signal_drain(timeout: float) -> None: ...
def register_exit_drain() -> None: ...

# Counters and leftovers.

def snapshot() -> dict[str, Any] | None: ...
def metrics_text(python: str) -> str | None: ...
def recovery_counts() -> tuple[int, int]: ...
def counter_names() -> dict[str, Any]: ...
def recover(folder: str | os.PathLike[str] | None = None, paths: list[str] | None = None) -> dict[str, Any]: ...
def opened_anew(path: str | os.PathLike[str]) -> None: ...
def orphans(folder: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]: ...
def paths() -> Mapping[str, tuple[int, int, str]]: ...

# The pool.

_P = ParamSpec("_P")
_T = TypeVar("_T")

@disjoint_base
class Semaphore:
    """Permits that threads take and give back."""

    def __new__(cls, value: int = 1) -> Self:
        """Begin with `value` free permits. Raises `ValueError` below 0 and above 2,147,483,647."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit and return True; where none is free wait for one, `timeout` seconds at most.

        Returns False when the time is over, or at once with `blocking=False`. A signal's handler runs meanwhile, and
        what it raises is raised here.
        """

    def release(self, n: int = 1) -> None:
        """Give back `n` permits and wake as many threads that wait. Raises `ValueError` for `n` below 1."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def value(self) -> int:
        """Permits that are free now."""

@disjoint_base
class PoolCore:
    """The native half of `logspool.pool.Pool`."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self: ...
    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Call `fn(*args, **kwargs)` in a worker and return its future.

        Raises `RuntimeError` after `shutdown`, `BrokenPool` where the initializer failed, `queue.Full` where the pool
        is full and its policy says so.
        """

    def push(self, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call `fn(*args, **kwargs)` in a worker. What it raises goes to `sys.unraisablehook`. Raises as `submit`."""

    def submit_first(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """As `submit`, before all jobs that wait."""

    def push_many(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> int:
        """Push a call of `fn` for each item of the iterables, as `map` would call it. Returns how many."""

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits and none runs. Returns False where `timeout` seconds were over first."""

    def _push_for(
        self,
        event_loop: EventLoop,
        future: asyncio.Future[_T],
        fn: Callable[_P, _T],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> None: ...
    def _open(
        self,
        most_workers: int,
        queue_size: int,
        overflow: str,
        context: str,
        idle_timeout: float | None,
    ) -> None: ...
    def _lane(self, high: bool) -> Lane: ...
    def _worker(self) -> Worker: ...
    def _forget_worker(self) -> None: ...
    def _close(self, cancel: bool) -> None: ...
    def _resize(self, most_workers: int) -> int: ...
    def _counts(self) -> dict[str, Any]: ...
    def _after_fork(self, exception: BaseException, most_workers: int, queue_size: int) -> None: ...

@final
class Lane:
    """A view of a pool whose jobs go before others or after them."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """As `Pool.submit`."""

    def push(self, fn: Callable[_P, object], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """As `Pool.push`."""

@final
class Worker:
    """What a worker thread runs."""

    def run(self, name: str, breathe: Callable[[], object]) -> None: ...
    def give_up(self, exception: BaseException) -> None: ...

@final
class EventLoop:
    """The way to an asyncio event loop."""

    def __new__(cls, call_soon_threadsafe: Callable[..., object]) -> Self: ...
    def drain(self) -> None: ...

@final
class Completions:
    """Futures in the order in which they end."""

    def __new__(cls) -> Self: ...
    def __call__(self, future: Future[Any]) -> None: ...
    def next(self, timeout: float | None) -> Future[Any] | None: ...

def pool_future() -> type[Future[Any]]: ...
