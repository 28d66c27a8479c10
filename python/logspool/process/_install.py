"""Install logspool into the real `logging` module, and uninstall it.

Pipeline stage: the beginning (see ARCHITECTURE.md). Native methods replace `Logger.info` and similar methods, and call
the stock functions for everything that they do not handle. Handlers are not replaced. The order matters: every step
that can fail is done before the first change.
"""

from __future__ import annotations

import collections.abc
import logging
import os
import sys
import threading
import time

from logspool import _native
from logspool.adoption import (
    _adapters,
    _adopt,
    _bound_fields,
    _formatting,
    _loggers,
    _logging_globals,
    _planning,
    _queueing,
    _streams,
    _texts,
    _traceback,
    known,
)
from logspool.base import _in_force, _interpreter, _options, _stock_classes
from logspool.process import _configuration, _endings, _install_options, _keeper

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

#: Whether the options come from `python -m logspool run`. Then an `install()` of the program overrides them.
_by_environment = False

_connected = False

#: Classes on whose instances' attributes plans depend. Subclasses inherit the hooks.
_HOOKED = (logging.Logger, logging.Handler, logging.Filter, logging.Formatter, logging.PercentStyle)

_hooks: dict[tuple[type, str], Any] = {}


# `make generated` writes the signature and the Args from the core's table of options.
@_configuration.completed
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
    uncaught: bool = False,
    defer_formatting: bool = False,
    redact_keys: Collection[str] | None = None,
    redact_patterns: Collection[str] | None = None,
    escape_control: bool = False,
    deduplicate: float = 0.0,
    rate_limit: int = 0,
    sample: Collection[str] | None = None,
) -> None:
    """Take every logger of this process off the hot path, in place.

    Existing and future loggers of the real `logging` module get a native call path; handlers of known classes that
    write to a file or a console keep being the same objects, but their output goes through a queue in shared memory
    and is written by a thread that never takes the interpreter's lock. What is customised goes on working as it
    did. Call it before or after `basicConfig` or `dictConfig`; again with the same options it does nothing.
    `LOGSPOOL=off` in the environment makes it do nothing. An option that is not passed comes from the environment
    variable of its name, as `LOGSPOOL_QUEUE_BYTES`, or from a file: see docs/how-to/configure.md. Thread-safe.

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
        flush_interval: A record is handed to the system, or sent in a request over HTTP, at most this long after its
            call. A sink with `gather_seconds` keeps to that. Allowed: 0.02 to 3,600 seconds.
        flush_records: A record is handed to the system at most this many records later, to within 20 ms, also before
            `flush_interval` has passed. A request over HTTP gathers `batch_records`. Allowed: 1 to 1,000,000,000
            records.
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
        uncaught: Log an exception that ends the program or a thread, as CRITICAL of the logger `logspool.uncaught`, and
            one that Python ignores, as ERROR. Then wait for the write, and call the hook of `sys` or `threading` that
            was set before.
        defer_formatting: Run formatters that only Python can run on a thread, not in the call: see `logspool.deferred`.
            A kill loses the records that wait for it.
        redact_keys: Names of fields whose values become `[REDACTED]` before the record is queued, also as `key=value`
            in texts. A name is also the end of a longer one: `token` is in `access_token`. `"default"` stands for ten
            usual names.
        redact_patterns: Regular expressions of texts that become `[REDACTED]`: their groups, or all of a match.
            `"default"` stands for five usual ones. Look-around and references to groups are refused, because they can
            take exponential time.
        escape_control: Escape control characters and line ends in messages and fields, so that no text can forge a line
            or control a terminal. Lines of formatters that only Python can run stay as they are.
        deduplicate: Leave out a record for this long if its place, level, message and traceback equal an earlier one;
            then a record says how many. 0: keep all. Allowed: 0 to 3,600 seconds.
        rate_limit: Records per second below ERROR that one place in the program may log; then a record says how many
            were left out. 0: no limit. Allowed: 0 to 1,000,000,000 records a second.
        sample: Rules of sampling, as `"0.1 logger=uvicorn.access keep=status>=400"`: see
            docs/how-to/keep-logs-clean.md.

    Raises:
        TypeError: an option that does not exist, or a value of the wrong type.
        ValueError: a value out of range, or one that another option rules out; a variable or a file that is wrong.
        RuntimeError: installed before with other options; a keeper that cannot be started; another copy of logspool in
            this process has its queue.
    """
    options = _install_options.checked(dict(locals()), are_defaults_given=True)
    if is_off():
        return
    with _planning.installing:
        _install(options)


def install_by_environment() -> None:
    """Install with the default options for `python -m logspool run`. The program may override them by `install()`."""
    global _by_environment
    with _planning.installing:
        if _in_force.installed is None:
            install()
            _by_environment = _in_force.installed is not None


def _install(options: dict[str, Any]) -> None:
    global _by_environment
    if _in_force.installed is not None and _by_environment and _in_force.installed != options:
        uninstall()
    _by_environment = False
    if _in_force.installed is not None:
        other = _differing(_in_force.installed, options)
        if other:
            raise RuntimeError(f"logspool is installed with other options: {other}; call logspool.uninstall() first")
        return
    if other := _differing(_alone_given, {name: options[name] for name in _alone_given}):
        raise RuntimeError(f"a handler of logspool's was made with other options: {other}; give install() the same")
    connect()
    if _interpreter.without_core:
        _in_force.installed = options
        if options["uncaught"]:
            _endings.watch_uncaught()
        return
    _start_keeper(options)
    _native.configure(options)
    left = ("LogRecord", "Formatter") if _logging_globals.only_python() else ()
    natives = {
        (getattr(logging, owner), name): _stock_classes.native_method(getattr(logging, owner), owner, name)
        for owner, name in _native.native_methods()
        if owner not in left
    }
    for (cls, name), made in natives.items():
        # A stock method that other code has patched is not replaced.
        if made is not None:
            native, stock = _stock_classes.replaced[cls, name] = made
            setattr(cls, name, native)
            if name == "critical" and cls.__dict__.get("fatal") is stock:
                _stock_classes.replaced[cls, "fatal"] = made
                cls.fatal = native
    _queueing.replace_listener()
    _watch()
    _in_force.installed = options
    _recover()
    _native.start()
    _endings.begin(options["shutdown_timeout"], uncaught=options["uncaught"])
    if options["crash_signals"]:
        _endings.watch_crashes()


def _start_keeper(options: dict[str, Any]) -> None:
    """Start a keeper if the options request one, or for the queue folder of a program that `run` started."""
    if not options["keeper"] and not (_keeper.below_run() and options["durability"] == "process"):
        return
    try:
        _keeper.ensure(options["queue_dir"] or _options.default_queue_dir())
    except OSError as error:
        raise RuntimeError(f"keeper=True: cannot start a keeper: {error.strerror or error}") from None


def _recover() -> None:
    """Write the records that ended processes left for the files of the existing handlers.

    Handlers that are made later do so for their own files. Nothing that an earlier run left may stop this process:
    after an error the records stay in their queue, and `doctor` reports them.
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
    """Start to watch everything on which plans and adopted handlers depend. Later calls do nothing."""
    global _watching
    if _watching:
        return
    _watching = True
    for cls in _HOOKED:
        for name, delete in (("__setattr__", False), ("__delattr__", True)):
            if name not in cls.__dict__:
                hook = _hooks.get((cls, name)) or _native.attribute_hook(cls, delete)
                _hooks[cls, name] = hook
                _stock_classes.replaced[cls, name] = (hook, None)
                setattr(cls, name, hook)
    _native.watch_dict(vars(logging), list(_logging_globals.LOGGING_NAMES))
    _native.watch_dict(vars(time), list(_logging_globals.TIME_NAMES))
    _native.watch_code([vars(time).get(name) for name in _logging_globals.clock_names()])
    _native.watch_dict(vars(threading), list(_logging_globals.THREADING_NAMES))
    _native.watch_dict(logging._levelToName, None)


_watching = False


#: The part of `_in_force.alone` that was given to a handler explicitly.
_alone_given: dict[str, Any] = {}

#: Whether one of logspool's own handlers was made. Such a handler keeps its queue after `uninstall()`.
_own_made = False


def is_off() -> bool:
    """Return whether the environment turns logspool off."""
    return os.environ.get("LOGSPOOL") == "off"


def stand_alone(handler: type, options: dict[str, Any], *, has_stock: bool = False) -> None:
    """Let one of logspool's own handlers use the queue without `install()`. Called when the handler is made.

    A process has one queue. The first handler, or `install()`, determines the options of the queue. With `LOGSPOOL=off`
    a handler that is a stock one otherwise (`has_stock`) has no queue.

    Raises:
        TypeError, ValueError: as `install()`.
        RuntimeError: the queue has other options already.
    """
    global _own_made
    owner = handler.__name__
    check_names(handler, options)
    if has_stock and is_off():
        _install_options.checked(options)
        return
    settings = _configuration.in_force(options)
    wanted = {**{name: setting.value for name, setting in settings.items()}, **options}
    checked = _install_options.checked(wanted)
    with _planning.installing:
        in_force = _in_force.of_queue()
        if in_force is not None:
            other = _differing(in_force, {name: value for name, value in checked.items() if name in options})
            if other:
                raise RuntimeError(
                    f"{owner}: the queue of this process has other options: {other}; "
                    "give them to install() or to the first handler"
                )
        connect()
        if wanted.get("keeper"):
            _start_keeper(checked)
        if in_force is None:
            if wanted:
                _native.configure(checked)
            _in_force.alone = checked
            _alone_given.update({name: value for name, value in checked.items() if name in options})
        if _interpreter.without_core:
            if wanted.get("uncaught"):
                _endings.watch_uncaught()
            return
        _own_made = True
        _watch()
        _endings.begin_alone()
        # Without `install()`, logspool changes signal handlers only if the option requests it.
        if wanted.get("crash_signals"):
            _endings.watch_crashes()
        if wanted.get("uncaught"):
            _endings.watch_uncaught()


def check_names(handler: type, options: dict[str, Any]) -> None:
    """Refuse options that neither the handler class nor `install()` has.

    Raises:
        TypeError: an option is unknown. The text names the most similar valid option.
    """
    if unknown := options.keys() - _install_options.shapes().keys():
        own = _options.keywords(handler.__init__)  # type: ignore[misc]
        raise _options.unknown_option(handler.__name__, unknown, (*own, *_install_options.shapes()))


def _differing(in_force: dict[str, Any], wanted: dict[str, Any]) -> str:
    other = sorted(name for name, value in wanted.items() if in_force[name] != value)
    return ", ".join(f"{name}={in_force[name]!r} (now {wanted[name]!r})" for name in other)


def connect() -> None:
    """Give native code the Python objects that it needs. Changes nothing in `logging`.

    Raises:
        RuntimeError: another copy of logspool in this process has its queue.
    """
    global _connected
    if _connected:
        return
    if _interpreter.without_core:
        _interpreter.report()
        _connected = True
        return
    _native.claim()
    _interpreter.choose()
    _interpreter.report()
    _native.connect(
        describe=_adopt.describe,
        describe_format=_adopt.describe_format,
        classify_logger=_loggers.classify_logger,
        name_of_filter=_loggers.name_of_filter,
        describe_factory=known.describe_factory,
        describe_record_maker=known.describe_record_maker,
        open_streams=_adopt.open_streams,
        logging_globals=_logging_globals.logging_globals,
        logger_methods=_loggers.logger_methods,
        lock=_planning.lock,
        record_class=logging.LogRecord,
        source_file=_logging_globals.source_file,
        mapping=collections.abc.Mapping,
        active_threads=threading._active,  # type: ignore[attr-defined]
        current_thread=threading.current_thread,
        thread_class=threading.Thread,
        modules=sys.modules,
        bound_fields=_bound_fields.fields,
        exception_text=_texts.exception_text,
        stack_text=_texts.stack_text,
        made_text=_texts.MadeText,
        record_names=_texts.record_names(),
    )
    _traceback.connect()
    _native.set_adapter_classes(_adapters.is_plain, logging.Logger)
    _formatting.connect()
    _native.set_keeper_command(*_keeper.command())
    _streams.learn()
    _connected = True


def uninstall() -> None:
    """Write all queued records and restore the stock methods of `logging`. Does nothing if logspool is not installed.

    A method that other code has replaced since `install()` is left unchanged.

    Raises:
        KeyboardInterrupt: a signal handler raised this, or another exception, during the wait. Queued records are still
            written afterwards.
    """
    with _planning.installing:
        if _in_force.installed is None:
            return
        timeout = _in_force.installed["shutdown_timeout"]
        _drain_deferred(timeout)
        _endings.end()
        try:
            # The native methods stay in place until this call returns. They delay a line of stock logging until the
            # lines that its thread logged before are written.
            _native.stop()
        finally:
            with _planning.lock:
                _give_back()
            _in_force.installed = None
        if _own_made:
            _endings.begin_alone()
        _native.drain(timeout)


def _give_back() -> None:
    """Restore the stock methods. The hooks stay if logspool's own handlers still need them."""
    global _watching
    for (cls, name), (native, stock) in list(_stock_classes.replaced.items()):
        if stock is None and _own_made:
            continue
        if cls.__dict__.get(name) is native:
            if stock is None:
                delattr(cls, name)
            else:
                setattr(cls, name, stock)
            del _stock_classes.replaced[cls, name]
    if not _own_made:
        _native.unwatch()
        _watching = False
    # Existing descriptions of handlers say that their classes have native methods, so they become stale now.
    _native.bump()


def flush(timeout: float | None = None, level: str = "written") -> bool:
    """Wait until every record logged before is handed to the system, or until it is durable.

    Args:
        timeout: seconds; None waits for ever, 0 does not wait.
        level: "written", or "durable": files are synced and services have confirmed. Works with every `durability`.

    Returns:
        Whether all records reached the level within the timeout. After a failed sync one call returns False.

    Raises:
        TypeError, ValueError: there is no such level, or the timeout is not 0 or more seconds.
        KeyboardInterrupt: a signal handler raised this, or another exception, during the wait.
    """
    if level not in ("written", "durable"):
        raise ValueError(f"level must be 'written' or 'durable', not {level!r}")
    timeout = _options.timeout(timeout)
    began = time.monotonic()
    if not _drain_deferred(timeout):
        return False
    if timeout is not None:
        timeout = max(0.0, timeout - (time.monotonic() - began))
    return _native.flush_durable(timeout) if level == "durable" else _native.flush(timeout)


def _drain_deferred(timeout: float | None) -> bool:
    """Wait for the records that deferred formatters have not formatted yet; True if there are none."""
    deferring = sys.modules.get("logspool.thread._deferring")
    return deferring is None or deferring.drain(timeout)
