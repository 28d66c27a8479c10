"""All differences from stock logging after `install()`: one test for each row of docs/explain/surprises.md."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from suite import programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explain" / "surprises.md"

_PRELUDE = """\
import json, logging, os, sys, threading, time
from suite import side
INSTALLED = os.environ["SUITE_SIDE"] == "installed"
log = logging.getLogger("app")
def configure(**options):
    if "stream" not in options:
        options.setdefault("filename", "app.log")
    logging.basicConfig(level=logging.INFO, format="%(message)s", **options)
    side.install()
def tell(**values):
    print(json.dumps(values))
"""


@pytest.fixture
def told(run_program):
    """Give a function that runs a program on a side and returns the values that it printed last."""

    def run(body, side, **variables):
        outcome, _ = run_program(_PRELUDE + body, side=side, **variables)
        outcome.expect_success()
        return json.loads(outcome.out.splitlines()[-1])

    return run


def test_lines_on_a_pipe_can_arrive_after_later_prints(run_program):
    body = """
configure(stream=sys.stdout)
for number in range(200):
    log.info("logged %d", number)
    if sys.argv[1] == "flush" and INSTALLED:
        import logspool
        logspool.flush()
    print("printed", number, flush=True)
"""
    seen = {}
    for side in programs.SIDES:
        for how in ("at once", "flush"):
            outcome, _ = run_program(_PRELUDE + body, how, side=side, PYTHONUNBUFFERED="")
            seen[side, how] = outcome.expect_success().out.decode().splitlines()
    in_order = [f"{word} {number}" for number in range(200) for word in ("logged", "printed")]

    assert in_order == seen["stock", "at once"] == seen["installed", "flush"]
    assert in_order != seen["installed", "at once"]
    assert sorted(in_order) == sorted(seen["installed", "at once"])


def test_the_output_of_a_printing_handler_stays_in_order_with_the_lines(run_program):
    body = """
class Printer(logging.Handler):
    def emit(self, record):
        print("printed", record.args[0], flush=True)

configure(stream=sys.stdout)
logging.getLogger().addHandler(Printer())
for number in range(200):
    log.info("logged %d", number)
"""
    outcome, _ = run_program(_PRELUDE + body, PYTHONUNBUFFERED="")
    lines = outcome.expect_success().out.decode().splitlines()

    assert lines == [f"{word} {number}" for number in range(200) for word in ("logged", "printed")]


def test_earlier_prints_stay_before_later_lines(run_program):
    body = """
configure(stream=sys.stdout)
for number in range(200):
    print("printed", number)
    log.info("logged %d", number)
"""
    outcome, _ = run_program(_PRELUDE + body, PYTHONUNBUFFERED="")
    lines = outcome.expect_success().out.decode().splitlines()

    assert all(lines.index(f"printed {number}") < lines.index(f"logged {number}") for number in range(200))


_READ_AT_ONCE = """
configure(filemode="w")
missing = 0
for number in range(200):
    log.info("line %d", number)
    if sys.argv[1:] == ["flush"]:
        logging.root.handlers[0].flush()
    with open("app.log") as file:
        missing += f"line {number}\\n" not in file.read()
tell(missing=missing)
"""


def test_a_file_read_right_after_the_call_can_lack_the_line(told, run_program):
    outcome, _ = run_program(_PRELUDE + _READ_AT_ONCE, "flush")

    assert {"missing": 0} == told(_READ_AT_ONCE, "stock")
    assert 0 < told(_READ_AT_ONCE, "installed")["missing"]
    assert {"missing": 0} == json.loads(outcome.expect_success().out)


_OWN_FLUSH = """
stream = open("app.log", "a")
configure(stream=stream)
handler = logging.root.handlers[0]
handler.flush = stream.flush
file = open("app.log")
missing = 0
for number in range(300):
    log.info("line %d", number)
    handler.flush()
    missing += f"line {number}\\n" not in file.read()
tell(missing=missing)
"""


def test_a_flush_of_the_stream_instead_of_the_handler_does_not_wait(told):
    assert {"missing": 0} == told(_OWN_FLUSH, "stock")
    assert 0 < told(_OWN_FLUSH, "installed")["missing"]


def test_a_message_object_is_turned_into_text_once(told):
    body = """
class Message:
    asked = 0
    def __str__(self):
        Message.asked += 1
        return "text"
logging.root.addHandler(logging.FileHandler("second.log"))
configure()
logging.root.addHandler(logging.FileHandler("third.log"))
logging.root.setLevel(logging.INFO)
log.info(Message())
tell(asked=Message.asked, handlers=len(logging.root.handlers))
"""
    stock, installed = told(body, "stock"), told(body, "installed")

    assert stock["handlers"] == stock["asked"] == installed["handlers"]
    assert 1 == installed["asked"]

    body = """
asked = []
class Noting:
    def __init__(self, name):
        self.name = name
    def __str__(self):
        asked.append(self.name)
        return self.name
for name in ("first.log", "second.log"):
    handler = logging.FileHandler(name)
    handler.setFormatter(logging.Formatter("%(field)s %(message)s"))
    logging.root.addHandler(handler)
side.install()
log.error(Noting("message"), extra={"field": Noting("field")})
tell(asked=asked)
"""
    assert ["message", "field", "message", "field"] == told(body, "stock")["asked"]
    assert ["field", "message"] == told(body, "installed")["asked"]


def test_a_write_into_the_dict_of_a_handler_is_not_seen(told):
    body = """
configure()
log.info("first")
handler = logging.root.handlers[0]
handler.__dict__["level"] = logging.ERROR
log.info("second")
handler.level = logging.ERROR
log.info("third")
handler.flush()
tell(lines=open("app.log").read().split())
"""
    assert {"lines": ["first"]} == told(body, "stock")
    assert {"lines": ["first", "second"]} == told(body, "installed")


def test_an_in_place_change_of_a_list_of_a_formatter_is_not_seen(told):
    pytest.importorskip("pythonjsonlogger")
    body = """
configure()
from pythonjsonlogger.json import JsonFormatter
formatter = JsonFormatter("%(message)s")
handler = logging.root.handlers[0]
handler.setFormatter(formatter)
log.info("first")
formatter._required_fields.append("levelname")
log.info("second")
formatter._required_fields = [*formatter._required_fields]
log.info("third")
handler.flush()
tell(shown=[len(json.loads(line)) for line in open("app.log")])
"""
    assert {"shown": [1, 2, 2]} == told(body, "stock")
    assert {"shown": [1, 1, 2]} == told(body, "installed")


def test_errors_of_a_file_are_in_stats_and_not_on_stderr(run_program):
    body = """
configure(filename="/dev/full")
log.info("no room")
if INSTALLED:
    import logspool
    deadline = time.monotonic() + 20
    while not any(sink.errors for sink in logspool.stats().sinks.values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    print(logspool.stats(), file=sys.stderr)
    tell(errors=any(sink.errors for sink in logspool.stats().sinks.values()))
    sys.stdout.flush()
    os.kill(os.getpid(), 9)
"""
    stock, _ = run_program(_PRELUDE + body, side="stock")
    installed, _ = run_program(_PRELUDE + body)

    assert b"--- Logging error ---" in stock.err
    assert b"--- Logging error ---" not in installed.err
    assert {"errors": True} == json.loads(installed.out)


def test_a_stalled_file_does_not_stall_the_program(run_program):
    body = """
import logspool
os.mkfifo("pipe")
kept = os.open("pipe", os.O_RDWR)
logging.basicConfig(filename="pipe", level=logging.INFO, format="%(message)s")
logspool.install(shutdown_timeout=0.5)
for number in range(20_000):
    log.info("a line of a pipe that nobody reads %d", number)
print("went on")
"""
    outcome, _ = run_program(_PRELUDE + body)

    assert b"went on\n" == outcome.out
    assert 0 == outcome.status
    assert re.search(rb"logspool: \d+ records were not written within 0.5 s", outcome.err), outcome.err


def test_holding_the_lock_of_a_handler_does_not_hold_its_output(told):
    body = """
configure()
log.info("first")
handler = logging.root.handlers[0]
handler.acquire()
thread = threading.Thread(target=log.info, args=("second",), daemon=True)
thread.start()
thread.join(2)
waits = thread.is_alive()
handler.release()
thread.join()
tell(waits=waits)
"""
    assert {"waits": True} == told(body, "stock")
    assert {"waits": False} == told(body, "installed")


def test_logging_methods_are_not_python_functions(told):
    body = """
configure()
same = logging.getLogger().info.__func__ is logging.Logger.info
tell(kind=type(logging.Logger.info).__name__, same=same)
"""
    assert {"kind": "function", "same": True} == told(body, "stock")
    installed = told(body, "installed")
    assert "function" != installed["kind"]
    assert not installed["same"]


def test_a_formatter_that_raises_is_called_twice(told):
    body = """
calls = []
class Raising(logging.Formatter):
    def formatTime(self, record, datefmt=None):
        calls.append("time")
        raise ValueError("on purpose")
configure()
logging.root.handlers[0].setFormatter(Raising("%(asctime)s"))
log.info("logged")
tell(calls=len(calls))
"""
    assert {"calls": 1} == told(body, "stock")
    assert {"calls": 2} == told(body, "installed")


def test_a_filter_sees_no_frames_of_logging_above_it(told):
    body = """
configure()
functions = []
def look(record):
    frame = sys._getframe(1)
    while frame is not None:
        functions.append(frame.f_code.co_name)
        frame = frame.f_back
    return True
logging.root.handlers[0].addFilter(look)
log.info("logged")
tell(functions=functions)
"""
    assert "callHandlers" in told(body, "stock")["functions"]
    assert ["<module>"] == told(body, "installed")["functions"]


def test_the_process_has_threads_that_python_does_not_list(told):
    body = """
configure()
log.info("starts them")
logging.root.handlers[0].flush()
names = []
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{task}/comm") as file:
        names.append(file.read().strip())
tell(python=threading.active_count(), logspool=any(name.startswith("logspool") for name in names))
"""
    assert {"python": 1, "logspool": False} == told(body, "stock")
    assert {"python": 1, "logspool": True} == told(body, "installed")


def test_the_exit_takes_the_locks_of_handlers(told):
    body = """
class Finalized:
    def __del__(self):
        tell(owned=logging.root.handlers[0].lock._is_owned())
configure()
finalized = Finalized()
finalized.itself = finalized
del finalized
"""
    assert {"owned": False} == told(body, "stock")
    assert {"owned": True} == told(body, "installed")


def test_a_handler_whose_descriptor_the_program_closed_writes_to_its_own_file(told):
    body = """
configure()
log.info("first")
number = logging.root.handlers[0].stream.fileno()
os.close(number)
with open("own", "wb") as own:
    assert own.fileno() == number
    log.info("second")
    side.settle()
tell(log=open("app.log").read().split(), own=open("own").read().split())
logging.root.handlers[0].stream = open("app.log", "a")
"""
    assert {"log": ["first"], "own": ["second"]} == told(body, "stock")
    assert {"log": ["first", "second"], "own": []} == told(body, "installed")


def test_lines_of_parent_and_child_have_no_common_order(run_program):
    body = """
configure()
for number in range(1000):
    log.info("parent %d", number)
child = os.fork()
if child == 0:
    for number in range(1000):
        log.info("child %d", number)
    os._exit(0)
os.waitpid(child, 0)
"""
    outcome, folder = run_program(_PRELUDE + body)
    outcome.expect_success()
    lines = (folder / "app.log").read_text().splitlines()

    assert 2000 == len(lines)
    for who in ("parent", "child"):
        assert [f"{who} {number}" for number in range(1000)] == [line for line in lines if line.startswith(who)]


def test_sigterm_writes_queued_records_before_it_ends_the_process(run_program):
    body = """
import signal
configure()
for number in range(3000):
    log.info("%d", number)
with open("/proc/self/status") as file:
    caught = next(line for line in file if line.startswith("SigCgt")).split()[1]
tell(caught=bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1), python=str(signal.getsignal(signal.SIGTERM)))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)
"""
    caught = {}
    for side in programs.SIDES:
        outcome, folder = run_program(_PRELUDE + body, side=side)
        assert -signal.SIGTERM == outcome.status
        assert 3000 == len((folder / "app.log").read_text().splitlines())
        caught[side] = json.loads(outcome.out)

    assert {"stock": False, "installed": True} == {side: facts["caught"] for side, facts in caught.items()}
    assert caught["stock"]["python"] == caught["installed"]["python"]


def test_a_crash_writes_queued_records_before_it_continues(run_program):
    body = """
import faulthandler, signal
faulthandler.disable()
configure()
for number in range(3000):
    log.info("%d", number)
with open("/proc/self/status") as file:
    caught = next(line for line in file if line.startswith("SigCgt")).split()[1]
tell(caught=bool(int(caught, 16) >> (signal.SIGSEGV - 1) & 1), python=str(signal.getsignal(signal.SIGSEGV)))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGSEGV)
time.sleep(30)
"""
    caught = {}
    for side in programs.SIDES:
        outcome, folder = run_program(_PRELUDE + body, side=side)
        assert -signal.SIGSEGV == outcome.status
        assert 3000 == len((folder / "app.log").read_text().splitlines())
        caught[side] = json.loads(outcome.out)

    assert {"stock": False, "installed": True} == {side: facts["caught"] for side, facts in caught.items()}
    assert caught["stock"]["python"] == caught["installed"]["python"]


_KILLED = """
import signal
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H")
side.install()
for number in range(3000):
    log.info("%d", number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _leave_something(run_program, queue_dir, **variables):
    def kill():
        outcome, folder = run_program(_PRELUDE + _KILLED, **variables)
        assert -signal.SIGKILL == outcome.status
        lines = (folder / "app.log").read_text().splitlines()
        return lines if queue_folder.left_in(queue_dir) and len(lines) % 3000 else None

    return until(kill, 60, "a killed program left records")


def test_records_of_a_killed_program_stay_in_shared_memory_until_the_next_start(run_program, queue_dir):
    _leave_something(run_program, queue_dir)
    run_program(_PRELUDE + "configure()\n")[0].expect_success()

    assert [] == queue_folder.left_in(queue_dir)


def test_the_next_start_shows_times_in_its_own_zone(run_program, queue_dir):
    before = _leave_something(run_program, queue_dir, TZ="UTC0")
    outcome, folder = run_program(_PRELUDE + "configure()\n", TZ="AAA-9")
    outcome.expect_success()
    after = (folder / "app.log").read_text().splitlines()[len(before) :]
    hours = {line.split()[0] for line in before}, {line.split()[0] for line in after}

    assert {f"{(int(hour) + 9) % 24:02}" for hour in hours[0]} & hours[1]


_INNER = """
import logging
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
try:
    side.install()
except ImportError:
    logging.info("told")
logging.info("logged")
logging.shutdown()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="many modules of the library cannot be loaded in them")
@pytest.mark.parametrize("side", programs.SIDES)
def test_a_subinterpreter_logs_without_the_queue(run_program, side):
    body = f"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
error = interpreters.run_string(interpreters.create(), {_INNER!r})
assert error is None, error
"""
    outcome, folder = run_program(_PRELUDE + body, side=side)
    outcome.expect_success()

    told = ["told"] if side == programs.INSTALLED else []
    assert [*told, "logged"] == (folder / "app.log").read_text().splitlines()


def test_the_page_names_exactly_these_tests():
    named = re.findall(r"\| `(test_\w+)` \|", PAGE.read_text(encoding="utf-8"))
    here = [name for name in globals() if name.startswith("test_")]

    assert sorted(set(here) - {"test_the_page_names_exactly_these_tests"}) == sorted(named)
