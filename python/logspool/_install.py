"""Put logspool under `logging`, in place, and take it away again.

Stop on the line: the beginning. Native methods take the place of `Logger.info` and its like, with the stock
functions behind them; handlers stay where they are. The order matters: everything that can fail comes before the
first change.
"""

from __future__ import annotations

import collections.abc
import logging
import os
import sys
import threading
import time

from logspool import _adopt, _bind, _endings, _install_options, _keeper, _native, _options, _streams, _texts

# `typing` is slow to import; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

#: Options in force, as they were checked; None when not installed.
_in_force: dict[str, Any] | None = None

#: Whether they come from `python -m logspool run`: then the program's own `install()` wins.
_by_environment = False

_connected = False

#: Classes whose attributes plans depend on. Subclasses inherit the hooks.
_HOOKED = (logging.Logger, logging.Handler, logging.Formatter, logging.PercentStyle)

_hooks: dict[tuple[type, str], Any] = {}


# The signature and the Args come from the rows of the core: `make generated` writes them.
@_options.known_only
def install(
    *,
    durability: str = "process",
    queue_bytes: int = 262_144,
    queue_total_bytes: int | None = None,
    queue_dir: str | os.PathLike[str] | None = None,
    blocking_levels: Collection[int | str] | None = None,
    blocking_timeout: float | None = None,
    flush_interval: float = 0.5,
    flush_records: int = 100,
    sync_interval: float = 1.0,
    checkpoint_every: int = 50,
    durability_timeout: float = 5.0,
    durable_levels: Collection[int | str] | None = None,
    shutdown_timeout: float = 5.0,
    fallback: str | None = "stderr",
    spool_dir: str | os.PathLike[str] | None = None,
    spool_bytes: int = 1_073_741_824,
    keeper: bool = False,
    crash_signals: bool = True,
) -> None:
    """Take every logger of this process off the hot path, in place.

    Existing and future loggers of the real `logging` module get a native call path; handlers of known classes that
    write to a file or a console keep being the same objects, but their output goes through a queue in shared memory
    and is written by a thread that never takes the interpreter's lock. What is customised goes on working as it
    did. Call it before or after `basicConfig` or `dictConfig`; again with the same options it does nothing.
    `LOGSPOOL=off` in the environment makes it do nothing. Thread-safe.

    Args:
        durability: How safe the record of a returned call is. `"memory"`: queued on the heap. `"process"`: on tmpfs,
            where it survives SIGKILL; this holds for all that follow. `"interval"`: files are also synced every
            `sync_interval`. `"checkpoint"`: and a call waits if it would leave `checkpoint_every` accepted records not
            durable. `"sync"`: each call returns when its record is durable. Allowed: "memory", "process", "interval",
            "checkpoint", "sync".
        queue_bytes: Limit of one thread's queue. Allowed: 32,768 to 16,777,216 bytes.
        queue_total_bytes: Limit of all queues of the process, at least `queue_bytes`. None: the lesser of 64 MiB and
            1/8 of the free tmpfs, or of the available memory if the queue has no folder. Allowed: 32,768 or more bytes.
        queue_dir: Folder of the queue. None: `LOGSPOOL_QUEUE_DIR`, else a folder of this user in `/dev/shm`. If it
            cannot be used, a keeper holds the queue. On a disk, calls may wait for that disk.
        blocking_levels: Levels (numbers or names) that may wait for room, up to `blocking_timeout`. None: ERROR and
            above.
        blocking_timeout: Longest wait of a call for room. None: 0.1; `float("inf")`: for ever. Allowed: 0 or more
            seconds.
        flush_interval: A record is handed to the system at most this long after its call. Allowed: 0.02 to 3,600
            seconds.
        flush_records: A record is handed to the system at most this many records later, to within 20 ms, also before
            `flush_interval` has passed. Allowed: 1 to 1,000,000,000 records.
        sync_interval: Longest time that written records stay without a sync in `"interval"` and `"checkpoint"`.
            Allowed: 0.01 to 3,600 seconds.
        checkpoint_every: With `"checkpoint"`, fewer than this many accepted records of the process are not durable.
            Allowed: 1 to 1,000,000,000 records.
        durability_timeout: Longest wait of a call for its record to become durable; then it returns and is counted.
            Allowed: 0 or more seconds.
        durable_levels: Levels (numbers or names) whose calls wait until their record is durable, in any `durability`
            but `"memory"`. None: no level.
        shutdown_timeout: Longest wait of the end of the process, and of `flush()` and `close()` of handlers. Allowed: 0
            or more seconds.
        fallback: Where records of ERROR and above go if nothing else accepts them. None: nowhere. Allowed: "stderr",
            None.
        spool_dir: Folder on disk where records wait if their output stalls for more than a second, or if the tmpfs for
            waiting records is half full; the first of them makes it. None: records wait only in the queue.
        spool_bytes: Limit of the spool of one output. Above it records stay on tmpfs, then are refused and counted.
            Allowed: 1,048,576 or more bytes.
        keeper: Start a second process that delivers the records of this one after a kill.
        crash_signals: A crash (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) waits at most 200 ms until
            queued records are written, then continues as without logspool. Handlers set earlier are called; those set
            later win. A handler without `install()` does so only if the option is passed.

    Raises:
        TypeError: an option that does not exist, or a value of the wrong type.
        ValueError: a value out of range, or one that another option rules out.
        RuntimeError: installed before with other options; a keeper that cannot be started; another copy of logspool in
            this process has its queue.
    """
    options = _install_options.checked(dict(locals()))
    if os.environ.get("LOGSPOOL") == "off":
        return
    with _adopt.installing:
        _install(options)


def install_by_environment() -> None:
    """Install with the default options, as `python -m logspool run` asks; the program may install with its own."""
    global _by_environment
    with _adopt.installing:
        if _in_force is None:
            install()
            _by_environment = _in_force is not None


def _install(options: dict[str, Any]) -> None:
    global _in_force, _by_environment
    if _in_force is not None and _by_environment and _in_force != options:
        uninstall()
    _by_environment = False
    if _in_force is not None:
        other = _differing(_in_force, options)
        if other:
            raise RuntimeError(f"logspool is installed with other options: {other}; call logspool.uninstall() first")
        return
    if other := _differing(_alone_given, {name: options[name] for name in _alone_given}):
        raise RuntimeError(f"a handler of logspool's was made with other options: {other}; give install() the same")
    connect()
    _start_keeper(options)
    _native.configure(options)
    natives = {
        (getattr(logging, owner), name): _adopt.native_method(getattr(logging, owner), owner, name)
        for owner, name in _native.native_methods()
    }
    for (cls, name), made in natives.items():
        # A stock method that somebody patched stays patched.
        if made is not None:
            native, stock = _adopt.replaced[cls, name] = made
            setattr(cls, name, native)
            if name == "critical" and cls.__dict__.get("fatal") is stock:
                _adopt.replaced[cls, "fatal"] = made
                cls.fatal = native
    _watch()
    _in_force = options
    _recover()
    _native.start()
    _endings.begin(options["shutdown_timeout"])
    if options["crash_signals"]:
        _endings.watch_crashes()


def _start_keeper(options: dict[str, Any]) -> None:
    """Start a keeper where one is wanted, also for the folder of a program below `run` that chose another one."""
    if not options["keeper"] and not (_keeper.below_run() and options["durability"] == "process"):
        return
    try:
        _keeper.ensure(options["queue_dir"] or _options.default_queue_dir())
    except OSError as error:
        raise RuntimeError(f"keeper=True: cannot start a keeper: {error.strerror or error}") from None


def _recover() -> None:
    """Write what dead processes left for the files of the handlers of now. Handlers made later see to theirs.

    Nothing that an earlier run left may stop this one: what goes wrong stays where it is, and `doctor` tells.
    """
    handlers = [reference() for reference in logging._handlerList]  # type: ignore[attr-defined]
    paths = {path for handler in handlers if type(path := getattr(handler, "baseFilename", None)) is str}
    try:
        for handler in handlers:
            _adopt.note_truncation(handler)
        _native.recover(paths=sorted(paths))
    except Exception:
        pass


def _watch() -> None:
    """See every change that a plan or an adopted handler depends on. Does nothing the second time."""
    global _watching
    if _watching:
        return
    _watching = True
    for cls in _HOOKED:
        for name, delete in (("__setattr__", False), ("__delattr__", True)):
            if name not in cls.__dict__:
                hook = _hooks.get((cls, name)) or _native.attribute_hook(cls, delete)
                _hooks[cls, name] = hook
                _adopt.replaced[cls, name] = (hook, None)
                setattr(cls, name, hook)
    _native.watch_dict(vars(logging), list(_adopt.LOGGING_NAMES))
    _native.watch_dict(vars(time), list(_adopt.TIME_NAMES))
    _native.watch_dict(vars(threading), list(_adopt.THREADING_NAMES))
    _native.watch_dict(logging._levelToName, None)


_watching = False


#: Options of the queue where logspool's own handlers use it without `install()`; None until the first is made.
_alone: dict[str, Any] | None = None

#: Those of them that a handler was given.
_alone_given: dict[str, Any] = {}

#: Whether a handler of logspool's own was made: it keeps its queue after `uninstall()`.
_own_made = False


def stand_alone(handler: type, options: dict[str, Any]) -> None:
    """Let a handler of logspool's own queue without `install()`, with `options`. Called when one is made.

    A process has one queue: the first handler that is made, or `install()`, says how it is.

    Raises:
        TypeError, ValueError: as `install()`.
        RuntimeError: the queue has other options already.
    """
    global _alone, _own_made
    owner = handler.__name__
    check_names(handler, options)
    checked = _install_options.checked(options)
    with _adopt.installing:
        in_force = _in_force or _alone
        if in_force is not None:
            other = _differing(in_force, {name: value for name, value in checked.items() if name in options})
            if other:
                raise RuntimeError(
                    f"{owner}: the queue of this process has other options: {other}; "
                    "give them to install() or to the first handler"
                )
        connect()
        if options.get("keeper"):
            _start_keeper(checked)
        if in_force is None:
            # The environment may name a folder too.
            if options or checked["queue_dir"] is not None:
                _native.configure(checked)
            _alone = checked
            _alone_given.update({name: value for name, value in checked.items() if name in options})
        _own_made = True
        _watch()
        _endings.begin_alone()
        # Alone, logspool touches signals only where that is asked for.
        if options.get("crash_signals"):
            _endings.watch_crashes()


def check_names(handler: type, options: dict[str, Any]) -> None:
    """Refuse options that neither a handler of logspool's own nor `install()` has.

    Raises:
        TypeError: with the nearest name.
    """
    if unknown := options.keys() - _install_options.shapes().keys():
        own = _options.keywords(handler.__init__)  # type: ignore[misc]
        raise _options.unknown_option(handler.__name__, unknown, (*own, *_install_options.shapes()))


def _differing(in_force: dict[str, Any], wanted: dict[str, Any]) -> str:
    other = sorted(name for name, value in wanted.items() if in_force[name] != value)
    return ", ".join(f"{name}={in_force[name]!r} (now {wanted[name]!r})" for name in other)


def connect() -> None:
    """Hand native code what it must know of Python. Changes nothing in `logging`.

    Raises:
        RuntimeError: another copy of logspool in this process has its queue.
    """
    global _connected
    if _connected:
        return
    _native.claim()
    checks = [_native.frame_self_check(), _native.frame_self_check()]
    _native.use_direct_frames(all(checks) and _native.frame_self_check())
    _native.connect(
        describe=_adopt.describe,
        describe_format=_adopt.describe_format,
        classify_logger=_adopt.classify_logger,
        open_streams=_adopt.open_streams,
        logging_globals=_adopt.logging_globals,
        logger_methods=_adopt.logger_methods,
        lock=_adopt.lock,
        record_class=logging.LogRecord,
        source_file=_adopt._source_file,
        mapping=collections.abc.Mapping,
        active_threads=threading._active,  # type: ignore[attr-defined]
        current_thread=threading.current_thread,
        thread_class=threading.Thread,
        modules=sys.modules,
        bound_fields=_bind.fields,
        exception_text=_texts.exception_text,
        stack_text=_texts.stack_text,
        made_text=_texts.MadeText,
        record_names=_texts.record_names(),
    )
    _native.set_keeper_command(*_keeper.command())
    _streams.learn()
    _connected = True


def uninstall() -> None:
    """Write what is queued and give `logging` back what is still ours. Does nothing when not installed.

    Raises:
        KeyboardInterrupt: or what else a signal's handler raised meanwhile; what is queued is written behind it.
    """
    global _in_force
    with _adopt.installing:
        if _in_force is None:
            return
        timeout = _in_force["shutdown_timeout"]
        _endings.end()
        try:
            # Until this returns the native methods stay, and hold a line of stock logging back until those that its
            # thread logged before are written.
            _native.stop()
        finally:
            with _adopt.lock:
                _give_back()
            _in_force = None
        if _own_made:
            _endings.begin_alone()
        _native.drain(timeout)


def _give_back() -> None:
    """Put the stock methods back where ours are. Handlers of logspool's own still need the hooks."""
    global _watching
    for (cls, name), (native, stock) in list(_adopt.replaced.items()):
        if stock is None and _own_made:
            continue
        if cls.__dict__.get(name) is native:
            if stock is None:
                delattr(cls, name)
            else:
                setattr(cls, name, stock)
            del _adopt.replaced[cls, name]
    if not _own_made:
        _native.unwatch()
        _watching = False
    # What was found out about a handler says that its class has native methods.
    _native.bump()


def flush(timeout: float | None = None, level: str = "written") -> bool:
    """Wait until every record logged before is handed to the system, or until it is durable.

    Args:
        timeout: seconds; None waits for ever, 0 not at all.
        level: "written", or "durable": files are synced, services have confirmed; it works in every durability.

    Returns:
        Whether that came true within the timeout. A sync that failed is no success, and is told once.

    Raises:
        TypeError, ValueError: there is no such level, or the timeout is not 0 or more seconds.
        KeyboardInterrupt: or what else a signal's handler raised meanwhile.
    """
    if level not in ("written", "durable"):
        raise ValueError(f"level must be 'written' or 'durable', not {level!r}")
    timeout = _options.timeout(timeout)
    return _native.flush_durable(timeout) if level == "durable" else _native.flush(timeout)


def carry_fields() -> None:
    """Let every LogRecord carry the fields of `bind`. Called by its first use."""
    cls = logging.Logger
    _native.note_bound_fields()
    with _adopt.lock:
        if (cls, "makeRecord") in _adopt.replaced or not _adopt.is_stock(cls, "makeRecord"):
            return
        stock = cls.makeRecord
        fields = _bind.fields

        def makeRecord(self: logging.Logger, *args: Any, **kwargs: Any) -> logging.LogRecord:
            record = stock(self, *args, **kwargs)
            bound = fields.get()
            if bound:
                attributes = record.__dict__
                for name, value in bound.items():
                    attributes.setdefault(name, value)
            return record

        makeRecord.__doc__ = stock.__doc__
        makeRecord.__qualname__ = stock.__qualname__
        _adopt.replaced[cls, "makeRecord"] = (makeRecord, stock)
        cls.makeRecord = makeRecord  # type: ignore[method-assign]
        _native.bump()
