"""Tests that end programs by signals do so under `nohup` and in a shell's background job, too."""

import signal
import subprocess
import sys

from suite import dispositions

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1)

# The program prints its ignored and its blocked signals.
PROGRAM = f"""
import signal
ignored = [number for number in {[int(number) for number in IGNORED]} if signal.getsignal(number) == signal.SIG_IGN]
print(ignored, sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""


def test_programs_started_by_tests_inherit_no_ignored_or_blocked_signals():
    usual = {number: signal.getsignal(number) for number in IGNORED}
    try:
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        dispositions.reset()
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)

    assert "[] []\n" == done.stdout, done
    assert signal.SIG_IGN not in usual.values(), "conftest.py did not reset them for this run"
