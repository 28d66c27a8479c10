"""Measure where the resident memory of a process under a mixed load goes: used, or free in the C library's allocator.

`python bench/resident_memory.py SECONDS` prints a line from time to time, and the same after `malloc_trim(0)`.
`MALLOC_ARENA_MAX=1` shows how much of it is free memory in arenas of threads.
"""

import ctypes
import logging
import logging.handlers
import random
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import logspool

LIBC = ctypes.CDLL(None)
LIBC.fopen.restype = ctypes.c_void_p
LIBC.fopen.argtypes = ctypes.c_char_p, ctypes.c_char_p
LIBC.malloc_info.argtypes = ctypes.c_int, ctypes.c_void_p
LIBC.fclose.argtypes = (ctypes.c_void_p,)
THREADS, SAMPLES = 6, 16


def report(folder: Path) -> str:
    """Return the resident memory and the state of the allocator, in KiB, with the counts of records."""
    path = folder / "malloc.xml"
    file = LIBC.fopen(str(path).encode(), b"w")
    LIBC.malloc_info(0, file)
    LIBC.fclose(file)
    text = path.read_text()
    totals = text[text.rindex("</heap>") :]
    free = sum(map(int, re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"', totals)))
    system = int(re.findall(r'<system type="current" size="(\d+)"', totals)[0])
    resident = re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0]
    levels = logspool.stats().levels.values()
    accepted, refused = sum(level.accepted for level in levels), sum(sum(level.refused.values()) for level in levels)
    heap = f"used {(system - free) // 1024}, free {free // 1024} in {text.count('<heap nr')} arenas"
    return f"resident {resident}, {heap}; accepted {accepted:,}, refused {refused:,}"


def load(number: int, until: float) -> None:
    """Log records of several kinds, until a time."""
    choose = random.Random(number)
    logs = [logging.getLogger(name) for name in ("plain", "json", f"other.{number}")]
    while time.monotonic() < until:
        log, kind = choose.choice(logs), choose.random()
        if kind < 0.6:
            log.info("user %s did %d in %.3f ms", "bob", number, 0.25)
        elif kind < 0.8:
            log.info("extra %s", "v" * choose.randrange(300), extra={"request": choose.random()})
        elif kind < 0.9:
            try:
                raise KeyError(number)
            except KeyError:
                log.exception("failed %d", number)
        elif kind < 0.901:
            log.warning("large %s", "x" * choose.randrange(200_000))
        else:
            log.debug("unique " + str(choose.random()))
        if choose.random() < 0.05:
            time.sleep(choose.random() * 0.002)


def main() -> None:
    """Run the load and print the reports."""
    seconds = float(sys.argv[1])
    logspool.install(fallback=None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        form = logging.Formatter("%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s")
        rotating = logging.handlers.RotatingFileHandler(folder / "all.log", maxBytes=20_000_000, backupCount=2)
        handlers = {"": rotating, **{each: logging.FileHandler(folder / f"{each}.log") for each in ("plain", "json")}}
        for each, handler in handlers.items():
            handler.setFormatter(logspool.JSONFormatter() if each == "json" else form)
            logging.getLogger(each).addHandler(handler)
        logging.getLogger().setLevel(logging.DEBUG)
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=load, args=(number, until)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            print(report(folder), flush=True)
            time.sleep(seconds / SAMPLES)
        for thread in threads:
            thread.join()
        logspool.flush()
        print("at the end:", report(folder))
        LIBC.malloc_trim(0)
        print("trimmed:", report(folder))
        logging.shutdown()


if __name__ == "__main__":
    main()
