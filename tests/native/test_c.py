"""C programs log through liblogspool."""

import collections
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading

import pytest

COUNT = 1_000
FORKS = 1_000 if os.environ.get("LOGSPOOL_FAULTS") == "full" else 100


def run(*command, timeout=120, cwd=None):
    command = [str(part) for part in command]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=cwd)


def recovered(program, path):
    """Return the lines of a file, after the records of dead programs were delivered."""
    assert run(program("ends"), path, "recover", 0).returncode == 0
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("exit", 0),
        ("_exit", 0),
        ("term", -signal.SIGTERM),
        ("abort", -signal.SIGABRT),
        ("segv", -signal.SIGSEGV),
        ("kill", -signal.SIGKILL),
    ],
)
def test_every_accepted_record_is_written_once(program, tmp_path, end, code):
    path = tmp_path / "a.log"
    done = run(program("ends"), path, end, COUNT)

    assert (code, "") == (done.returncode, done.stderr)
    if end == "exit":
        assert [f"line {i}" for i in range(COUNT)] == path.read_text().splitlines()
    assert [f"line {i}" for i in range(COUNT)] == recovered(program, path)


@pytest.mark.parametrize("end", ["exit", "quick_exit", "fork", "silent"])
def test_a_record_after_the_drain_at_exit_is_in_the_file(program, tmp_path, end):
    done = run(program("late"), tmp_path / "a.log", end)

    late = ["registered second", "registered first", *([] if end == "quick_exit" else ["destructor"])]
    wanted = [*([] if end == "silent" else ["in main"]), *(["in a child", *late] if end == "fork" else []), *late]
    assert (0, "") == (done.returncode, done.stderr)
    assert [text for text in wanted for _ in range(2)] == (tmp_path / "a.log").read_text().splitlines()


@pytest.mark.parametrize("kibibytes", [16, 512])
def test_records_beyond_the_limit_of_a_file_are_reported_at_the_end(program, tmp_path, kibibytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kibibytes * 1024,) * 2)

    command = [program("ends"), tmp_path / "a.log", "exit", "60000"]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=120)

    # The limit may cut the last line, whose record counts as not written.
    lines = (tmp_path / "a.log").read_text().count("\n")
    told = re.search(r"^logspool: (\d+) records were not written", done.stderr, re.MULTILINE)
    assert 0 == done.returncode
    assert told is not None, done.stderr
    assert 60_000 == int(told[1]) + lines


def acknowledge(listener: socket.socket, received: bytearray) -> None:
    """Receive a connection of Forward to its end, and acknowledge each chunk."""
    done = 0
    with listener.accept()[0] as peer:
        while part := peer.recv(1 << 16):
            received += part
            for option in re.compile(rb"\xa5chunk(\xd9[\x20-\x60][ -~]+)", re.DOTALL).finditer(received, done):
                name = option[1][: 2 + option[1][1]]
                peer.sendall(b"\x81\xa3ack" + name)
                done = option.start() + 6 + len(name)


@pytest.mark.timeout(120)
def test_a_sink_takes_a_list_of_services(program):
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=acknowledge, args=(listener, received))
        thread.start()
        # Nothing listens at the first port.
        done = run(program("ends"), f"tcp://127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}", "exit", 5)
        thread.join()

    assert (0, "") == (done.returncode, done.stderr)
    assert [f"line {i}".encode() for i in range(5)] == re.findall(rb"line \d", received)


@pytest.mark.parametrize(
    ("address", "end"),
    [
        ("/dev/full", "; they are kept, `logspool recover` or the next start writes them"),
        ("stdout", " and are dropped"),
    ],
)
def test_a_full_device_is_reported_once_at_the_end_and_fails_a_flush(program, address, end):
    command = [program("ends"), address, "full", "10"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)

    told = f"logspool: 10 records were not written within 0.2 s{end} (the device is full: {address})"
    assert (0, ["flush: -5", told]) == (done.returncode, done.stderr.splitlines())


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_program_whose_reader_is_gone_ends_as_its_sigpipe_setting_says(program, is_ignored):
    def ignore():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    options = {"restore_signals": False, "preexec_fn": ignore} if is_ignored else {}
    command = [program("ends"), "stdout", "exit", "300000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as running:
        assert b"line 0\n" == running.stdout.readline()
        running.stdout.close()
        running.stderr.read()
        assert (0 if is_ignored else -signal.SIGPIPE) == running.wait(60)


def test_the_environment_sets_the_queue_folder(program, tmp_path, queue_dir):
    assert run(program("ends"), tmp_path / "a.log", "kill", COUNT).returncode == -signal.SIGKILL
    assert [path.name for path in queue_dir.rglob("*") if path.is_file()], "what the killed program left"
    assert len(recovered(program, tmp_path / "a.log")) == COUNT


def test_children_log_with_the_handles_of_their_parent(program, tmp_path):
    path = tmp_path / "a.log"
    done = run(program("ends"), path, "fork", FORKS, timeout=600)

    assert (0, "") == (done.returncode, done.stderr)
    counts = collections.Counter(path.read_text().splitlines())
    assert {f"line {i}": 1 for i in range(-int(done.stdout), 2 * FORKS)} == dict(counts)


@pytest.mark.parametrize("address", ["a.log", '{"kind": "rotating", "path": "a.log"}'])
def test_a_relative_path_means_the_same_file_in_every_working_folder(program, tmp_path, address):
    (tmp_path / "other").mkdir()
    done = run(program("ends"), address, "moved", COUNT, cwd=tmp_path)

    assert (0, "") == (done.returncode, done.stderr)
    assert [f"line {i}" for i in range(COUNT)] == recovered(program, tmp_path / "a.log")
    assert [] == list((tmp_path / "other").iterdir())


@pytest.mark.parametrize("way", ["files", "numbers", "child", "daemon", "busy"])
def test_a_program_that_closes_descriptors_keeps_every_line_and_its_own_files(program, tmp_path, way):
    done = run(program("closes"), tmp_path / "a.log", way, COUNT, cwd=tmp_path)

    assert (0, "1 0\n", "") == (done.returncode, done.stdout, done.stderr)
    assert list(range(COUNT)) == [int(line) for line in (tmp_path / "a.log").read_text().splitlines()]


def test_records_written_through_the_lane_view_equal_those_of_calls(program, tmp_path):
    done = run(program("lane_view"), tmp_path / "a.log")

    assert (0, "") == (done.returncode, done.stderr)
    lines = (tmp_path / "a.log").read_text().splitlines()
    assert [(i * 37) % 300 for i in range(20_000) for _ in range(2)] == [len(line) for line in lines]


WRONG = {
    "null options": (0, ""),
    "no json": (-2, "line 1"),
    "no object": (-2, "must be a JSON object"),
    "unknown option": (-2, '"queue_bytes"'),
    "bad value": (-2, "32768"),
    "bad type": (-2, "queue_bytes must be a whole number"),
    "python option": (-2, "Python only"),
    "null address": (0, "NULL"),
    "empty address": (0, "empty"),
    "no folder": (0, "No such file"),
    "bad descriptor": (0, "fd:N"),
    "unknown kind": (0, '"file"'),
    "no kind": (0, '"kind"'),
    "bad format": (0, "template must be text"),
    "unknown format key": (0, '"template"'),
    "unknown name": (0, "there is no {leve}; the names are time, level,"),
    "open brace": (0, "a brace has no partner"),
    "bad width": (0, '"{level:x}"'),
    "two times": (0, "once in a pattern"),
    "pattern and template": (0, "a format with a pattern has no template"),
    "no pattern": (0, "pattern must be text, not 1"),
    "unknown words": (0, '"letter", not "big"'),
    "typing error": (0, 'no mesage; the nearest one is "message"; a key of the program is written fields.mesage'),
    "typing error in braces": (0, 'no levelnam; the nearest one is "levelname"'),
    "no letter at the end": (0, 'bad template "%(message)": an attribute is written %(message)s'),
    "open brace in a template": (0, 'bad template "{message": an attribute is written {message}, and a brace {{'),
    "typing error in JSON": (0, 'no mesage; the nearest one is "message"'),
    "key named as an attribute": (0, "since name is an attribute"),
    "typing error in date": (0, 'date_format "%H:%Q": strftime has no %Q'),
    "date ends early": (0, "strftime has no %"),
    "typing error in time": (0, "time"),
    "bad level": (0, 'such as "warning", not "loud"'),
    "bad switch": (0, "escape_control must be true or false, not 1"),
    "null name to find": (0, "NULL"),
    "no such logger": (0, 'there is no logger "nobody"'),
    "null name": (0, "NULL"),
    "null sinks": (0, "at most 64"),
    "unknown sink": (0, "id 99"),
    "found 3000 times": (0, ""),
    "null site": (0, "NULL"),
    "size 0": (0, "sizeof"),
    "unknown grammar": (0, "grammar 9"),
    "bad template": (0, "byte 6"),
    "bad template without types": (0, "at byte 5"),
    "unknown logger": (-3, "id 99"),
    "unknown site": (-3, "id 99"),
    "null arguments": (-2, "not 1"),
    "unknown type": (-2, "unknown type 0"),
    "null text": (-2, "NULL"),
    "key without value": (-2, "without a value"),
    "null record": (-2, "NULL"),
    "nothing reserved": (-2, "reserved"),
    "nothing to abandon": (-2, "reserved"),
    "no number": (-2, "not a number"),
    "null buffer": (-4, "NULL"),
    "ill-formed text": (0, ""),
    "abandon": (0, ""),
}


def test_an_invalid_input_returns_a_code_with_a_text(program, tmp_path):
    done = run(program("wrong"), tmp_path / "a.log")

    assert (0, "") == (done.returncode, done.stderr)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    handlers = [int(row[1]) for row in rows if row[0] == "in a handler"]
    assert [0, -1] == handlers, "a call in a handler is logged, or refused if it interrupts another one"
    shown = {row[0]: (int(row[1]), row[2]) for row in rows if row[0] != "in a handler"}
    assert WRONG.keys() == shown.keys()
    is_wrong = {what: shown[what][0] != code or text not in shown[what][1] for what, (code, text) in WRONG.items()}
    assert [] == [(what, shown[what]) for what, wrong in is_wrong.items() if wrong]
    unreadable = "\N{REPLACEMENT CHARACTER}" * 2
    assert [f"n a{unreadable}b", "n 0"] == (tmp_path / "a.log").read_text().splitlines()


def test_a_copy_with_another_major_version_is_refused_with_a_text(program, tmp_path):
    done = run(program("other_major"), tmp_path / "a.log")

    assert (0, "") == (done.returncode, done.stderr)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    text = "another copy of logspool has the queue of this process, with major version 2 of the interface"
    assert [text] == list({row[2].split(";")[0] for row in rows})
    failed = {"configure": -7, "sink_open": 0, "logger": 0, "site": 0, "text": -7, "reserve": 0, "flush": -7}
    assert failed == {row[0]: int(row[1]) for row in rows}
    assert not (tmp_path / "a.log").exists()


def test_clang_compiles_the_program_without_warnings(program):
    if shutil.which("clang") is None:
        pytest.skip("clang is missing: apt-get install clang")
    assert program("ends", "clang").exists()


def test_valgrind_finds_no_error_and_no_leak(program, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing: apt-get install valgrind")
    options = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    options += ["--show-leak-kinds=definite"]
    done = run("valgrind", *options, program("ends"), tmp_path / "a.log", "exit", 100, timeout=300)

    assert (0, "") == (done.returncode, done.stderr)


def test_the_example_runs(program, tmp_path):
    path = program("../../../examples/c/hello")
    done = subprocess.run([path], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (0, "[INFO] start took 1.250 ms\n") == (done.returncode, done.stderr)
    assert (tmp_path / "hello.log").read_text().endswith(" INFO hello start took 1.250 ms\n")


def test_the_library_exports_its_own_names_and_stays_loaded(library):
    shown = run("nm", "-D", "--defined-only", library / "liblogspool.so").stdout
    names = [line.split()[-1] for line in shown.splitlines()]
    assert names
    assert [] == [name for name in names if not name.startswith("logspool_")]
    assert "NODELETE" in run("readelf", "-d", library / "liblogspool.so").stdout
