"""A queue with threads, on the heap, in plain Python, with the counters of the real package.

It replaces the real package while the fault tests check themselves. It survives no kill and no fork, and the memory
test must notice that its records are on the heap. All other tests that need a queue must be green with it.
"""

import atexit
import logging
import os
import sys
import threading
import time
from collections import Counter, deque
from types import SimpleNamespace

CONSOLE_RECORDS = 2000
RETRY_SECONDS = 0.01
# A record is dropped if its target accepts no bytes for this time.
GIVE_UP_SECONDS = 3.0

_lock = threading.RLock()
_levels: dict[str, Counter] = {}
_sinks: dict[int, "_Sink"] = {}


class _Sink:
    def __init__(self, handler):
        self.name = getattr(handler, "baseFilename", None) or f"fd {handler.stream.fileno()}"
        self.descriptor = os.dup(handler.stream.fileno())
        self.bounded = type(handler) is logging.StreamHandler
        self.records = deque()
        self.counts: dict[str, Counter] = {}
        threading.Thread(target=self._work, daemon=True, name="logspool-writer").start()

    def push(self, level, text):
        with _lock:
            count = self.counts.setdefault(level, Counter())
            count["accepted_for_sink"] += 1
            if self.bounded and len(self.records) >= CONSOLE_RECORDS:
                count["dropped"] += 1
            else:
                self.records.append((level, text))

    def _work(self):
        stuck_since = None
        while True:
            if not self.records:
                time.sleep(0.001)
                continue
            level, data = self.records[0]
            data = memoryview(data.encode("utf-8", "backslashreplace"))
            given_up = False
            while data:
                try:
                    data = data[os.write(self.descriptor, data) :]
                    stuck_since = None
                except OSError:
                    stuck_since = stuck_since or time.monotonic()
                    if time.monotonic() - stuck_since > GIVE_UP_SECONDS:
                        given_up = True
                        break
                    time.sleep(RETRY_SECONDS)
            with _lock:
                self.records.popleft()
                self.counts[level]["dropped" if given_up else "written"] += 1
            if given_up and level == "ERROR":
                _fallback(bytes(data).decode())


_printed = deque(maxlen=10)


def _fallback(text):
    if len(_printed) < 10 or time.monotonic() - _printed[0] > 1:
        _printed.append(time.monotonic())
        sys.stderr.write(text)


def install():
    """Pass the output of every StreamHandler with a descriptor through a queue."""
    original = logging.StreamHandler.emit

    def emit(self, record):
        if not hasattr(self.stream, "fileno"):
            return original(self, record)
        text = self.format(record) + self.terminator
        with _lock:
            count = _levels.setdefault(record.levelname, Counter())
            count["offered"] += 1
            count["accepted"] += 1
            if id(self) not in _sinks:
                _sinks[id(self)] = _Sink(self)
        _sinks[id(self)].push(record.levelname, text)

    logging.StreamHandler.emit = emit
    logging.FileHandler.emit = emit
    atexit.register(flush, 5)


def flush(timeout=None):
    """Wait until every queue is empty."""
    until = time.monotonic() + (3600 if timeout is None else timeout)
    while any(sink.records for sink in _sinks.values()):
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def stats():
    """Return counters like the real package; there are no paths."""
    with _lock:
        levels = {
            name: {"offered": count["offered"], "accepted": count["accepted"], "refused": {}}
            for name, count in _levels.items()
        }
        sinks = {
            f"{sink.name}-{number}": {
                level: {
                    "accepted_for_sink": count["accepted_for_sink"],
                    "written": count["written"],
                    "queued": sum(1 for each, _ in sink.records if each == level),
                    "spooled": 0,
                    "dropped": {"overflow": count["dropped"]},
                    "uncertain": 0,
                }
                for level, count in sink.counts.items()
            }
            for number, sink in enumerate(_sinks.values())
        }
    return SimpleNamespace(paths=None, levels=levels, sinks=sinks)
