"""Clients of a service, one in each mode, and the records that they reported as accepted."""

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

#: Ten times the time that a busy machine needs.
DEADLINE = 60.0

MODES = ("memory", "process", "interval", "checkpoint", "sync")

# The program writes the number of each accepted record to a pipe: the numbers in the pipe are promised.
PROGRAM = """
import ctypes, json, logging, os, signal, sys, threading, time
import logspool

address, name, records, pause, end, options = sys.argv[1:]
options = json.loads(options)
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(address)])
if options is not None:
    logspool.install(**options)
told = threading.Event()

def listen():
    # The end of stdin tells it to end; a lock of sys.stdin would be in the way then.
    os.read(0, 1)
    told.set()

def leave():
    # Everything arrives, and no call came back without what its mode promises.
    told.wait()
    flushed = logspool.flush(60)
    late = sum(level.not_durable for level in logspool.stats().levels.values())
    if late or not flushed:
        sys.exit(f"{name}: {flushed=} {late=} {logspool.stats()}")

threading.Thread(target=listen, daemon=True).start()
number = 0
while number < int(records) and not told.is_set():
    logging.info("%s %d", name, number)
    os.write(1, b"%d\\n" % number)
    number += 1
    told.wait(float(pause)) if float(pause) else None
exec(end)
"""

RECOVERY = "import logspool, sys\nreport = logspool.recover(*sys.argv[1:])\nassert not report.kept, report"


class Client:
    """A running client: logs `NAME NUMBER`, `records` times or until it is asked to end, then runs `end`."""

    def __init__(
        self,
        address: str,
        name: str,
        env: "dict[str, str]",
        options: "dict | None",
        *,
        records: int = 10**9,
        pause: float = 0.0,
        end: str = "leave()",
    ):
        """Start it. With `options` of None logspool is not installed: the handler works alone."""
        command = [sys.executable, "-c", PROGRAM, address, name, str(records), str(pause), end, json.dumps(options)]
        self.name, self.told, self.said = name, [], []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=env, **pipes)
        self._readers = [
            threading.Thread(target=self.told.extend, args=(self.process.stdout,)),
            threading.Thread(target=self.said.extend, args=(self.process.stderr,)),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def accepted(self) -> int:
        """Return how many records it reported as accepted; a line that a kill cut does not count."""
        return sum(line.endswith(b"\n") for line in list(self.told))

    def wait_accepted(self, count: int) -> None:
        """Wait until `count` records are accepted."""
        until = time.monotonic() + DEADLINE
        while self.accepted < count:
            assert self.process.poll() is None and time.monotonic() < until, (self.name, self.accepted, self.said)
            time.sleep(0.002)

    def ended(self) -> int:
        """Wait for its end; return its exit code."""
        code = self.process.wait(DEADLINE)
        for reader in self._readers:
            reader.join(DEADLINE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        return code

    def tell(self) -> int:
        """Tell it to end; return its exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.ended()

    def __enter__(self) -> "Client":
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it, where it has not ended."""
        self.process.kill()
        self.ended()

    def kill(self, number: int = signal.SIGKILL) -> int:
        """End it by a signal; return its exit code."""
        self.process.send_signal(number)
        return self.ended()


@contextlib.contextmanager
def in_each_mode(address: str, queue_dir: Path, options=lambda mode: {}, *, count=lambda mode: 10**9, **more):
    """Start a client in each mode, named after it, and yield them; clients that still run are killed at the end."""
    env = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    with contextlib.ExitStack() as ends:
        started = []
        for mode in MODES:
            waits = {"shutdown_timeout": DEADLINE, "durability_timeout": DEADLINE}
            chosen = {"durability": mode, **waits, **options(mode)}
            client = Client(address, mode, env, chosen, records=count(mode), **more)
            started.append(ends.enter_context(client))
        yield started


def with_a_spool(folder: Path):
    """Options of a client with a spool, where its mode can have one."""
    return lambda mode: {} if mode == "memory" else {"spool_dir": str(folder / mode)}


def wait_until(what: str, is_so) -> None:
    """Wait until `is_so()` is true."""
    until = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def run(program: str, *arguments: object, queue_dir: Path) -> None:
    """Run a program; it has to succeed."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    env = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    done = subprocess.run(command, env=env, timeout=2 * DEADLINE, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr


def numbers(messages: "list[str]") -> "dict[str, list[int]]":
    """Return the stored numbers of each client, in the order of the store."""
    found = collections.defaultdict(list)
    for message in messages:
        name, number = message.split()
        found[name].append(int(number))
    return found
