"""Formatters that run on a thread: `deferred` and `install(defer_formatting=True)`."""

import json
import logging

import pytest

import logspool

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

_PRELUDE = """\
import json, logging, os, sys, threading, time
import logspool

class Json(logging.Formatter):
    def format(self, record):
        thread = threading.current_thread()
        return json.dumps({
            "message": record.getMessage(), "thread": record.threadName, "here": thread is threading.main_thread(),
            "extra": getattr(record, "extra", None), "time": self.formatTime(record, "fixed"),
            "exception": record.exc_info and self.formatException(record.exc_info).splitlines()[-1],
            "names": sorted(vars(record).keys() - vars(logging.makeLogRecord({})).keys() - {"extra"}),
        })

class Held(Json):
    may_run = threading.Event()
    def format(self, record):
        self.may_run.wait(20)
        return super().format(record)

def file_handler(formatter, name="app.log"):
    handler = logging.FileHandler(name)
    handler.setFormatter(formatter)
    return handler

log = logging.getLogger("app")
log.setLevel(logging.DEBUG)
log.propagate = False
"""


@pytest.fixture
def played(run_program):
    """Run a program; return the lines of app.log and the program's output."""

    def run(body, **options):
        outcome, folder = run_program(_PRELUDE + body, **options)
        return (folder / "app.log").read_text().splitlines(), outcome.expect_success().out.decode().split()

    return run


_ASKED = {
    "deferred": "logspool.install()\nhandler = file_handler(logspool.deferred(Json()))\n",
    "option": "logspool.install(defer_formatting=True)\nhandler = file_handler(Json())\n",
}


@pytest.mark.parametrize("how", _ASKED)
def test_a_thread_formats_the_values_captured_by_the_call(played, how):
    body = """
log.addHandler(handler)
values, extra = [1], {"a": [1]}
log.info("first %s", values, extra={"extra": extra})
values.append(2)
extra["a"].append(2)
log.info("second %(a)d", {"a": 2})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("third")
threading.Thread(target=log.info, args=["%d", 4], name="worker").start()
[thread.join() for thread in threading.enumerate() if thread.name == "worker"]
handler.flush()
print(len(open("app.log").readlines()), logspool.stats().deferred.formatted)
"""
    lines, told = played(_ASKED[how] + body)

    found = [json.loads(line) for line in lines]
    assert ["4", "4"] == told
    assert ["first [1]", "second 2", "third", "4"] == [line["message"] for line in found]
    assert {False} == {line["here"] for line in found}
    assert {"a": [1]} == found[0]["extra"]
    assert "ZeroDivisionError: division by zero" == found[2]["exception"]
    assert ["MainThread"] * 3 + ["worker"] == [line["thread"] for line in found]
    assert [] == found[1]["names"]


@pytest.mark.parametrize("how", ["flush", "close", "uninstall", "logspool.flush", "the end", "removeHandler", "exit"])
def test_every_wait_for_the_queue_also_waits_for_the_formatter(run_program, how):
    body = """
logspool.install()
handler = file_handler(logspool.deferred(Held()))
log.addHandler(handler)
for number in range(20):
    log.info("%d", number)
before = logspool.stats().deferred
threading.Timer(0.2, Held.may_run.set).start()
{"flush": handler.flush, "close": handler.close, "uninstall": logspool.uninstall, "logspool.flush": logspool.flush,
 "removeHandler": lambda: log.removeHandler(handler), "the end": lambda: None, "exit": sys.exit}[sys.argv[1]]()
print(before.waiting, before.accepted, len(open("app.log").readlines()))
"""
    outcome, folder = run_program(_PRELUDE + body, how)

    told = outcome.expect_success().out.decode().split()
    lines = (folder / "app.log").read_text().splitlines()
    assert list(map(str, range(20))) == [json.loads(line)["message"] for line in lines]
    assert how == "exit" or ["20", "20"] == told[:2]
    assert how in ("exit", "the end") or "20" == told[2]


def test_lines_stay_in_order_when_the_formatter_changes(played):
    body = """
logspool.install()
handler = file_handler(logspool.deferred(Held()))
log.addHandler(handler)
for number in range(3):
    log.info("deferred %d", number)
handler.setFormatter(logging.Formatter("%(message)s"))
for number in range(3):
    log.info("plain %d", number)
waiting = logspool.stats().deferred.waiting
Held.may_run.set()
logspool.flush()
print(waiting)
until = time.monotonic() + 20
while logspool.stats().loggers["app"].native == 0 and time.monotonic() < until:
    log.info("later")
    time.sleep(0.05)
print(logspool.stats().loggers["app"].native > 0)
"""
    lines, told = played(body)

    assert ["6", "True"] == told
    messages = [json.loads(line)["message"] for line in lines[:3]] + lines[3:6]
    assert [*(f"deferred {number}" for number in range(3)), *(f"plain {number}" for number in range(3))] == messages


def test_several_handlers_get_the_record_as_it_was(played):
    body = """
logspool.install()
log.addHandler(file_handler(logspool.deferred(Held())))
log.addHandler(file_handler(logging.Formatter("%(message)s"), "second.log"))
third = file_handler(Json(), "third.log")
third.addFilter(lambda record: setattr(record, "msg", "changed %d") or True)
log.addHandler(third)
log.info("message %d", 1)
Held.may_run.set()
logspool.flush()
print(open("second.log").read().strip().replace(" ", "_"), json.loads(open("third.log").read())["message"])
"""
    lines, told = played(body)

    assert ["message_1", "changed", "1"] == told
    assert "message 1" == json.loads(lines[0])["message"]
    assert [] == json.loads(lines[0])["names"]


_ATTRIBUTES = """
import asyncio, json, logging, multiprocessing, os, threading, time
from suite import side

may_run, latest = threading.Event(), [float("inf")]

class Attributes(logging.Formatter):
    def format(self, record):
        if side.INSTALLED:
            may_run.wait(20)
        shown = {name: repr(value) for name, value in vars(record).items()}
        times = [shown.pop(name) for name in ("created", "msecs", "relativeCreated")]
        right = [
            began <= record.created <= latest[0],
            abs(record.msecs - record.created % 1 * 1000) < 2,
            0 < record.relativeCreated - (began - born) * 1000 < 60_000,
            type(record) is logging.LogRecord,
        ]
        shown["thread"] = record.thread and (record.thread == main)
        shown["process"] = record.process and (record.process == os.getpid())
        return json.dumps([record.getMessage(), right, list(vars(record)), shown])

class Text(str):
    pass

born = time.time()
main = threading.get_ident()
handler = logging.FileHandler("app.log")
handler.setFormatter(Attributes())
logging.basicConfig(handlers=[handler], level=logging.DEBUG)
side.install(defer_formatting=True)
log = logging.getLogger("shop.cart")
logging.getLogger("asyncio").setLevel(logging.WARNING)

def calls():
    log.info("plain")
    log.debug("%s paid %d of %.2f", "Ann", 3, 9.99)
    log.info("%(a)d", {"a": 1})
    log.info("%r %r %r %r", None, True, b"x", (1, "two"))
    log.warning(5)
    log.info(Text("own text %s"), Text("value"))
    changed = [1]
    log.info(changed)
    log.info("%s", changed)
    changed.append(2)
    log.log(25, "no name")
    log.log(logging.ERROR, "the same for a level of its own")

async def in_a_task():
    log.info("in a task")

began = time.time()
calls()
logging.addLevelName(25, "NOTICE")
log.log(25, "a name")
logging.addLevelName(25, "LATER")
worker = threading.Thread(target=calls, name="worker")
worker.start()
worker.join()
me = threading.current_thread()
me.name = "renamed"
log.info("by another name")
me.name = "MainThread"
asyncio.run(in_a_task())
log.info("an extra %d", 1, extra={"user": "ann"})
for switch in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
    setattr(logging, switch, False)
    log.info("without %s", switch)
if side.INSTALLED:
    import logspool
    print(logspool.stats().deferred.accepted)
latest[0] = time.time()
may_run.set()
side.settle()
"""


def test_a_record_has_the_attributes_of_its_call(run_program):
    lines = {}
    for name in ("stock", "installed"):
        outcome, folder = run_program(_ATTRIBUTES, side=name)
        lines[name] = [json.loads(line) for line in (folder / "app.log").read_text().splitlines()]
        told = outcome.expect_success().out.split()

    for line in lines["stock"] + lines["installed"]:
        if line[0] in ("1", "own text value", "[1]"):
            # If the program could change a value later, the text of the message is captured instead of the value.
            line[3].update(msg=None, args=None)
    assert [b"28"] == told
    assert 28 == len(lines["stock"])
    assert [[True] * 4] * 28 == [right for _, right, _, _ in lines["installed"]]
    for stock, installed in zip(lines["stock"], lines["installed"], strict=True):
        assert stock == installed


def test_a_forked_child_formats_only_its_own_records(played):
    body = """
logspool.install()
handler = file_handler(logspool.deferred(Json()))
log.addHandler(handler)
for number in range(50):
    log.info("parent %d", number)
child = os.fork()
if child == 0:
    log.info("child")
    logspool.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1])
log.info("parent after")
"""
    lines, told = played(body)

    messages = [json.loads(line)["message"] for line in lines]
    assert ["0"] == told
    assert 1 == messages.count("child")
    messages.remove("child")
    assert [*(f"parent {number}" for number in range(50)), "parent after"] == messages


def test_a_formatter_that_raises_is_reported_and_the_next_line_is_written(run_program):
    body = """
class Raising(Json):
    def format(self, record):
        if record.args == (1,):
            raise ValueError("on purpose")
        return super().format(record)

logspool.install()
log.addHandler(file_handler(logspool.deferred(Raising())))
for number in range(3):
    log.info("%d", number)
"""
    outcome, folder = run_program(_PRELUDE + body)

    lines = (folder / "app.log").read_text().splitlines()
    assert ["0", "2"] == [json.loads(line)["message"] for line in lines]
    assert b"--- Logging error ---" in outcome.expect_success().err
    assert b"ValueError: on purpose" in outcome.err


def test_a_full_queue_refuses_and_counts(played):
    body = """
logspool.install()
log.addHandler(file_handler(logspool.deferred(Held())))
for number in range(10_050):
    log.info("%d", number)
refused = logspool.stats().deferred.refused
status = logspool.health().status
Held.may_run.set()
logspool.flush()
after = logspool.stats().deferred
print(refused == {"queue_full": 50}, status, after.accepted == after.formatted, after.waiting)
"""
    lines, told = played(body)

    assert ["True", "degraded", "True", "0"] == told
    assert 10_000 <= len(lines) <= 10_001


@pytest.mark.parametrize("options", ["blocking_levels=('INFO',), blocking_timeout=20", "blocking_levels=()"])
def test_a_call_waits_for_room_as_the_options_of_install_say(played, options):
    body = f"""
logspool.install({options})
log.addHandler(file_handler(logspool.deferred(Held())))
for number in range(10_000):
    log.error("%d", number)
threading.Timer(0.2, Held.may_run.set).start()
log.{"info" if "INFO" in options else "error"}("one more")
print(len(logspool.stats().deferred.refused))
Held.may_run.set()
logspool.flush()
"""
    lines, told = played(body)

    waited = "INFO" in options
    assert ["0" if waited else "1"] == told
    assert 10_001 == len(lines)
    assert ("one more" in lines[-1]) == waited


def test_a_formatter_of_the_collector_needs_no_thread(played):
    body = """
logspool.install(defer_formatting=True)
log.addHandler(file_handler(logspool.deferred(logging.Formatter("%(levelname)s %(message)s"))))
log.info("plain")
logspool.flush()
print(logspool.stats().loggers["app"].native, logspool.stats().deferred.accepted)
"""
    assert (["INFO plain"], ["1", "0"]) == played(body)


def test_doctor_says_how_to_move_a_formatter_off_the_caller(played):
    body = """
from logspool.commands import _doctor
logspool.install()
handler = file_handler(Json())
log.addHandler(handler)
log.info("in the call")
finding = next(str(found) for found in _doctor.findings() if "app" in found.place)
print("Json.format is overridden" in finding, "logspool.deferred(formatter)" in finding)
handler.setFormatter(logspool.deferred(Json()))
log.info("on the thread")
print(any("logger 'app'" in found.place for found in _doctor.findings()), logspool.stats().loggers["app"].reason[-40:])
"""
    _, told = played(body)

    assert ["True", "True", "False"] == told[:3]
    assert "a thread of logspool formats the records".split() == told[3:]


def test_a_deferred_formatter_works_at_once_without_logspool():
    formatter = logspool.deferred(logging.Formatter("%(message)s"))
    record = logging.makeLogRecord({"msg": "message"})

    assert "message" == formatter.format(record)
    assert formatter is logspool.deferred(formatter)
    # Since 3.15 the repr of a stock formatter shows its format.
    assert "<Formatter" in repr(formatter) or "Formatter object" in repr(formatter)


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        (None, "deferred(logging.Formatter(...))"),
        ("%(message)s", "deferred(logging.Formatter(...))"),
        (5, "deferred(logging.Formatter(...))"),
        (logging.Formatter, "deferred(Formatter(...))"),
        (logging.NullHandler(), "handler.setFormatter(deferred(formatter))"),
    ],
)
def test_an_invalid_argument_is_refused_with_a_fix(given, mend):
    with pytest.raises(TypeError) as raised:
        logspool.deferred(given)

    assert mend in str(raised.value)
