"""Compare the C++ header, the Nim module and the Rust crate with other loggers: `make bench-native`.

Each row is a whole process; rows of one group run in turns. A row shows the median of its runs: wall time, processor
time per line, peak memory, and the lines in its file, which are counted. All loggers are lossless here and write lines
of the same form.
"""

import argparse
import json
import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import terminal  # noqa: E402

SOURCES = ROOT / "bench" / "native"
#: The Rust program has dependencies of its own, which are kept built.
RUST_TARGET = ROOT / "build" / "target-bench-native"
#: Lines of a run whose pipe is not read at first, at 200,000 a second, and the seconds until it is read.
STALLED_LINES, STALLED_SECONDS = 500_000, 1.5
#: Most milliseconds of a call above those of an empty call, in the best run of a stalled pipe.
STALLED_CALL_MS = 1.0
#: Ratios that are asked: group, row, row that it is compared with, largest ratio of the wall times.
BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool", "spdlog-async", 0.25),
    ("burst, 4 threads", "logspool", "spdlog", 0.5),
    ("burst, 4 threads", "logspool", "spdlog-async", 1 / 15),
    ("hello, Nim", "logspool", "channel", 0.33),
    ("hello, Nim", "logspool", "raw", 6.0),
    ("burst, Rust", "logspool", "tracing-appender", 1 / 5),
    ("burst, Rust", "logspool-tracing", "tracing-appender", 1 / 3),
    ("burst, Rust", "logspool", "spdlog-rs", 1 / 2),
)

#: Most nanoseconds of a paced call above those of the empty loop.
CALL_NS = (("p50", "p50", 20), ("p99", "p99", 100), ("p999", "p99.9", 500))
#: Largest ratio of the processor time per line: group, row, row that it is compared with.
CPU_BOUNDS = (("burst, 1 thread", "logspool", "spdlog", 0.5),)


def build(folder: Path) -> None:
    """Build the package and the programs."""
    package = folder / "native"
    subprocess.run([sys.executable, ROOT / "scripts/native_package.py", "--folder", package], check=True)
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-DSPDLOG_FMT_EXTERNAL", "-DSPDLOG_COMPILED_LIB", f"-I{package}/include"]
    link = [f"-L{package}/lib", "-llogspool", f"-Wl,-rpath,{package}/lib", "-lspdlog", "-lfmt", "-pthread"]
    subprocess.run(["g++", *flags, SOURCES / "lines.cpp", "-o", folder / "lines", *link], check=True)
    nim = ["nim", "c", "--hints:off", "-d:release", "--threads:on", "--mm:orc", f"-d:logspoolDir={package}"]
    places = [f"--path:{ROOT / 'bindings/nim/src'}", f"--nimcache:{folder}/cache", f"-o:{folder}/hello"]
    subprocess.run([*nim, *places, SOURCES / "hello.nim"], check=True)
    rust = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", SOURCES / "rust/Cargo.toml"]
    subprocess.run([*rust, "--target-dir", RUST_TARGET], check=True)


def measure(command: list[str], file: Path) -> dict[str, float]:
    """Run a program and return its time, memory and lines."""
    file.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = file.read_bytes() if file.exists() else b""
    # A disk that cannot keep up fills the overflow; logspool then says so in the file.
    lines = text.count(b"\n") - text.count(b" the queue is ")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "lines": lines, **json.loads(shown or "{}")}


def group(name: str, rows: dict[str, list[str]], lines: int, file: Path, turns: int) -> dict[str, dict[str, float]]:
    """Run the rows in turns and show their medians."""
    terminal.step(f"{name}: {lines} lines, median of {turns} runs in turns")
    runs: dict[str, list[dict[str, float]]] = {row: [] for row in rows}
    for _ in range(turns):
        for row, command in rows.items():
            runs[row].append(measure(command, file))
    medians = {}
    for row, of_row in runs.items():
        median = {key: statistics.median(run[key] for run in of_row) for key in of_row[0]}
        kept = {run["lines"] for run in of_row}
        if row != "none" and kept != {lines}:
            raise SystemExit(f"{name}, {row}: {sorted(kept)} lines in the files, not {lines}")
        medians[row] = median
        names = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"} if median.get("p50") else {}
        calls = "".join(f" {shown} {median[key]:.0f} ns" for key, shown in names.items())
        memory = f"{median['rss_mb']:6.1f} MB" if "rss_mb" in median else ""
        cpu = median["cpu"] / lines * 1e9
        print(f"    {row:13} {median['wall']:8.3f} s  {cpu:7.0f} ns CPU a line  {memory}{calls}")
    return medians


def mark(is_as_asked: bool) -> str:
    """Return the end of a judged line."""
    return "" if is_as_asked else ": MISSED"


def stalled(program: Path, folder: Path) -> dict[str, float]:
    """Run the program with a pipe that nobody reads at first; count the lines that come out of the pipe."""
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
    return result


def judge_stalled(program: Path, folder: Path, turns: int) -> tuple[dict[str, float], bool]:
    """Return the best run of a stalled pipe, and whether it is as asked."""
    terminal.step(f"stalled pipe: {STALLED_LINES} lines at 200,000 a second, read after {STALLED_SECONDS} s")
    runs = [stalled(program, folder) for _ in range(turns)]
    for run in runs:
        is_exact = run["lines"] == run["written"] == STALLED_LINES and run["offered"] == STALLED_LINES
        print(
            f"    longest call {run['max_ms']:7.3f} ms, empty {run['max_empty_ms']:7.3f} ms, {run['lines']} lines, "
            f"{run['written']} written, {run['refused']} refused{'' if is_exact else ': NOT EXACT'}"
        )
        if not is_exact:
            return run, False
    best = min(runs, key=lambda run: run["max_ms"] - run["max_empty_ms"])
    is_short = best["max_ms"] - best["max_empty_ms"] < STALLED_CALL_MS
    print(f"    best: {best['max_ms']:.3f} ms, {STALLED_CALL_MS} above empty asked{mark(is_short)}")
    return best, is_short


def inversions(program: Path, file: Path, lines: int) -> int:
    """Return the number of lines of 4 threads that have an earlier time than a line before them."""
    terminal.step(f"order: {lines} lines by 4 threads")
    file.unlink(missing_ok=True)
    command = [program, "logspool", "4", str(lines // 4), file, "ordered"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    count, newest, found = 0, b"", 0
    with file.open("rb") as written:
        for line in written:
            stamp = line[:29]
            count += 1
            found += stamp < newest
            newest = max(newest, stamp)
    if count != lines:
        raise SystemExit(f"order: {count} lines in the file, not {lines}")
    print(f"    {found} lines before an earlier one, 0 asked{mark(found == 0)}")
    return found


def main() -> None:
    """Build, run and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=4_000_000, help="lines of a burst")
    parser.add_argument("--turns", type=int, default=5, help="runs of each row")
    parser.add_argument("--result", type=Path, help="file for the medians, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        file = folder / "out.log"
        results = {}
        for threads in (1, 4):
            each = options.lines // threads
            rows = {
                row: [str(folder / "lines"), row, str(threads), str(each), str(file)]
                for row in ("logspool", "spdlog", "spdlog-async", "none")
            }
            title = f"burst, {threads} thread{'s' if threads > 1 else ''}"
            results[title] = group(title, rows, each * threads, file, options.turns)
        rows = {
            row: [str(folder / "lines"), row, "1", "200000", str(file), "paced"]
            for row in ("logspool", "spdlog", "spdlog-async", "none")
        }
        results["paced, 1 thread"] = group("paced, 1 thread", rows, 200_000, file, options.turns)
        rows = {row: [str(folder / "hello"), row, str(file)] for row in ("logspool", "channel", "raw")}
        results["hello, Nim"] = group("hello, Nim", rows, 1_000_000, file, options.turns)
        rust = str(RUST_TARGET / "release/logspool-bench-rust")
        names = ("logspool", "logspool-tracing", "tracing-appender", "spdlog-rs", "none")
        rows = {row: [rust, row, str(options.lines), str(file)] for row in names}
        results["burst, Rust"] = group("burst, Rust", rows, options.lines, file, options.turns)
        results["stalled pipe"], is_short = judge_stalled(folder / "lines", folder, options.turns)
        results["order, 4 threads"] = {"inversions": inversions(folder / "lines", file, 1_000_000)}
    if options.result:
        options.result.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    missed = (not is_short) + (results["order, 4 threads"]["inversions"] > 0)
    for title, row, other, bound in BOUNDS:
        ratio = results[title][row]["wall"] / results[title][other]["wall"]
        missed += ratio > bound
        print(f"    {title}: {row} takes {ratio:.3f} of {other}, {bound:.3f} asked{mark(ratio <= bound)}")
    for title, row, other, bound in CPU_BOUNDS:
        ratio = results[title][row]["cpu"] / results[title][other]["cpu"]
        missed += ratio > bound
        print(f"    {title}: {row} uses {ratio:.3f} of {other}'s processor time, {bound} asked{mark(ratio <= bound)}")
    paced = results["paced, 1 thread"]
    for key, shown, bound in CALL_NS:
        above = paced["logspool"][key] - paced["none"][key]
        missed += above > bound
        print(f"    paced call: {shown} {above:.0f} ns above an empty loop, {bound} asked{mark(above <= bound)}")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
