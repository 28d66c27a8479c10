"""`submit_at` follows changes of the wall clock; a library loaded before libc changes the program's clock."""

import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.real, pytest.mark.one_interpreter]

pytest.importorskip("logspool.pool")

CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long step;
void set_step(long seconds) { step = seconds; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += step;
    return failed;
}
"""

PROGRAM = """
import ctypes, os, time
from logspool.pool import Pool
clock = ctypes.CDLL(os.environ["LD_PRELOAD"])
clock.set_step.argtypes = [ctypes.c_long]
pool = Pool(1)
hour = pool.submit_at(time.time() + 3600, time.time)
before, steady = time.time(), time.monotonic()
steady_timer = pool.submit_later(3600, int)
time.sleep(0.1)
print("early", hour.done())
clock.set_step(3600)
print("forward", 3600 <= hour.result(30) - before < 3630, time.monotonic() - steady < 30, steady_timer.cancel())
soon = pool.submit_at(time.time() + 1, int, 5)
clock.set_step(0)
time.sleep(2)
print("back", soon.done(), soon.cancel())
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler for the library that moves the clock")
def test_a_clock_set_forward_runs_the_job_and_a_clock_set_back_delays_it(tmp_path, run_program):
    library = tmp_path / "clock.so"
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "clock.c"], check=True)
    outcome, _ = run_program(PROGRAM, LD_PRELOAD=str(library))

    assert outcome.expect_success().out.decode().splitlines() == [
        "early False",
        "forward True True True",
        "back False True",
    ]
