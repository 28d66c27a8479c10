"""Threads log while filters, formatters, handlers and record factories change: every call is in the file once."""

import json

import pytest

from suite import fixtures, lines, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

THREADS = 8
CALLS = 20_000 if fixtures.faults_full() else 600
# Ten times the time that a busy machine needs, for each thousand calls of a thread.
SECONDS = 60 + 60 * CALLS // 1000

PROGRAM = """\
import faulthandler, itertools, json, logging, os, random, sys, threading, time
from suite import side

what, THREADS, CALLS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
faulthandler.dump_traceback_later(int(sys.argv[4]), exit=True)

class Sees(logging.Filter):
    def filter(self, record):
        record.seen = record.getMessage().split()[0]
        return True

class ReplacesDict:
    def filter(self, record):
        record.__dict__ = dict(record.__dict__)
        return True

class Colours(logging.Formatter):
    def format(self, record):
        return super().format(record)

class OwnTime(logging.Formatter):
    def formatTime(self, record, datefmt=None):
        return ""

class OwnMessage(logging.Formatter):
    def formatMessage(self, record):
        return record.message

class OwnException(logging.Formatter):
    def formatException(self, exc_info):
        return super().formatException(exc_info)

class Counts(logging.Handler):
    def __init__(self):
        super().__init__()
        self.counted = {}
        counters.append(self)

    def emit(self, record):
        with self.lock:
            self.counted[record.getMessage()] = self.counted.get(record.getMessage(), 0) + 1

class OwnRecord(logging.LogRecord):
    pass

def factory(*args, **kwargs):
    record = logging.LogRecord(*args, **kwargs)
    record.made_by = "factory"
    return record

counters = []
filters = [Sees(), ReplacesDict(), logging.Filter(), logging.Filter("app"), lambda record: True]
formatters = [
    logging.Formatter("%(message)s"), logging.Formatter("{message}", style="{"), Colours("%(message)s"),
    OwnTime("%(asctime)s%(message)s"), OwnMessage("%(message)s"), OwnException("%(message)s"),
]
handlers = [
    logging.NullHandler(), Counts(), logging.FileHandler("second.log"), logging.FileHandler("third.log", delay=True),
]
factories = [logging.LogRecord, OwnRecord, factory]

log = logging.getLogger("app")
log.setLevel(logging.INFO)
# It stays first in the list: if a handler before it were removed, stock logging would skip it, too.
kept = logging.FileHandler("app.log")
log.addHandler(kept)
log.propagate = False
side.install()
lock = threading.Lock()

def change_filters(choice):
    target = choice.choice([log, kept])
    filter = choice.choice(filters)
    # One thread at a time: with stock logging, two threads that remove the same filter raise an error.
    with lock:
        (target.removeFilter if filter in target.filters else target.addFilter)(filter)

def change_handlers(choice):
    with lock:
        handler = choice.choice(handlers)
        if handler not in log.handlers:
            log.addHandler(handler)
            return
        log.removeHandler(handler)
        if type(handler) is Counts:
            # Added again, it would be last, and stock logging too could call it twice for one record.
            handlers[handlers.index(handler)] = Counts()

def change_classes(choice):
    kind, name = choice.choice([
        (logging.Logger, "handle"), (logging.Logger, "callHandlers"), (logging.Filter, "filter"),
        (logging.Handler, "handle"), (logging.Formatter, "format"), (logging.Formatter, "formatTime"),
        (logging.Formatter, "formatException"),
    ])
    with lock:
        stock = vars(kind)[name]
        setattr(kind, name, lambda *args, **kwargs: stock(*args, **kwargs))
        time.sleep(0)
        setattr(kind, name, stock)

changes = {
    "filters": change_filters,
    "formatters": lambda choice: kept.setFormatter(choice.choice(formatters)),
    "handlers": change_handlers,
    "factory": lambda choice: logging.setLogRecordFactory(choice.choice(factories)),
    "classes": change_classes,
}
chosen = list(changes.values()) if what == "everything" else [changes[what]]

def busy(who):
    choice = random.Random(who)
    for number in range(CALLS):
        if number % 20 == 0:
            choice.choice(chosen)(choice)
        if number % 50 == 49:
            try:
                raise ValueError(f"{who} {number}")
            except ValueError:
                log.exception("%s %d end", who, number)
        elif number % 10 == 3:
            log.error("%s %d end", who, number, extra={"request": number})
        else:
            log.error("%s %d end", who, number)

threads = [threading.Thread(target=busy, args=(f"thread{each}",)) for each in range(THREADS)]
for thread in threads:
    thread.start()
if what == "everything":
    # The children log with the inherited configuration.
    for each in range(5):
        time.sleep(0.01)
        # A thread that writes through a Python file holds the lock of the file, and a child would inherit it locked.
        # Stock logging hangs in the same way. In the child, logging makes new locks for its handlers.
        held = [kept, *handlers]
        for handler in held:
            handler.acquire()
        child = os.fork()
        if child == 0:
            for number in range(20):
                log.error("child%d %d end", each, number)
            logging.shutdown()
            os._exit(0)
        for handler in held:
            handler.release()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for thread in threads:
    thread.join()
side.settle(60)
faulthandler.cancel_dump_traceback_later()
print(json.dumps(max((count for counter in counters for count in counter.counted.values()), default=1)))
"""


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("what", ["filters", "formatters", "handlers", "factory", "classes", "everything"])
def test_each_call_is_in_the_file_once_whatever_changes(run_program, queue_dir, what):
    arguments = (what, str(THREADS), str(CALLS), str(SECONDS))
    outcome, folder = run_program(
        PROGRAM, *arguments, deadline_seconds=SECONDS + 30, options=("-W", "ignore::DeprecationWarning")
    )

    assert outcome.status == 0, outcome.err.decode(errors="replace")[-3000:]
    assert outcome.err == b""
    assert json.loads(outcome.out) == 1
    found = lines.count(folder / "app.log")
    wanted = {f"thread{each}": range(CALLS) for each in range(THREADS)}
    if what == "everything":
        wanted |= {f"child{each}": range(20) for each in range(5)}
    missing = {who: lost[:10] for who in wanted if (lost := found.missing(who, wanted[who]))}
    assert missing == {}
    assert found.doubled() == {}
    assert found.out_of_order() == {}
    raised = [line for line in found.other if line.startswith(b"ValueError: ")]
    assert sorted(raised) == sorted(
        f"ValueError: thread{each} {number}".encode() for each in range(THREADS) for number in range(49, CALLS, 50)
    )
    assert queue_folder.left_in(queue_dir) == []
