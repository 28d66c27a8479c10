"""Compare the C++ header and the Nim module with other loggers: `make bench-native`.

Each row is a whole process; rows of one group run in turns. A row shows the median of its runs: wall time, processor
time per line, peak memory, and the lines in its file, which are counted. All loggers are lossless here and write lines
of the same form.
"""

import argparse
import json
import resource
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
#: Ratios that are asked: group, row, row that it is compared with, largest ratio of the wall times.
BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool", "spdlog-async", 0.25),
    ("burst, 4 threads", "logspool", "spdlog", 0.5),
    ("burst, 4 threads", "logspool", "spdlog-async", 1 / 15),
    ("hello, Nim", "logspool", "channel", 0.33),
    ("hello, Nim", "logspool", "raw", 6.0),
)


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


def measure(command: list[str], file: Path) -> dict[str, float]:
    """Run a program and return its time, memory and lines."""
    file.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = file.read_bytes().count(b"\n") if file.exists() else 0
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
    if options.result:
        options.result.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    missed = 0
    for title, row, other, bound in BOUNDS:
        ratio = results[title][row]["wall"] / results[title][other]["wall"]
        missed += ratio > bound
        print(
            f"    {title}: {row} takes {ratio:.3f} of {other}, {bound:.3f} asked{'' if ratio <= bound else ': MISSED'}"
        )
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
