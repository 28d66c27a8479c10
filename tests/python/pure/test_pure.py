"""A copy of the package without its native module has every name, leaves logging alone and keeps what it promises."""

import json

import pytest

pytestmark = pytest.mark.real

SIGNATURES = """\
import inspect, json, sys
import logspool

def shape(value):
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return type(value).__name__

found = {}
for name in logspool.__all__:
    value = getattr(logspool, name)
    found[name] = shape(value)
    if inspect.isclass(value):
        for member in dir(value):
            if not member.startswith("_"):
                # Native methods of handlers have no signature; the handler has the method either way.
                given = inspect.getattr_static(value, member)
                found[f"{name}.{member}"] = shape(given) if inspect.isfunction(given) else ""
print(json.dumps(found))
"""


def signatures(outcome):
    found = json.loads(outcome.expect_success().out)
    # A native method shows no signature, and a method of the standard library no other than its own.
    return {name: shape for name, shape in found.items() if shape}


def test_every_public_name_has_the_same_form(run_program, run_pure):
    native, pure = signatures(run_program(SIGNATURES)[0]), signatures(run_pure(SIGNATURES))

    assert len([name for name in pure if "." not in name]) == 44
    assert {name: pure.get(name) for name in native} == native


def test_logging_stays_as_it_is_and_one_line_says_so(run_pure):
    program = """\
import logging
before = {(owner, name): value for owner in (logging.Logger, logging.Handler, logging.FileHandler, logging.Formatter)
          for name, value in vars(owner).items()}
import logspool
logspool.install()
logspool.install()
handler = logspool.FileHandler("app.log")
logging.basicConfig(handlers=[handler], level="INFO")
logging.info("%d written", 1)
print({key for key, value in before.items() if vars(key[0])[key[1]] is not value})
print(open("app.log").read())
print(logspool.stats().native, "native: no: " in str(logspool.stats()), logspool.health().status)
print(["native: no: " in note for note in logspool.health().notes])
print(isinstance(handler, logging.FileHandler), logspool.flush())
"""
    outcome = run_pure(program).expect_success()
    shown = outcome.out.decode().splitlines()

    assert shown == ["set()", "INFO:root:1 written", "", "False True ok", "[True]", "True True"]
    [line] = outcome.err.decode().splitlines()
    assert line.startswith("logspool: native: no: logspool._native was not built for this Python (")
    assert "this copy has none: calls are those of stock logging (fix: install a wheel" in line


@pytest.mark.parametrize(
    ("call", "mend"),
    [
        ("install(durability='process')", "durability='memory'"),
        ("install(durability='sync')", "durability='memory'"),
        ("install(durable_levels=['ERROR'])", "durable_levels=()"),
        ("install(spool_dir='spool')", "spool_dir=None"),
        ("install(keeper=True)", "keeper=False"),
        ("install(redact_keys=['token'])", "redact_keys=()"),
        ("install(redact_patterns=['default'])", "redact_patterns=()"),
        ("install(escape_control=True)", "escape_control=False"),
        ("install(deduplicate=1.0)", "deduplicate=0"),
        ("install(rate_limit=1)", "rate_limit=0"),
        ("install(sample=['0.1'])", "sample=()"),
        ("FileHandler('a', spool_dir='spool')", "spool_dir=None"),
        ("RotatingFileHandler('a', compress='gzip')", "compress=None"),
        ("SyslogHandler('udp://h:1')", "use logging.handlers.SysLogHandler"),
        ("LokiHandler('http://h:1')", "use logspool.ServiceHandler"),
        ("handler('sqlite:a.db')", "use logspool.ServiceHandler"),
        ("SinkHandler('null')", "use logging.NullHandler"),
        ("capture_fd(2)", "install a wheel"),
        ("flush(level='durable')", "level='written'"),
    ],
)
def test_a_promise_that_needs_the_core_is_refused_with_the_reason_and_the_mend(run_pure, call, mend):
    program = f"""\
import logspool
try:
    logspool.{call}
except ValueError as error:
    print(error)
"""
    told = run_pure(program).expect_success().out.decode()

    assert "needs the native core: logspool._native was not built for this Python (" in told
    assert f"(fix: {mend}" in told


def test_a_promise_in_the_environment_is_refused_with_its_variable(run_pure):
    program = "import logspool\ntry:\n    logspool.install()\nexcept ValueError as error:\n    print(error)"
    told = run_pure(program, LOGSPOOL_DURABILITY="sync").expect_success().out.decode()

    assert told.startswith("LOGSPOOL_DURABILITY='sync' needs the native core: ")


def test_options_without_such_a_promise_are_accepted(run_pure):
    program = """\
import logging, logspool
logspool.install(
    durability="memory", queue_bytes=32768, blocking_levels=["ERROR"], redact_keys=[], sample=None, deduplicate=0,
    spool_dir=None, uncaught=True,
)
logging.basicConfig(filename="app.log")
try:
    logspool.install(queue_bytes=65536)
except RuntimeError as error:
    print(error)
import threading
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
print("CRITICAL:logspool.uncaught:uncaught exception in thread" in open("app.log").read())
logspool.uninstall()
print(logspool.stats().installed)
"""
    shown = run_pure(program).expect_success().out.decode().splitlines()

    assert "queue_bytes=32768 (now 65536)" in shown[0]
    assert shown[1:] == ["True", "False"]


def test_doctor_and_the_command_line_say_that_there_is_no_native_module(run_pure):
    program = """\
import sys
from logspool.__main__ import main
print(main(["doctor"]), main(["config", "show"]), main(["top", "--once"]))
"""
    outcome = run_pure(program).expect_success()
    shown = outcome.out.decode()

    assert shown.startswith("native: no\n  found  logspool._native was not built for this Python (")
    assert "  fix    install a wheel" in shown.replace("  fix   ", "  fix    ")
    assert shown.splitlines()[-1] == "1 0 1"


def test_the_pool_is_the_executor_of_the_standard_library(run_pure):
    program = """\
import concurrent.futures, sys
from logspool.pool import Pool, Results, Semaphore, as_completed
assert issubclass(Pool, concurrent.futures.ThreadPoolExecutor)
failed = []
with Pool(2, context="copy", failed_callback=failed.append) as pool:
    print(pool.submit(pow, 2, 10).result(), list(pool.map(abs, [-1, 2], ordered=True)))
    print(sorted(future.result() for future in as_completed([pool.submit(abs, -1), pool.submit(abs, -2)])))
    pool.push(lambda: 1 / 0)
    print(pool.push_many(print, []), pool.wait_idle(60), failed, pool.stats().failed)
    for refused in (lambda: pool.high, lambda: pool.schedule(1, print), lambda: Pool(queue_size=3), Results):
        try:
            refused()
        except ValueError as error:
            print(str(error).partition(" needs the native core: ")[0])
permits = Semaphore(1)
print(permits.acquire(), permits.acquire(blocking=False), permits.acquire(timeout=0.01), permits.value)
"""
    shown = run_pure(program).expect_success().out.decode().splitlines()

    assert shown == [
        "1024 [1, 2]",
        "[1, 2]",
        "0 True [ZeroDivisionError('division by zero')] 1",
        "Pool.high",
        "Pool.schedule()",
        "Pool(queue_size=3)",
        "Results()",
        "True False False 0",
    ]


def test_a_system_without_linux_s_calls_logs_sends_and_says_what_it_is(run_pure, receiver):
    program = """\
import os, signal, sys, threading
sys.platform = "darwin"
for name in ("fork", "register_at_fork", "getuid", "geteuid", "uname", "sched_getaffinity", "pipe2", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGBUS", "SIGTRAP", "SIGSYS", "pthread_sigmask"):
    delattr(signal, name)
for name in ("fcntl", "resource", "pwd", "termios"):
    sys.modules[name] = None

def refuse(event, arguments):
    if arguments and type(arguments[0]) is str and arguments[0].startswith(("/dev/shm", "/proc")):
        raise OSError(f"{event} of {arguments[0]}")

sys.addaudithook(refuse)
import logging
import logspool
for name in logspool.__all__:
    getattr(logspool, name)
import logspool.asgi, logspool.llm, logspool.pool, logspool.presets, logspool.wsgi
logspool.install()
logging.basicConfig(
    level="INFO",
    handlers=[
        logspool.ThreadHandler(logspool.RotatingFileHandler("app.log")),
        logspool.ServiceHandler(sys.argv[1]),
        logspool.StreamHandler(sys.stdout),
    ],
)
with logspool.bind(request="r-1"), logspool.pool.Pool(2) as pool:
    pool.submit(logging.info, "written").result()
    logging.error("sent")
print(logspool.flush(60), logspool.health().notes)
logging.shutdown()
print(open("app.log").read())
"""
    outcome = run_pure(program, receiver.address)
    shown = outcome.expect_success().out.decode()

    assert [record["message"] for record in receiver.records(2)] == ["written", "sent"]
    assert receiver.records(2)[1]["request"] == "r-1"
    assert "INFO:root:written\nERROR:root:sent\n" in shown
    assert "logspool has a native module for Linux only, and this is darwin" in shown
