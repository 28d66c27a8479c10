"""The loops around the measured call, written out as a real module so that each call has a file and a line.

The call of a case is pasted into the loops: no logger pays for a wrapper, and every logger finds a true caller.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

_EMPTY = 'nothing("user %s did %d in %.3f ms", name, i, ms)'

_SOURCE = """
from time import perf_counter_ns, sleep, thread_time_ns


def nothing(*arguments):
    pass


def back_to_back(log, name, count):
    ms = 0.25
    cpu, wall = thread_time_ns(), perf_counter_ns()
    for i in range(count):
        CALL  # measured
    return perf_counter_ns() - wall, thread_time_ns() - cpu


def loop_alone(log, name, count):
    ms = 0.25
    cpu, wall = thread_time_ns(), perf_counter_ns()
    for i in range(count):
        pass
    return perf_counter_ns() - wall, thread_time_ns() - cpu


def timed(log, name, count, samples):
    ms = 0.25
    for i in range(count):
        begin = perf_counter_ns()
        CALL  # measured
        samples[i] = perf_counter_ns() - begin


def timed_empty(log, name, count, samples):
    ms = 0.25
    for i in range(count):
        begin = perf_counter_ns()
        EMPTY
        samples[i] = perf_counter_ns() - begin


def paced(log, name, groups, group, pause, samples):
    ms = 0.25
    for i in range(groups * group):
        if i % group == 0:
            sleep(pause)
        begin = perf_counter_ns()
        CALL  # measured
        samples[i] = perf_counter_ns() - begin


def paced_empty(log, name, groups, group, pause, samples):
    ms = 0.25
    for i in range(groups * group):
        if i % group == 0:
            sleep(pause)
        begin = perf_counter_ns()
        EMPTY
        samples[i] = perf_counter_ns() - begin
"""


def load(call: str, folder: Path) -> tuple[ModuleType, set[int]]:
    """Write the loops for a call into a folder, import them, and return them with the line numbers of the call."""
    source = _SOURCE.replace("CALL", call).replace("EMPTY", _EMPTY)
    path = folder / "measured_program.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = {number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# measured")}
    return module, lines
