"""Compare the C++ header, the Nim module and the Rust crate with other loggers: `make bench-native`.

Each row is a whole process; rows of one group run in turns. A row shows the median of its runs: wall time, processor
time per line, peak memory, and the lines in its file, which are counted. All loggers are lossless here and write lines
of the same form. A whole run is kept in `bench/runs`; the exit code is 1 where a bound is missed.
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

import machine  # noqa: E402
import native_report  # noqa: E402
import report  # noqa: E402
import terminal  # noqa: E402

SOURCES = ROOT / "bench" / "native"
#: The Rust program has dependencies of its own, which are kept built.
RUST_TARGET = ROOT / "build" / "target-bench-native"
#: Lines of a burst, and runs of each row, of a whole run.
LINES, TURNS = 4_000_000, 5
#: Rows of the C++ program: a template of logspool, a pattern of each; `none` is its loop without a logger.
LOGGERS = ("logspool", "logspool-pattern", "spdlog", "spdlog-async", "none")
#: Lines of a run whose pipe is not read at first, at 200,000 a second, and the seconds until it is read.
STALLED_LINES, STALLED_SECONDS = 500_000, 1.5


#: Rust subscribers whose calls below their level are timed, and the number of the calls.
LEFT_OUT, LEFT_OUT_CALLS = ("logspool-tracing", "logspool-plain-layer", "tracing-fmt", "no-subscriber"), 3_000_000


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
            lost = f"{name}, {row}: {sorted(kept)} lines in the files, not {lines}"
            if row.startswith("logspool"):
                raise SystemExit(lost)
            # A peer may give up its last lines on a busy machine; its row shows how many are there.
            terminal.note(lost)
        medians[row] = median
        median["cpu_ns"] = median["cpu"] / lines * 1e9
        median["p99.9"] = median.pop("p999", 0)
    report.print_table(native_report.table(name, medians))
    return medians


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
    return result


def longest_stalled_call(program: Path, folder: Path, turns: int) -> float:
    """Return the milliseconds by which the longest call exceeds an empty call, in the best run of a stalled pipe."""
    terminal.step(f"stalled pipe: {STALLED_LINES} lines at 200,000 a second, read after {STALLED_SECONDS} s")
    longest = []
    for _ in range(turns):
        run = stalled(program, folder)
        print(
            f"    longest call {run['max_ms']:7.3f} ms, empty {run['max_empty_ms']:7.3f} ms, {run['lines']} lines, "
            f"{run['written']} written, {run['refused']} refused"
        )
        if not run["lines"] == run["written"] == run["offered"] == STALLED_LINES:
            raise SystemExit("stalled pipe: the counts are not exact")
        longest.append(run["max_ms"] - run["max_empty_ms"])
    return min(longest)


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
    print(f"    {found} lines before an earlier one")
    return found


def left_out(rust: str, file: Path, turns: int) -> dict[str, dict[str, float]]:
    """Show what an event and a span below the level cost with each subscriber."""
    terminal.step(f"left out, Rust: {LEFT_OUT_CALLS} calls below the level, median of {turns} runs in turns")
    runs: dict[str, list[dict[str, float]]] = {row: [] for row in LEFT_OUT}
    for _ in range(turns):
        for row, of_row in runs.items():
            command = [rust, row, str(LEFT_OUT_CALLS), str(file), "left-out"]
            of_row.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))
    medians = {
        row: {key: statistics.median(run[key] for run in of_row) for key in of_row[0]} for row, of_row in runs.items()
    }
    report.print_table(native_report.table("left out, Rust", medians))
    return medians


def main() -> None:
    """Build, run and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=LINES, help="lines of a burst")
    parser.add_argument("--turns", type=int, default=TURNS, help="runs of each row")
    parser.add_argument("--quill", type=Path, help="folder with the headers of quill, whose row is left out without it")
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/native")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, options.quill)
        loggers = (*LOGGERS, *(["quill"] if options.quill else []))
        file = folder / "out.log"
        results: native_report.Groups = {}
        for threads in (1, 4):
            each = options.lines // threads
            rows = {row: [str(folder / "lines"), row, str(threads), str(each), str(file)] for row in loggers}
            title = f"burst, {threads} thread{'s' if threads > 1 else ''}"
            results[title] = group(title, rows, each * threads, file, options.turns)
        rows = {row: [str(folder / "lines"), row, "1", "200000", str(file), "paced"] for row in loggers}
        results["paced, 1 thread"] = group("paced, 1 thread", rows, 200_000, file, options.turns)
        rows = {row: [str(folder / "hello"), row, str(file)] for row in ("logspool", "channel", "raw", "none")}
        results["hello, Nim"] = group("hello, Nim", rows, 1_000_000, file, options.turns)
        rust = str(RUST_TARGET / "release/logspool-bench-rust")
        names = ("logspool", "logspool-tracing", "tracing-appender", "spdlog-rs", "none")
        rows = {row: [rust, row, str(options.lines), str(file)] for row in names}
        results["burst, Rust"] = group("burst, Rust", rows, options.lines, file, options.turns)
        results["left out, Rust"] = left_out(rust, file, options.turns)
        stalled_ms = longest_stalled_call(folder / "lines", folder, options.turns)
        inverted = inversions(folder / "lines", file, 1_000_000)
    verdicts = native_report.judge(results, stalled_ms, inverted)
    report.print_verdicts(verdicts)
    facts = native_report.facts(options.turns, options.lines)
    whole = (options.lines, options.turns) == (LINES, TURNS)
    runs_folder = ROOT / ("bench/runs" if whole else "build/bench")
    kept = options.out or runs_folder / machine.folder_name(facts) / "native"
    native_report.keep(kept, facts, results, verdicts)
    print(f"\nresults: {kept}/summary.md, medians.json")
    if missed := [verdict.what for verdict in verdicts if not verdict.met]:
        raise terminal.fail(f"{len(missed)} targets missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
