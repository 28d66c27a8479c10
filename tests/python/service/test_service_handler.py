"""Every record reaches the service with all its parts, also after a failure of program, service or connection."""

import ast
import collections
import json
import os
import queue
import re
import signal
import threading

import pytest

from service.receiver import Receiver

pytestmark = pytest.mark.real

# argv: address, "installed" or "alone"
BEGIN = """\
import logging, os, sys, threading
import logspool
if sys.argv[2] == "installed":
    logspool.install()
handler = logspool.ServiceHandler(sys.argv[1])
log = logging.getLogger("shop")
log.setLevel(1)
log.addHandler(handler)
"""

MODES = ("memory", "process", "interval", "checkpoint", "sync")


def in_mode(mode: str, options: str = "") -> str:
    """Return the beginning of a program with this durability."""
    return BEGIN.replace("install()", f"install(durability={mode!r}, {options})")


SHAPES = """
from decimal import Decimal

def pay(log):
    log.info("plain")
    log.warning("%s paid %d of %.2f", "Ann", 3, 9.99)
    log.debug("with fields", extra={"user": "ann", "count": 7, "share": 0.5, "yes": True, "nothing": None})
    log.info("with others", extra={"raw": b"x", "price": Decimal("1.50"), "huge": 1 << 70, "low": -(1 << 63)})
    log.info("nested", extra={"basket": {"items": [1, "two", (3.0, None)], 4: {}}, "host": "mine"})
    log.error("text \\u20ac %s", "x" * 70_000)
    log.critical("odd \\udc80")
    with logspool.bind(request="r-1"):
        log.info("bound")
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("it broke")
    log.info("where", stack_info=True)
    worker = threading.Thread(target=log.info, args=("from %s", "a thread"), name="worker-7")
    worker.start()
    worker.join()
    log.log(17, "seventeen")
    log.warning("long %s", "\\u20ac" * 2_000_000, extra={f"field {number}": number for number in range(1100)})
    log.info("deep", extra={"list": [[[0] * 100] * 100] * 100})
"""


@pytest.mark.parametrize("way", ["installed", "alone"])
def test_records_of_every_kind_arrive_with_all_their_parts(run_program, receiver, way):
    outcome, _ = run_program(BEGIN + SHAPES + "pay(log)\nprint(os.getpid())", receiver.address, way, side="stock")
    pid = int(outcome.expect_success().out)
    records = receiver.records(14)
    by_message = {re.sub(r"x{9,}|\u20ac{9,}", "X", record["message"]): record for record in records}

    assert outcome.err == b""
    assert list(by_message) == [
        "plain",
        "Ann paid 3 of 9.99",
        "with fields",
        "with others",
        "nested",
        "text \u20ac X",
        "odd \\udc80",
        "bound",
        "it broke",
        "where",
        "from a thread",
        "seventeen",
        "long X...",
        "deep",
    ]
    for record in records:
        assert record["logger"] == "shop"
        assert record["function"] == ("run" if record["message"] == "from a thread" else "pay")
        assert (record["process"], record["process_name"]) == (pid, "MainProcess")
        assert isinstance(record["thread"], int) and record["line"] > 0
        assert record["host"] in (os.uname().nodename, "mine")
    assert by_message["plain"]["file"].endswith("program.py")
    assert [record["level"] for record in records] == [20, 30, 10, 20, 20, 40, 50, 20, 40, 20, 20, 17, 30, 20]
    fields = by_message["with fields"]
    assert [fields[name] for name in ("user", "count", "share", "yes", "nothing")] == ["ann", 7, 0.5, True, None]
    others = by_message["with others"]
    assert [others[name] for name in ("raw", "price", "huge", "low")] == ["b'x'", "1.50", str(1 << 70), -(1 << 63)]
    assert by_message["nested"]["basket"] == [("items", [1, "two", [3.0, None]]), ("4", [])]
    assert by_message["bound"]["request"] == "r-1"
    assert by_message["it broke"]["exception"].endswith("ZeroDivisionError: division by zero")
    assert by_message["where"]["stack"].startswith("Stack (most recent call last):\n")
    assert by_message["from a thread"]["thread_name"] == "worker-7"
    cut = by_message["long X..."]
    assert len(cut) == 1001 and len(cut["message"].encode()) < 4 * 1024 * 1024
    assert cut["fields_left_out"] == 1100 - (1000 - len(by_message["plain"]))
    assert by_message["deep"]["list"].startswith("[[[0, 0, ")


def test_a_field_named_like_a_part_follows_it(run_program, receiver):
    program = BEGIN + 'log.info("m", extra={"host": "mine", "level": "high"})'
    run_program(program, receiver.address, "installed")[0].expect_success()
    receiver.records(1)
    parts = receiver.entries[0][1]

    assert [value for name, value in parts if name == "host"] == [os.uname().nodename, "mine"]
    assert [value for name, value in parts if name == "level"] == [20, "high"]


def test_python_and_the_collector_make_the_same_entries(run_program, receiver):
    both = """
# Python reads the records that pass a filter.
other = logspool.ServiceHandler(sys.argv[1])
other.addFilter(lambda record: True)
seen = logging.getLogger("seen")
seen.setLevel(1)
seen.addHandler(other)
pay(log)
handler.flush()
pay(seen)
"""
    outcome, _ = run_program(BEGIN + SHAPES + both, receiver.address, "installed")
    outcome.expect_success()
    receiver.records(28)
    shown = [
        [(name, value) for name, value in parts if name not in ("logger", "thread", "stack")]
        for _, parts in receiver.entries
    ]

    for native, python in zip(shown[:14], shown[14:], strict=True):
        assert native == python
    times = [when for when, _ in receiver.entries]
    assert times == sorted(times)


def test_python_reads_the_recorded_bytes_of_an_entry(run_program):
    body = r"""
import logging, os
from decimal import Decimal
from logspool.handlers import _service
os.uname = lambda: type("Names", (), {"nodename": "m"})
deep = "x"
for _ in range(18):
    deep = [deep]
record = logging.makeLogRecord({
    "name": "shop", "levelno": 30, "msg": "odd \udc80", "pathname": "/a.py", "lineno": 300, "funcName": "f",
    "created": 5.25, "process": 7, "processName": "P", "thread": -1, "threadName": "T", "yes": True, "none": None,
    "low": -(1 << 63), "huge": 1 << 64, "share": 0.5, "price": Decimal("1.50"),
    "basket": {"items": [1, (2.0, None)], 4: {}}, "deep": deep,
})
vars(record).pop("taskName", None)
print(_service.entry(record, None))
"""
    expected = (
        b"\x92\xd7\x00\x00\x00\x00\x05\x0e\xe6\xb2\x80\xde\x00\x13"
        b"\xa5level\x1e\xa6logger\xa4shop\xa4file\xa5/a.py\xa4line\xcd\x01,\xa8function\xa1f\xa7process\x07"
        b"\xa4host\xa1m\xa7message\xaaodd \\udc80\xacprocess_name\xa1P\xa6thread\xff\xabthread_name\xa1T"
        b"\xa3yes\xc3\xa4none\xc0\xa3low\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xa4huge\xb418446744073709551616"
        b"\xa5share\xcb?\xe0\x00\x00\x00\x00\x00\x00\xa5price\xa41.50"
        b"\xa6basket\x82\xa5items\x92\x01\x92\xcb@\x00\x00\x00\x00\x00\x00\x00\xc0\xa14\x80"
        b"\xa4deep\xd9'" + b"[" * 18 + b"'x'" + b"]" * 18
    )
    outcome, _ = run_program(body)

    assert ast.literal_eval(outcome.expect_success().out.decode()) == expected


COUNTED = """
def counted():
    sink = logspool.stats().sinks[sys.argv[1]]
    total = sink.total
    known = total("written") + total("queued") + total("spooled") + total("uncertain") + total("dropped")
    assert total("accepted_for_sink") == known, sink
    return total("written"), total("queued"), total("dropped")
"""


@pytest.mark.parametrize("way", ["installed", "alone"])
def test_records_logged_while_the_service_is_down_arrive_when_it_starts(run_program, receiver, way):
    receiver.stop()
    program = (
        COUNTED
        + """
for number in range(20_000):
    log.info("number %d", number)
assert logspool.flush(0.3) is False
print(*counted(), flush=True)
assert sys.argv[1] + " takes no records: " in logspool.health().reasons[0], logspool.health()
os.kill(os.getppid(), signal.SIGUSR1)
assert logspool.flush(30) is True
print(*counted())
"""
    )
    before = signal.signal(signal.SIGUSR1, lambda *_: receiver.listen())
    try:
        outcome, _ = run_program(BEGIN + "import signal\n" + program, receiver.address, way)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert outcome.expect_success().out.split() == b"0 20000 0 20000 0 0".split()
    assert [record["message"] for record in receiver.records(20_000)] == [f"number {i}" for i in range(20_000)]


def test_a_service_that_restarts_repeatedly_gets_every_record_once(run_program, receiver):
    turns = queue.SimpleQueue()

    def turn():
        while turns.get():
            receiver.stop()
            receiver.listen()

    program = """
import signal
for number in range(30_000):
    log.info("number %d", number)
    if number % 5000 == 2500:
        os.kill(os.getppid(), signal.SIGUSR1)
assert logspool.flush(30)
"""
    # Not in the signal handler: the next signal may come before the handler has returned.
    turner = threading.Thread(target=turn)
    turner.start()
    before = signal.signal(signal.SIGUSR1, lambda *_: turns.put(True))
    try:
        outcome, _ = run_program(BEGIN + program, receiver.address, "installed", deadline_seconds=60)
    finally:
        signal.signal(signal.SIGUSR1, before)
        turns.put(False)
        turner.join()

    outcome.expect_success()
    assert [record["message"] for record in receiver.records(30_000)] == [f"number {i}" for i in range(30_000)]


@pytest.mark.parametrize("way", ["installed", "alone"])
def test_interpreter_exit_sends_everything_and_ends_the_stream(run_program, receiver, way):
    program = BEGIN + 'for number in range(5000):\n    log.info("number %d", number)\n'
    run_program(program, receiver.address, way)[0].expect_success()

    assert len(receiver.records(5000)) == 5000
    receiver.wait("the end", lambda: receiver.ended)
    assert receiver.ended == list(receiver.streams)


def test_records_of_many_threads_arrive_once_and_in_order_for_each_thread(run_program, receiver):
    program = """
def work(name):
    for number in range(5000):
        log.info("%s %d", name, number)
threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    run_program(BEGIN + program, receiver.address, "installed")[0].expect_success()
    numbers = collections.defaultdict(list)
    for record in receiver.records(20_000):
        name, number = record["message"].split()
        numbers[name].append(int(number))

    assert numbers == {name: list(range(5000)) for name in "abcd"}


@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_has_its_own_stream(run_program, receiver, mode):
    # In the mode "sync" a call waits until its record is sent.
    count = 10 if mode == "sync" else 100
    program = """
log.info("before")
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        for number in range(int(sys.argv[3])):
            log.info("child %d", number)
        sys.exit()
    children.append(pid)
    log.info("parent")
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
"""
    run_program(in_mode(mode) + program, receiver.address, "installed", str(count))[0].expect_success()
    records = receiver.records(4 + 3 * count)

    assert collections.Counter(record["message"].split()[0] for record in records) == {
        "before": 1,
        "parent": 3,
        "child": 3 * count,
    }
    assert len(receiver.streams) == 4
    assert len({record["process"] for record in records}) == 4


@pytest.mark.parametrize(("way", "mode"), [("alone", "process"), *(("installed", mode) for mode in MODES)])
def test_a_program_ends_in_time_if_the_service_is_silent_and_reports_unsent_records(run_program, receiver, way, mode):
    receiver.silent = True
    if way == "alone":
        program = BEGIN.replace("(sys.argv[1])", "(sys.argv[1], shutdown_timeout=0.5)")
    else:
        # A call that waits for the service returns after `durability_timeout`.
        program = in_mode(mode, "shutdown_timeout=0.5, durability_timeout=0.1")
    program += 'log.info("a")\nlog.error("b %d", 7)\n'
    outcome, _ = run_program(program, receiver.address, way)

    assert outcome.expect_success().seconds < 15
    assert b"ERROR:shop:b 7\n" in outcome.err
    told = [line for line in outcome.err.splitlines() if line.startswith(b"logspool: ")]
    given_up = f"logspool: {receiver.address} did not confirm 2 records within 0.5 s; they are dropped".encode()
    kept = b"logspool: 2 records were not written within 0.5 s; they are kept"
    assert [line[: len(kept)] for line in told] == [kept] if mode != "memory" else told == [given_up]


KILLED = """
for number in range(5000):
    log.info("number %d", number, extra={"list": [number]} if number % 100 == 0 else None)
os.kill(os.getpid(), 9)
"""


def test_the_next_start_sends_the_records_of_a_killed_program(run_program, receiver):
    receiver.stop()
    assert run_program(BEGIN + KILLED, receiver.address, "installed")[0].status == -9
    receiver.listen()
    outcome, _ = run_program(BEGIN + 'log.info("alive")', receiver.address, "installed")

    outcome.expect_success()
    messages = [record["message"] for record in receiver.records(5001)]
    assert set(messages) == {"alive", *(f"number {number}" for number in range(5000))}
    assert [message for message in messages if message != "alive"] == [f"number {number}" for number in range(5000)]


def test_a_keeper_sends_the_records_of_a_killed_program(run_program, receiver):
    begin = BEGIN.replace("install()", "install(keeper=True)")
    assert run_program(begin + KILLED, receiver.address, "installed")[0].status == -9

    def messages():
        # Records that the service had received but not yet acknowledged are sent again.
        return list(dict.fromkeys(dict(parts)["message"] for _, parts in receiver.entries))

    receiver.wait("every record", lambda: len(messages()) == 5000)
    assert messages() == [f"number {number}" for number in range(5000)]
    assert receiver.mistakes == []


def test_recover_sends_leftover_records_and_keeps_them_while_the_service_is_down(run_program, receiver):
    receiver.stop()
    assert run_program(BEGIN + KILLED, receiver.address, "alone")[0].status == -9
    program = "import logspool\nprint(logspool.recover())"
    away, _ = run_program(program)
    receiver.listen()
    there, _ = run_program(program)
    again, _ = run_program(program)

    assert f"cannot append 5000 records to {receiver.address}" in away.expect_success().out.decode()
    assert receiver.address.encode() in there.expect_success().out
    assert [record["message"] for record in receiver.records(5000)] == [f"number {number}" for number in range(5000)]
    assert receiver.address.encode() not in again.expect_success().out


def test_no_call_waits_for_a_service_that_does_not_answer(run_program, receiver):
    receiver.silent = True
    program = (
        COUNTED
        + """
import time
longest = 0
for number in range(50_000):
    start = time.perf_counter()
    log.info("number %d", number)
    longest = max(longest, time.perf_counter() - start)
print(*counted(), longest, flush=True)
os.kill(os.getpid(), 9)
"""
    )
    outcome, _ = run_program(BEGIN + program, receiver.address, "installed")
    assert outcome.status == -9, outcome.err
    written, queued, dropped, longest = outcome.out.split()

    assert (written, dropped) == (b"0", b"0")
    assert int(queued) > 40_000
    assert float(longest) < 1.0


def test_an_uncaught_exception_is_shown_at_once_while_the_service_does_not_answer(run_program, receiver):
    receiver.silent = True
    program = (
        BEGIN.replace("install()", "install(shutdown_timeout=20)")
        + """
import time
log.info("before")
start = time.monotonic()
try:
    1 / 0
except ZeroDivisionError:
    sys.excepthook(*sys.exc_info())
print(time.monotonic() - start, flush=True)
os.kill(os.getpid(), 9)
"""
    )
    outcome, _ = run_program(program, receiver.address, "installed")

    assert float(outcome.out) < 10
    assert b"ZeroDivisionError: division by zero" in outcome.err


def test_dict_config_can_create_a_service_handler(run_program, receiver):
    program = """\
import logging.config, sys
import logspool
logging.config.dictConfig({
    "version": 1,
    "handlers": {"service": {"class": "logspool.ServiceHandler", "address": sys.argv[1], "level": "WARNING"}},
    "root": {"level": "DEBUG", "handlers": ["service"]},
})
logging.info("too low")
logging.warning("high enough")
print(repr(logging.getLogger().handlers[0]), logging.getLogger().handlers[0].address)
"""
    outcome, _ = run_program(program, receiver.address, side="stock")

    shown = f"<ServiceHandler {receiver.address} (WARNING)> {receiver.address}\n"
    assert outcome.expect_success().out.decode() == shown
    assert [record["message"] for record in receiver.records(1)] == ["high enough"]


def test_an_invalid_address_is_an_error_with_a_fix(run_program, receiver):
    program = """\
import logspool
for address in ("host:9020", "tcp://host", "unix://x", 7):
    try:
        logspool.ServiceHandler(address)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""
    told = run_program(program)[0].expect_success().out.decode().splitlines()

    assert told[0] == 'ValueError "host:9020" is no address of a service: it must begin with tcp://, tls:// or unix://'
    assert told[1].endswith('HOST:PORT, the port from 1 to 65535; "host" is not')
    assert "absolute path" in told[2]
    assert told[3].startswith("TypeError")


def test_formatters_filters_and_subclasses_are_respected(run_program, receiver):
    program = """
class Short(logging.Formatter):
    def formatException(self, info):
        return info[0].__name__

class Redacted(logspool.ServiceHandler):
    def emit(self, record):
        record.msg = record.msg.replace("secret", "***")
        super().emit(record)

def named(record):
    record.shop = "north"
    return True

redacted = Redacted(sys.argv[1])
redacted.setFormatter(Short())
redacted.addFilter(named)
log.removeHandler(handler)
log.addHandler(redacted)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("the secret is out")
log.info("%d", "no number")
log.info("after it")
"""
    outcome, _ = run_program(BEGIN + program, receiver.address, "installed")
    first, second = receiver.records(2)

    assert (first["message"], first["exception"], first["shop"]) == ("the *** is out", "ZeroDivisionError", "north")
    assert second["message"] == "after it"
    assert b"--- Logging error ---" in outcome.expect_success().err
    assert b"TypeError: " in outcome.err and b"a real number" in outcome.err


def test_a_service_on_tcp_gets_the_same_records(run_program):
    with Receiver() as receiver:
        program = BEGIN + 'log.info("over %s", "tcp")\nprint(json.dumps(sorted(logspool.stats().sinks)))'
        outcome, _ = run_program("import json\n" + program, receiver.address, "installed")

        assert json.loads(outcome.expect_success().out) == [receiver.address]
        assert receiver.records(1)[0]["message"] == "over tcp"
