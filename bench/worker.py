"""Measure one case in one mode in this process; compare.py starts one for each cell of the table."""

import os
import resource
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import lines
import loops
from case import BURST, DISABLED, DISABLED_CALL, LATENCY, PACED, THREADS, THROUGHPUT, Case, Session
from cases import CASES

# Chosen: enough for caches, lazily made parts and adaptive polling to settle, little beside the measurement.
WARM_UP_RECORDS = 2000
THREAD_COUNT = 4
GROUP = 50
PAUSE_SECONDS = 0.005
DISABLED_REPEATS = 7


def peak_memory_reset() -> int:
    """Forget the peak of resident memory and return the present amount in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return _status("VmRSS")


def peak_memory() -> int:
    """Return the peak of resident memory in bytes, shared memory that was touched included."""
    return _status("VmHWM")


def cpu_ns() -> int:
    """Return the CPU time of all threads of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)


def run_calls(case: Case, session: Session, program: ModuleType, threads: int, records: int) -> dict[str, object]:
    """Log as fast as possible from one or more threads, wait for the closed file and account for it all."""
    each = records // threads
    before = session.refused()
    memory, cpu = peak_memory_reset(), cpu_ns()
    begin = time.perf_counter_ns()
    if threads == 1:
        costs = [program.back_to_back(session.log, "t0", each)]
    else:
        costs = _in_threads(program, session, threads, each)
    called = time.perf_counter_ns()
    # A moment taken from a file's time stamp is coarse, and never before the last call.
    end = max(called, session.finish() or time.perf_counter_ns())
    total = each * threads
    result: dict[str, object] = {
        "records": total,
        "caller_wall_ns": sum(wall for wall, _ in costs) / total,
        "caller_cpu_ns": sum(cpu for _, cpu in costs) / total,
        "end_to_end_ns": (end - begin) / total,
        "total_cpu_ns": (cpu_ns() - cpu) / total,
        "memory_mb": max(0, peak_memory() - memory) / 1e6,
    }
    result["refused"] = session.refused() - before
    result["expected"] = {f"t{number}": each for number in range(threads)}
    return result


def timed_calls(loop: Callable[..., None], empty: Callable[..., None], session: Session, *shape: int | float) -> dict:
    """Time each call alone, and each of as many empty calls right after."""
    count = int(shape[0] * shape[1]) if len(shape) > 1 else int(shape[0])
    samples, nothing = array("q", bytes(8 * count)), array("q", bytes(8 * count))
    cpu = [cpu_ns()]
    loop(session.log, "t0", *shape, samples)
    cpu.append(cpu_ns())
    empty(session.log, "t0", *shape, nothing)
    cpu.append(cpu_ns())
    session.finish()
    # Late work of other threads counts for the empty loop: some milliseconds of a whole run.
    net = (cpu[1] - cpu[0]) - (cpu[2] - cpu[1])
    result: dict[str, object] = {"records": count, "total_cpu_net_ns": net / count, "expected": {"t0": count}}
    result.update({f"{name}_ns": value for name, value in percentiles(samples).items()})
    result.update({f"empty_{name}_ns": value for name, value in percentiles(nothing).items()})
    return result


def disabled_call(session: Session, program: ModuleType, records: int) -> dict[str, object]:
    """Time calls below the level, with the cost of the loop itself subtracted."""
    calls = min(program.back_to_back(session.log, "t0", records)[1] for _ in range(DISABLED_REPEATS))
    loop = min(program.loop_alone(session.log, "t0", records)[1] for _ in range(DISABLED_REPEATS))
    session.finish()
    return {"records": records, "disabled_ns": (calls - loop) / records, "loop_ns": loop / records, "expected": {}}


def percentiles(samples: array) -> dict[str, int]:
    """Return the usual points of a distribution."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    points = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
    return {name: ordered[min(last, int(point * len(ordered)))] for name, point in points.items()}


def measure(case: Case, mode: str, records: int) -> dict[str, object]:
    """Open the case on a file of its own, run the mode and check the file."""
    with tempfile.TemporaryDirectory(prefix="logspool-bench-", dir=os.environ.get("LOGSPOOL_BENCH_DIR")) as name:
        folder = Path(name)
        path = folder / "measured.log"
        program, true_lines = loops.load(DISABLED_CALL if mode == DISABLED else case.call, folder)
        session = case.open(path)
        program.back_to_back(session.log, lines.WARM_UP, min(WARM_UP_RECORDS, records))
        time.sleep(0.2)
        if mode in (THROUGHPUT, BURST):
            result = run_calls(case, session, program, 1, records)
        elif mode == THREADS:
            result = run_calls(case, session, program, THREAD_COUNT, records)
        elif mode == LATENCY:
            result = timed_calls(program.timed, program.timed_empty, session, records)
        elif mode == PACED:
            groups = max(1, records // GROUP)
            result = timed_calls(program.paced, program.paced_empty, session, groups, GROUP, PAUSE_SECONDS)
        else:
            result = disabled_call(session, program, records)
        expected = result.pop("expected")
        if expected:
            result.update(lines.check(path, case.layout, expected, true_lines))  # type: ignore[arg-type]
        return result


def _in_threads(program: ModuleType, session: Session, threads: int, each: int) -> list[tuple[int, int]]:
    costs: list[tuple[int, int]] = []
    barrier = threading.Barrier(threads)

    def work(number: int) -> None:
        barrier.wait()
        costs.append(program.back_to_back(session.log, f"t{number}", each))

    started = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return costs


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def figures(name: str, mode: str, records: int) -> dict[str, object]:
    """Measure a case, given its name."""
    return measure(CASES[name], mode, records)
