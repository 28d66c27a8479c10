"""Compare the C++ header, the Nim module and the Rust crate with other loggers: `make bench-native`.

Each row is a whole process; rows of one group run in turns. A row shows the median of its runs: wall time, processor
time per line, peak memory, and the lines in its file, which are counted. All loggers are lossless here and write lines
of the same form. A whole run is kept in `bench/runs`; the exit code is 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import apart
import machine
from parts import Column, Part
from results import Results
from runner import Bench, numbered
from targets import Target, beside, count

ROOT = machine.ROOT
SOURCES = ROOT / "bench" / "native"
#: The Rust program has dependencies of its own, which are kept built.
RUST_TARGET = ROOT / "build" / "target-bench-native"
#: Lines of a burst, and runs of each row, of a whole run.
LINES, TURNS = 4_000_000, 5
#: Rows of the C++ program: a template of logspool, a pattern of each; `none` is its loop without a logger.
LOGGERS = ("logspool", "logspool-pattern", "spdlog", "spdlog-async", "none")
#: Lines of a run whose pipe is not read at first, at 200,000 a second, and the seconds until it is read.
STALLED_LINES, STALLED_SECONDS = 500_000, 1.5


#: Largest ratios that are asked: group, row, row that it is compared with, largest ratio of the wall times.
WALL_BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool-pattern", "spdlog", 0.4),
    ("burst, 1 thread", "logspool", "spdlog-async", 0.25),
    ("burst, 4 threads", "logspool", "spdlog", 0.5),
    ("burst, 4 threads", "logspool", "spdlog-async", 1 / 15),
    ("hello, Nim", "logspool", "channel", 0.33),
    ("hello, Nim", "logspool", "raw", 6.0),
    ("burst, Rust", "logspool", "tracing-appender", 1 / 5),
    ("burst, Rust", "logspool-tracing", "tracing-appender", 1 / 3),
    ("burst, Rust", "logspool", "spdlog-rs", 1 / 2),
)
#: The same for the processor time per line.
CPU_BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool-pattern", "spdlog", 0.5),
)
#: Most memory of a row, in MB: group, row, bound.
MEMORY_BOUNDS = (("burst, 1 thread", "logspool", 16.0), ("burst, 4 threads", "logspool", 16.0))
#: Most nanoseconds by which a paced call may exceed a call of the empty loop.
CALL_NS = {"p50": 20, "p99": 100, "p99.9": 500}
#: Rust subscribers whose calls below their level are timed, and the number of the calls.
LEFT_OUT_ROWS = ("logspool-tracing", "logspool-plain-layer", "tracing-fmt", "no-subscriber")
LEFT_OUT_CALLS = 3_000_000
#: Most nanoseconds of an event or a span that the layer leaves out, above those without a subscriber.
LEFT_OUT_NS = {"event_ns": 5.0, "span_ns": 5.0}
#: Most milliseconds by which a call may exceed an empty call, in the best run of a stalled pipe.
STALLED_CALL_MS = 1.0


COLUMNS = (
    Column("wall", "wall, s", 3),
    Column("lines", "lines", 0),
    Column("cpu_ns", "CPU a line, ns", 0),
    Column("rss_mb", "peak memory, MB", 1),
    *(Column(name, f"{name}, ns", 0) for name in ("p50", "p99", "p99.9", "max")),
)
GROUPS = ("burst, 1 thread", "burst, 4 threads", "paced, 1 thread", "hello, Nim", "burst, Rust")
STALLED, ORDER, LEFT_OUT = "stalled pipe", "order, 4 threads", "left out, Rust"

TARGETS = (
    *(
        beside(f"{group}: {words} of {row} beside {other}", row, other, group, figure, at_most=bound)
        for words, figure, bounds in (("wall time", "wall", WALL_BOUNDS), ("processor time", "cpu_ns", CPU_BOUNDS))
        for group, row, other, bound in bounds
    ),
    *(Target(f"{group}: {row}", (row, group, "rss_mb"), at_most=mb, unit="MB") for group, row, mb in MEMORY_BOUNDS),
    *(
        Target(f"paced call above an empty loop, {name}", ("logspool", "paced", name), at_most=bound, unit="ns")
        for name, bound in CALL_NS.items()
    ),
    *(
        Target(
            f"{figure.removesuffix('_ns')} left out by the layer, above no subscriber",
            ("logspool-tracing", "left out above none", figure),
            at_most=bound,
            unit="ns",
        )
        for figure, bound in LEFT_OUT_NS.items()
    ),
    Target(
        "stalled pipe: longest call above an empty one, in the best run",
        ("logspool", STALLED, "above_ms"),
        at_most=STALLED_CALL_MS,
        unit="ms",
        take=min,
    ),
    count("lines before an earlier one of their thread", "logspool", ORDER, "of_thread"),
    count("lines before an earlier one of another thread, not counted as late", "logspool", ORDER, "uncounted"),
)


def build(folder: Path, quill: Path | None) -> None:
    """Build the package and the programs. `quill`: a folder with the headers of quill."""
    package = folder / "native"
    subprocess.run([sys.executable, ROOT / "scripts/native_package.py", "--folder", package], check=True)
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-DSPDLOG_FMT_EXTERNAL", "-DSPDLOG_COMPILED_LIB", f"-I{package}/include"]
    flags += [f"-I{quill}"] if quill else []
    link = [f"-L{package}/lib", "-llogspool", f"-Wl,-rpath,{package}/lib", "-lspdlog", "-lfmt", "-pthread"]
    subprocess.run(["g++", *flags, SOURCES / "lines.cpp", "-o", folder / "lines", *link], check=True)
    nim = ["nim", "c", "--hints:off", "-d:release", "--threads:on", "--mm:orc", f"-d:logspoolDir={package}"]
    places = [f"--path:{ROOT / 'bindings/nim/src'}", f"--nimcache:{folder}/cache", f"-o:{folder}/hello"]
    subprocess.run([*nim, *places, SOURCES / "hello.nim"], check=True)
    rust = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", SOURCES / "rust/Cargo.toml"]
    subprocess.run([*rust, "--target-dir", RUST_TARGET], check=True)


def measure(command: list[str], file: Path, wanted: int) -> dict[str, float]:
    """Run a program and return its time, memory and lines."""
    file.unlink(missing_ok=True)
    # No row waits for the disk that still writes the file of the row before it.
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = file.read_bytes() if file.exists() else b""
    # A disk that cannot keep up fills the overflow; logspool then says so in the file.
    lines = text.count(b"\n") - text.count(b" the queue is ")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if command[1] != "none" and lines != wanted:
        raise apart.Failed(f"{lines} lines in the file, not {wanted}")
    figures = json.loads(shown or "{}")
    if "p999" in figures:
        figures["p99.9"] = figures.pop("p999")
    return {"wall": wall, "cpu_ns": cpu / wanted * 1e9, "lines": lines, **figures}


def stalled(program: Path, folder: Path) -> dict[str, float]:
    """Run the program with a pipe that is not read at first; count the lines that come out of the pipe."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    # Opened for both directions, the pipe has a reader at once.
    held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    command = [program, "logspool", "1", str(STALLED_LINES), pipe, "stalled"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            time.sleep(STALLED_SECONDS)
            lines = 0
            while True:
                is_over = running.poll() is not None
                if select.select([held], [], [], 0.05)[0]:
                    lines += os.read(held, 1 << 16).count(b"\n")
                elif is_over:
                    break
            result: dict[str, float] = {"lines": lines, **json.loads(running.stdout.read())}
    finally:
        os.close(held)
        pipe.unlink()
    if not result["lines"] == result["written"] == result["offered"] == STALLED_LINES:
        raise apart.Failed(f"the counts are not exact: {result}")
    return {**result, "above_ms": result["max_ms"] - result["max_empty_ms"]}


def count_inversions(file: Path) -> tuple[int, int]:
    """Count the lines that are not the next one of their thread, and those with an earlier time than a line before."""
    next_lines: Counter[bytes] = Counter()
    newest, of_thread, of_all = b"", 0, 0
    with file.open("rb") as written:
        for line in written:
            time, words = line[:29], line[30:].split()
            if len(words) != 2:
                continue  # A message about the queue.
            thread, number = words[0], int(words[1])
            of_thread += number != next_lines[thread]
            next_lines[thread] = number + 1
            of_all += time < newest
            newest = max(newest, time)
    return of_thread, of_all


def inversions(program: Path, file: Path, lines: int) -> dict[str, float]:
    """Count the lines of 4 threads that are before an earlier one of their thread, or of another one.

    The second kind is allowed for records that logspool has counted as late: their thread lost its processor between
    the time of the record and its place in the queue.
    """
    counters = measure([str(program), "logspool", "4", str(lines // 4), str(file), "ordered"], file, lines)
    of_thread, of_all = count_inversions(file)
    late = counters["late_records"]
    return {"of_thread": of_thread, "late": late, "uncounted": max(0, of_all - late)}


def left_out(row: str, file: Path) -> dict[str, float]:
    """Measure what an event and a span below the level cost with a subscriber."""
    command = [RUST_TARGET / "release/logspool-bench-rust", row, str(LEFT_OUT_CALLS), file, "left-out"]
    result: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return result


def commands(
    folder: Path, file: Path, lines: int, loggers: Sequence[str]
) -> dict[str, tuple[int, dict[str, list[str]]]]:
    """Return the lines and the programs of each group. `loggers`: the rows of the C++ program."""
    native, hello, rust = folder / "lines", folder / "hello", RUST_TARGET / "release/logspool-bench-rust"
    groups = {
        f"burst, {threads} thread{'s' if threads > 1 else ''}": (
            lines,
            {row: [native, row, threads, lines // threads, file] for row in loggers},
        )
        for threads in (1, 4)
    }
    groups["paced, 1 thread"] = 200_000, {row: [native, row, 1, 200_000, file, "paced"] for row in loggers}
    groups["hello, Nim"] = 1_000_000, {row: [hello, row, file] for row in ("logspool", "channel", "raw", "none")}
    names = ("logspool", "logspool-tracing", "tracing-appender", "spdlog-rs", "none")
    groups["burst, Rust"] = lines, {row: [rust, row, lines, file] for row in names}
    return {
        group: (count, {row: [str(word) for word in command] for row, command in rows.items()})
        for group, (count, rows) in groups.items()
    }


class Native(Bench):
    """The comparison of native loggers."""

    title = "C++, Nim and Rust beside other loggers"
    folder = "native"
    notes = ("All loggers are lossless here; the lines of each file were counted.",)
    sizes = (("lines", LINES, "lines of a burst"),)
    rounds, rounds_option = TURNS, "turns"
    parts = (
        *(Part(group, group, COLUMNS) for group in GROUPS),
        Part(
            LEFT_OUT,
            f"{LEFT_OUT_CALLS:,} calls below the level, Rust",
            (Column("event_ns", "an event, ns", 1), Column("span_ns", "a span, ns", 1)),
        ),
        Part(STALLED, f"{STALLED_LINES:,} lines at 200,000 a second", (Column("max_ms", "longest call, ms", 3),)),
    )
    targets = TARGETS

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the folder of quill's headers."""
        parser.add_argument("--quill", type=Path, help="folder with quill's headers; its row is left out without it")

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Build, and run the rows of each group in turns."""
        with tempfile.TemporaryDirectory() as name:
            folder, file = Path(name), Path(name) / "out.log"
            build(folder, options.quill)
            loggers = (*LOGGERS, *(["quill"] if options.quill else []))
            for group, (lines, rows) in commands(folder, file, options.lines, loggers).items():
                for number in numbered(options.rounds, f"{group}, turn"):
                    for row, command in rows.items():
                        results.take(row, group, number, partial(measure, command, file, lines))
            for number in numbered(options.rounds, f"{LEFT_OUT}, turn"):
                for row in LEFT_OUT_ROWS:
                    results.take(row, LEFT_OUT, number, partial(left_out, row, file))
            program = folder / "lines"
            for number in range(options.rounds):
                results.take("logspool", STALLED, number, partial(stalled, program, folder))
            results.take("logspool", ORDER, 0, partial(inversions, program, file, 1_000_000))
        self.add_differences(results)

    def add_differences(self, results: Results) -> None:
        """Add the figures of calls above those of an empty loop, or without a subscriber."""
        paced = (results.rounds(row, "paced, 1 thread") for row in ("logspool", "none"))
        for number, (own, none) in enumerate(zip(*paced)):
            results.add("logspool", "paced", number, {name: own[name] - none[name] for name in CALL_NS})
        layers = (results.rounds(row, LEFT_OUT) for row in ("logspool-tracing", "no-subscriber"))
        for number, (own, none) in enumerate(zip(*layers)):
            above = {name: own[name] - none[name] for name in LEFT_OUT_NS}
            results.add("logspool-tracing", "left out above none", number, above)

    def must_work(self, cell: str) -> bool:
        """Whether a cell that failed fails the run. A peer may give up its last lines on a busy machine."""
        return cell.startswith("logspool")


if __name__ == "__main__":
    Native().main()
