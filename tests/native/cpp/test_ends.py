"""C++ programs end in every way, fork, and log in signal handlers."""

import collections
import os
import re
import resource
import signal
import subprocess

import pytest

COUNT = 2_000
FORKS = 1_000 if os.environ.get("LOGSPOOL_FAULTS") == "full" else 100


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, check=False)


def assert_every_line_once_and_in_order(path):
    of_thread = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        thread, number, text = line.split(" ")
        assert text == "x" * (int(number) * 37 % 300)
        of_thread[thread].append(int(number))
    assert {str(thread): list(range(COUNT)) for thread in range(4)} == of_thread


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("return", 0),
        ("drain", 0),
        ("quick_exit", 0),
        ("_exit", 0),
        ("term", -signal.SIGTERM),
        ("abort", -signal.SIGABRT),
        ("segv", -signal.SIGSEGV),
        ("kill", -signal.SIGKILL),
        ("throw", -signal.SIGABRT),
    ],
)
def test_every_accepted_record_is_written_once(cpp, tmp_path, end, code):
    path = tmp_path / "a.log"
    done = run(cpp("ends"), path, end, COUNT)

    assert code == done.returncode
    if end in ("return", "drain", "quick_exit"):
        assert_every_line_once_and_in_order(path)
    assert run(cpp("ends"), path, "recover", 0).returncode == 0
    assert_every_line_once_and_in_order(path)


def test_records_beyond_the_limit_of_a_file_are_reported_at_the_end(cpp, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * 1024,) * 2)

    command = [cpp("ends"), tmp_path / "a.log", "return", str(COUNT)]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=120, check=False)

    # The limit may cut the last line, whose record counts as not written.
    lines = (tmp_path / "a.log").read_text().count("\n")
    told = re.findall(r"^logspool: (\d+) records were not written", done.stderr, re.MULTILINE)
    assert (0, 1) == (done.returncode, len(told)), done.stderr
    assert 4 * COUNT == int(told[0]) + lines


def test_a_full_device_is_reported_once_at_the_end(cpp):
    done = run(cpp("ends"), "/dev/full", "return", 10)

    told = [line for line in done.stderr.splitlines() if line.startswith("logspool: ")]
    assert (0, 1) == (done.returncode, len(told)), done.stderr
    assert told[0].startswith("logspool: 40 records were not written"), told
    assert told[0].endswith("(the device is full: /dev/full)"), told


def test_objects_older_than_the_logger_can_log_in_their_destructors(run_cpp, tmp_path):
    run_cpp("late", tmp_path / "a.log")

    names = ("thread", "thread", "later", "local", "first")
    ends = [f"{name} {what}" for name in names for what in ("ends", "is gone")]
    assert ["thread", "thread", *ends] == (tmp_path / "a.log").read_text().splitlines()


def test_children_log_with_the_sites_of_their_parent(cpp, tmp_path):
    path = tmp_path / "a.log"
    done = run(cpp("ends"), path, "fork", FORKS)

    assert (0, "") == (done.returncode, done.stderr)
    counts = collections.Counter(path.read_text().splitlines())
    assert {f"line {i}": 1 for i in range(-int(done.stdout), 2 * FORKS)} == dict(counts)


def test_records_of_an_interrupting_signal_handler_are_accepted_or_counted(cpp, tmp_path):
    path = tmp_path / "a.log"
    done = run(cpp("ends"), path, "signals", 200_000)

    assert (0, "") == (done.returncode, done.stderr)
    handled, offered, accepted, refused = map(int, done.stdout.split())
    lines = path.read_text().splitlines()
    assert [f"line {i}" for i in range(200_000)] == [line for line in lines if line.startswith("line")]
    assert (200_000 + handled, offered) == (offered, accepted + refused)
    assert accepted == len(lines) == len(set(lines))


def test_writing_to_the_lane_needs_no_call_or_allocation_and_gives_the_same_records(cpp, tmp_path):
    done = run(cpp("lane"), tmp_path / "a.log")

    assert (0, "", "0 0\n1\n") == (done.returncode, done.stderr, done.stdout)
    lines = (tmp_path / "a.log").read_text().splitlines()
    assert [f"user Ana did {i} in {i * 0.5:.3f} ms literal" for i in range(200)] == lines[:200]
    texts = [f"{i} {'x' * (i * 37 % 300)} {i * 0.25:g} {str(i % 2 == 0).lower()}" for i in range(20_000)]
    assert [text for text in texts for _ in range(2)] == lines[200:]


@pytest.mark.parametrize("way", ["numbers", "threads"])
def test_a_program_that_closes_descriptors_keeps_every_line_and_its_own_files(cpp, tmp_path, monkeypatch, way):
    monkeypatch.chdir(tmp_path)
    done = run(cpp("closes"), "a.log", way, COUNT)

    assert (0, "1 0\n", "") == (done.returncode, done.stdout, done.stderr)
    assert list(range(COUNT)) == sorted(int(line) for line in (tmp_path / "a.log").read_text().splitlines())
