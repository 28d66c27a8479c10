"""`capture_fd`: lines that C code writes to a descriptor become records, each once, and nothing loops."""

import os

import pytest

import logspool
from suite import programs

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

SECONDS = 60

#: Writes to descriptor 2 as C code does. The records go to the original standard error.
START = """\
import logging, os, sys, threading, time
import logspool
from pathlib import Path

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level="INFO")
__INSTALL__
def c(text, fd=2):
    data = text if isinstance(text, bytes) else text.encode()
    while data:
        data = data[os.write(fd, data):]
"""

INSTALLS = {"before": "logspool.install()", "not": ""}


@pytest.fixture(params=INSTALLS)
def run(request, run_program):
    """Run a program whose handler is on standard error, with and without `install()`; return its standard error."""

    def run(text, **variables):
        start = START.replace("__INSTALL__", INSTALLS[request.param])
        outcome, run.folder = run_program(start + text, side=programs.STOCK, deadline_seconds=SECONDS, **variables)
        run.out = outcome.expect_success().out.decode()
        return outcome.err.decode().splitlines()

    return run


def test_lines_become_records_and_python_writes_to_the_original(run):
    assert [
        "before",
        "printed",
        "WARNING stderr: one",
        "WARNING stderr: é% \\xff",
        "WARNING stderr: ",
        "INFO shop: logged",
        "WARNING stderr: last without an end",
        "after",
    ] == run("""
c("before\\n")
with logspool.capture_fd(2) as capture:
    assert capture.active
    print("printed", file=sys.stderr)
    c(b"one\\n\\xc3\\xa9% \\xff\\r\\n\\nlast ")
    while capture.lines < 3:
        time.sleep(0.001)
    logging.getLogger("shop").info("logged")
    c("without an end")
assert capture.lines == 4 and not capture.active and sys.stderr.fileno() == 2
logspool.flush()
c("after\\n")
""")


def test_the_end_of_the_program_logs_the_last_line(run):
    assert ["WARNING stderr: one", "WARNING stderr: two"] == run('logspool.capture_fd(2)\nc("one\\n")\nc("two")\n')


def test_many_lines_of_several_threads_are_captured_once(run):
    lines = run("""
def work(number):
    for line in range(5000):
        c(f"{number} {line}\\n")
with logspool.capture_fd(2, logger="library", level="ERROR") as capture:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(capture.lines, capture.cut, capture.dropped, capture.failed)
""")

    assert "20000 0 0 0\n" == run.out
    assert sorted(lines) == sorted(f"ERROR library: {number} {line}" for number in range(4) for line in range(5000))


def test_a_writer_that_holds_the_interpreters_lock_does_not_wait_for_it(run):
    lines = run("""
import ctypes
write = ctypes.PyDLL(None).write  # keeps the lock during the call
write.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
with logspool.capture_fd(2) as capture:
    text = b"x" * 99 + b"\\n"
    data = text * 50_000
    written = 0
    while written < len(data):
        written += write(2, data[written:], len(data) - written)
print(capture.lines)
""")

    assert "50000\n" == run.out
    assert 50000 == len(lines)


def test_a_long_line_is_cut_and_counted(run):
    lines = run("""
with logspool.capture_fd(2, max_line_bytes=10) as capture:
    c("0123456789\\n0123456789abc\\n" + "y" * 500_000 + "\\nend\\n")
print(capture.lines, capture.cut)
""")

    assert "4 2\n" == run.out
    assert [
        "0123456789",
        "0123456789... [3 more bytes]",
        "yyyyyyyyyy... [499990 more bytes]",
        "end",
    ] == [line.removeprefix("WARNING stderr: ") for line in lines]


def test_a_function_can_choose_the_level(run):
    lines = run("""
def level(line):
    return {"E": "ERROR", "I": 20}[line[0]]
with logspool.capture_fd(2, level=level) as capture:
    c("E broken\\nI fine\\nX unknown\\n")
print(capture.lines, capture.failed)
""")

    assert "3 1\n" == run.out
    assert ["ERROR stderr: E broken", "INFO stderr: I fine"] == lines


def test_standard_output_is_captured_including_the_buffer_of_the_c_library(run):
    lines = run("""
import ctypes
with logspool.capture_fd(1) as capture:
    print("printed")
    ctypes.CDLL(None).puts(b"by C")
""")

    assert "printed\n" == run.out
    assert ["INFO stdout: by C"] == lines


def test_a_forked_child_writes_to_the_original(run):
    lines = run(
        """
with logspool.capture_fd(2) as capture:
    c("parent\\n")
    while not capture.lines:
        time.sleep(0.001)
    # A thread that writes to sys.stderr during the fork would leave the stream's lock taken in the child.
    logging.root.handlers[0].acquire()
    child = os.fork()
    if child == 0:
        c("child in C\\n")
        sys.stderr.write("child in Python\\n")  # one write: the parent's records go to the same file meanwhile
        with logspool.capture_fd(2) as own:
            c("captured in the child\\n")
        logspool.flush()
        os._exit(0)
    logging.root.handlers[0].release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    c("parent again\\n")
""",
        PYTHONWARNINGS="ignore::DeprecationWarning",
    )  # since 3.12 Python warns of a fork in a process with several threads

    assert sorted(lines) == [
        "WARNING stderr: captured in the child",
        "WARNING stderr: parent",
        "WARNING stderr: parent again",
        "child in C",
        "child in Python",
    ]


def test_lines_of_other_programs_become_records_and_go_to_the_original_after_the_capture(run):
    lines = run("""
import subprocess
reader, writer = os.pipe()
with logspool.capture_fd(writer, logger="child") as capture:
    script = f"echo early >&{writer}; echo up; read line; echo late >&{writer}"
    child = subprocess.Popen(["bash", "-c", script], pass_fds=[writer], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"up\\n"
child.communicate(b"go\\n")
assert os.read(reader, 100) == b"late\\n"
print(capture.lines)
""")

    assert "1\n" == run.out
    assert ["INFO child: early"] == lines


def test_a_descriptor_can_be_captured_again_and_beside_another(run):
    lines = run("""
for number in range(50):
    with logspool.capture_fd(2):
        c(f"{number}\\n")
reader, writer = os.pipe()
with logspool.capture_fd(writer, logger=logging.getLogger("own")):
    c("another\\n", writer)
print(len(os.listdir("/proc/self/fd")) < 30)
""")

    assert "True\n" == run.out
    assert [*(f"WARNING stderr: {number}" for number in range(50)), "INFO own: another"] == lines


def test_the_fallback_of_logspool_does_not_become_a_record(run_program):
    outcome, _ = run_program(
        START.replace("__INSTALL__", "logspool.install()")
        + """
full = logging.FileHandler("/dev/full")
logging.getLogger("full").addHandler(full)
logging.getLogger("full").propagate = False
with logspool.capture_fd(2) as capture:
    logging.getLogger("full").error("nothing takes this")
    full.close()
    c("line\\n")
print(capture.lines)
""",
        side=programs.STOCK,
        deadline_seconds=SECONDS,
        LOGSPOOL_SHUTDOWN_TIMEOUT="1",
    )
    lines = outcome.expect_success().err.decode().splitlines()

    assert "1\n" == outcome.out.decode(), lines
    assert 1 == lines.count("WARNING stderr: line")
    assert any(line.endswith("nothing takes this") for line in lines)


def test_nothing_is_captured_when_logspool_is_off(run):
    lines = run(
        """
with logspool.capture_fd(2) as capture:
    c("plain\\n")
    assert not capture.active and capture.original == 2
""",
        LOGSPOOL="off",
    )

    assert ["plain"] == lines


def test_a_closed_descriptor_is_refused():
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)

    with pytest.raises(ValueError, match=f"descriptor {writer} is not open"):
        logspool.capture_fd(writer)


def test_a_captured_descriptor_is_refused(run):
    run("""
with logspool.capture_fd(2, logger="first"):
    for again in (2, sys.stderr):
        try:
            logspool.capture_fd(again)
        except ValueError as error:
            assert "descriptor 2 is captured already, for logger 'first' (fix: close()" in str(error), error
        else:
            raise AssertionError
""")


def test_a_handler_that_would_capture_its_own_lines_is_refused(run):
    lines = run("""
logging.getLogger("loop").addHandler(logging.StreamHandler(os.fdopen(2, "w", closefd=True)))
try:
    logspool.capture_fd(2)
except ValueError as error:
    assert "would read its own lines (fix: " in str(error), error
else:
    raise AssertionError
c("plain\\n")
assert sys.stderr.fileno() == 2
os._exit(0)
""")

    assert ["plain"] == lines


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"fd": "2"}, TypeError, "fd must be a descriptor or an object with fileno"),
        ({"fd": True}, TypeError, "fd must be a descriptor"),
        ({"fd": 2, "logger": 5}, TypeError, "logger must be a logger or its name, not 5"),
        ({"fd": 2, "level": "EROR"}, ValueError, "no level is named 'EROR'; the nearest one is 'ERROR'"),
        ({"fd": 2, "level": 1.5}, TypeError, "level must be a number, a name or a function"),
        ({"fd": 2, "max_line_bytes": 0}, ValueError, "max_line_bytes must be 1 to 16777216 bytes, not 0"),
        ({"fd": 2, "max_line_bytes": "9"}, TypeError, "max_line_bytes must be a whole number"),
    ],
)
def test_wrong_arguments_are_refused(arguments, kind, text):
    with pytest.raises(kind, match=text):
        logspool.capture_fd(**arguments)
