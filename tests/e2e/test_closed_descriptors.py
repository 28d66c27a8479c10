"""Programs that close descriptors which they did not open, and reuse the numbers for their own files.

Each program prints its findings: its own files that have changed, and the result of `flush()`. `LOGSPOOL_SEED=N`
replays the random programs; the name of each test has the seed of the run.
"""

import gzip
import json
import os
import random
import re
import socketserver
import threading

import pytest

from suite import fixtures

RUNS = 200 if fixtures.faults_full() else 12
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or random.SystemRandom().random()
SEED = int(os.environ.get("LOGSPOOL_SEED", random.Random(_RUN).randrange(10**6)))
# Ten times the time that a program takes on a busy machine.
SECONDS = 60

START = """\
import errno, json, logging, logging.handlers, os, random, resource, signal, sys, threading
from suite import side

PAYLOAD = b"payload" * 1000

def open_descriptors():
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))

def close_all_but(*kept):
    numbers = [number for number in open_descriptors() if number > 2 and number not in kept]
    for number in numbers:
        try:
            os.close(number)
        except OSError:
            pass
    return numbers

own = {}

def open_files(count):
    for _ in range(count):
        name = f"own-{os.getpid()}-{len(own)}"
        file = open(name, "wb", buffering=0)
        file.write(PAYLOAD)
        own[name] = file

def dup2(number, target):
    # The kernel refuses a target that another thread is about to open.
    while True:
        try:
            return os.dup2(number, target)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise

def take_numbers(numbers):
    for number in numbers:
        name = f"own-{os.getpid()}-{len(own)}"
        with open(name, "w+b", buffering=0) as file:
            file.write(PAYLOAD)
            dup2(file.fileno(), number)
        own[name] = None

def changed():
    return [name for name in own if open(name, "rb").read() != PAYLOAD]

def tell(**more):
    import logspool
    flushed = logspool.flush(20)
    levels = [level for sink in logspool.stats().sinks.values() for level in sink.values()]
    counts = {"flushed": flushed, "changed": changed(), "files": len(own)}
    counts["written"] = sum(level.written for level in levels)
    counts["dropped"] = sum(sum(level.dropped.values()) for level in levels)
    with open(f"told-{os.getpid()}.json", "w") as file:
        json.dump({**counts, **more}, file)

log = logging.getLogger("app")
log.setLevel(logging.INFO)
"""


def _told(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("told-*.json"))]


def _ran(run_program, text, *arguments):
    """Run a program to its end. Return its outcome, its folder, and the reports of its processes."""
    outcome, folder = run_program(text, *arguments, deadline_seconds=SECONDS)
    outcome.expect_success()
    told = _told(folder)
    assert told and all(each["changed"] == [] for each in told), told
    return outcome, folder, told


def _numbers(path):
    return [int(line) for line in path.read_text().splitlines()]


HANDLERS = {
    "file": 'logging.FileHandler("app.log")',
    "overwriting": 'logging.FileHandler("app.log", mode="w")',
    "watched": 'logging.handlers.WatchedFileHandler("app.log")',
    "rotating": 'logging.handlers.RotatingFileHandler("app.log", maxBytes=10**8, backupCount=3)',
    "timed": 'logging.handlers.TimedRotatingFileHandler("app.log", when="D")',
    "logspool": '__import__("logspool").RotatingFileHandler("app.log", maxBytes=10**8, backupCount=3)',
}

AS_DAEMONS_CLOSE = (
    START
    + """
side.install()
handler = HANDLER
log.addHandler(handler)
log.info("%d", 0)
kept = handler.stream.fileno() if handler.stream else -1
if "once" in sys.argv:
    side.settle()
numbers = close_all_but(kept)
if "numbers" in sys.argv:
    take_numbers(numbers)
open_files(30)
for number in range(1, 1001):
    log.info("%d", number)
    if number == 500:
        # Large records have files of their own.
        log.info("%d" + " " * 100_000, number)
tell()
"""
)


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("reuse", ["files", "numbers"])
def test_a_program_that_closes_all_but_its_stream_keeps_every_line(kind, reuse, run_program):
    text = AS_DAEMONS_CLOSE.replace("HANDLER", HANDLERS[kind])
    outcome, folder, [told] = _ran(run_program, text, "once", reuse)

    assert told["flushed"]
    assert sorted([*range(1001), 500]) == _numbers(folder / "app.log")
    assert outcome.err == b""


FOUND_OUTSIDE = """\
import logspool; logspool.install()
import logging, os
h = logging.FileHandler("app.log"); logging.getLogger().addHandler(h); logging.error("one")
keep = h.stream.fileno(); os.closerange(3, keep); os.closerange(keep + 1, 5000)
fs = [open(f"m{k}", "wb") for k in range(12)]
for f in fs: f.write(b"payload"); f.flush()
for k in range(4000): logging.error("%d", k)
print(logspool.flush(20), [os.path.getsize(f.name) for f in fs])
"""


def test_files_opened_after_closerange_receive_no_log_bytes(run_program):
    outcome, folder = run_program(FOUND_OUTSIDE, deadline_seconds=SECONDS)
    outcome.expect_success()

    assert f"True {[7] * 12}\n".encode() == outcome.out
    assert ["one", *map(str, range(4000))] == (folder / "app.log").read_text().splitlines()


DOUBLE_FORK = (
    START
    + """
side.install()
handler = logging.FileHandler("app.log")
log.addHandler(handler)
log.info("%d", 0)

def daemonize():
    for _ in range(2):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status))
        os.setsid()
        log.info("%d", 1)
    numbers = close_all_but(handler.stream.fileno())
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    return numbers

numbers = daemonize()
open_files(30)
for number in range(2, 1000):
    log.info("%d", number)
tell()
"""
)


def test_a_daemon_that_logs_before_each_fork_keeps_every_line(run_program):
    _, folder, [told] = _ran(run_program, DOUBLE_FORK)

    assert told["flushed"]
    assert [0, 1, *range(1, 1000)] == sorted(_numbers(folder / "app.log"))


FORKED_CHILD = (
    START
    + """
side.install()
handler = logging.FileHandler("app.log")
log.addHandler(handler)
for number in range(100):
    log.info("%d", number)
child = os.fork()
if child == 0:
    numbers = close_all_but(handler.stream.fileno())
    take_numbers(numbers)
    open_files(30)
    for number in range(100, 1000):
        log.info("%d", number)
    tell()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for number in range(1000, 1100):
    log.info("%d", number)
tell()
"""
)


def test_a_forked_child_that_closes_descriptors_keeps_every_line(run_program):
    _, folder, told = _ran(run_program, FORKED_CHILD)

    assert 2 == len(told)
    assert list(range(1100)) == sorted(_numbers(folder / "app.log"))


LOST = (
    START
    + """
side.install()
os.mkdir("gone")
handler = logging.FileHandler("gone/app.log")
log.addHandler(handler)
log.info("%d", 0)
side.settle()
os.remove("gone/app.log")
os.rmdir("gone")
close_all_but()
open_files(30)
for number in range(1, 101):
    log.info("%d", number)
tell()
"""
)


def test_unwritable_records_are_counted_and_reported_as_a_failure(run_program):
    outcome, _, [told] = _ran(run_program, LOST)

    assert (1, 100) == (told["written"], told["dropped"])
    assert not told["flushed"]
    told_lines = [line for line in outcome.err.decode().splitlines() if "closed its descriptor" in line]
    assert len(told_lines) == 1, outcome.err
    assert "gone/app.log" in told_lines[0]


SENDERS = {
    "loki": 'logspool.handler(f"loki+http://127.0.0.1:{sys.argv[1]}", line="message", timeout_seconds=5)',
    "socket": 'logspool.handler(f"tcp://127.0.0.1:{sys.argv[1]}")',
}

SENDING = (
    START
    + """
import logspool
logspool.install()
handler = HANDLER
log.addHandler(handler)
for turn in range(3):
    for number in range(100):
        log.info("line %d", 100 * turn + number)
    assert logspool.flush(20)
    close_all_but()
    open_files(30)
    own = {name: None for name in own}
print([name for name in os.listdir() if name.startswith("own") and open(name, "rb").read() != PAYLOAD])
"""
)


class _Lines:
    """A server for HTTP and for lines, which notes every number that it reads after `line `."""

    def __init__(self):
        self.numbers = set()
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                body = b""
                while piece := self.connection.recv(1 << 16):
                    body += piece
                    head, blank, rest = body.partition(b"\r\n\r\n")
                    length = re.search(rb"(?i)content-length: (\d+)", head)
                    if blank and length and len(rest) >= int(length[1]):
                        text, body = rest[: int(length[1])], rest[int(length[1]) :]
                        outer.note(gzip.decompress(text) if b"gzip" in head else text)
                        self.connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                    elif not head.startswith(b"POST"):
                        outer.note(body)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, text):
        self.numbers.update(int(number) for number in re.findall(rb"line (\d+)\W", text))


@pytest.mark.parametrize("kind", SENDERS)
def test_a_program_that_closes_its_sockets_sends_every_line(kind, run_program):
    lines = _Lines()
    outcome, _ = run_program(
        SENDING.replace("HANDLER", SENDERS[kind]), str(lines.server.server_address[1]), deadline_seconds=SECONDS
    )
    lines.server.shutdown()
    lines.server.server_close()

    assert b"[]\n" == outcome.expect_success().out
    assert set(range(300)) == lines.numbers


OTHER_PROCESS = """\
import logging, sys
import logspool
handler = logging.FileHandler("app.log")
logging.getLogger().addHandler(handler)
logspool.install()
logging.error("-1")
"""

STILL_ALIVE = (
    START
    + """
import subprocess
side.install()
handler = logging.FileHandler("app.log")
log.addHandler(handler)
# The pipe is full, so records are queued when the other process starts.
stuck_reader, stuck = os.pipe()
os.set_blocking(stuck, False)
try:
    while True:
        os.write(stuck, bytes(4096))
except BlockingIOError:
    pass
os.set_blocking(stuck, True)
second = logging.StreamHandler(os.fdopen(stuck, "w"))
log.addHandler(second)
for number in range(10):
    log.info("%d", number)
numbers = close_all_but(handler.stream.fileno(), stuck, stuck_reader)
env = {**os.environ}
subprocess.run([sys.executable, sys.argv[1]], env=env, check=True)
for number in range(10, 20):
    log.info("%d", number)
handler.flush()
with open("lines.json", "w") as file:
    json.dump(open("app.log").read().split(), file)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def test_the_queue_of_a_process_that_closed_its_lock_is_not_an_orphan(run_program, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(OTHER_PROCESS)
    _, folder = run_program(STILL_ALIVE, str(other), deadline_seconds=SECONDS)

    lines = [int(line) for line in json.loads((folder / "lines.json").read_text())]
    assert [-1, *range(20)] == sorted(lines)


RANDOM = (
    START
    + """
choice = random.Random(sys.argv[1])
side.install(durability=choice.choice(["process", "process", "interval", "memory"]))
handlers = [logging.FileHandler(f"app{k}.log") for k in range(choice.choice([1, 2, 3]))]
for handler in handlers:
    log.addHandler(handler)
kept = [handler.stream.fileno() for handler in handlers]
keeps = choice.random() < 0.8
stop = threading.Event()
threads = []
counts = {}

def run(who, count):
    mine = random.Random(f"{sys.argv[1]}-{who}")
    for number in range(count):
        large = " " * (70_000 if mine.random() < 0.005 else 0)
        log.info("%s %d%s", who, number, large)
        counts[who] = number + 1

def moment():
    numbers = close_all_but(*kept, *[file.fileno() for file in own.values() if file]) if keeps else close_all_but()
    if not keeps:
        own_open = [name for name, file in own.items() if file]
        for name in own_open:
            # The descriptor is closed already: the object must not close it again.
            dup2(os.open(os.devnull, os.O_RDONLY), own[name].fileno())
    # The kernel assigns the lowest free numbers. A program that wants to reuse exactly these
    # numbers does so in a quiet moment.
    if choice.random() < 0.4 and not threads:
        side.INSTALLED and __import__("logspool").flush(20)
        take_numbers(choice.sample(numbers, min(len(numbers), 20)))
    open_files(choice.randrange(40))

busy = choice.random() < 0.5
if busy:
    threads = [threading.Thread(target=run, args=(f"t{k}", choice.randrange(200, 3000))) for k in range(2)]
for thread in threads:
    thread.start()
for turn in range(choice.choice([1, 2, 3])):
    run(f"main{turn}", choice.randrange(300))
    moment()
run("last", 200)
for thread in threads:
    thread.join()
tell(counts=counts, handlers=len(handlers), keeps=keeps)
"""
)


@pytest.mark.parametrize("number", range(RUNS), ids=lambda number: f"seed-{SEED}-run-{number}")
def test_closing_descriptors_at_a_random_moment_misdirects_no_byte_and_loses_no_line(number, run_program):
    outcome, folder, [told] = _ran(run_program, RANDOM, f"{SEED}-{number}")

    missing = 0
    for handler in range(told["handlers"]):
        found: dict[str, list[int]] = {}
        for line in (folder / f"app{handler}.log").read_text().splitlines():
            who, count = line.split()
            found.setdefault(who, []).append(int(count))
        for who, count in told["counts"].items():
            seen = found.get(who, [])
            assert sorted(set(seen)) == seen
            missing += count - len(seen)
    assert missing == told["dropped"]
    assert told["flushed"] == (missing == 0)
    assert (outcome.err == b"") == (missing == 0), outcome.err
