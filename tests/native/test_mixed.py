"""Python and C in one process log into one file, in one order, whichever of them begins."""

import subprocess
import sys

import pytest
from python_side import PYTHON_LOGGER

COUNT = 500

PROGRAM = f"""{PYTHON_LOGGER}
import ctypes
order, end, path, library, count = sys.argv[1:]
core = ctypes.CDLL(library)
core.logspool_sink_open.restype = core.logspool_logger.restype = ctypes.c_uint32

def c_logger():
    sink = core.logspool_sink_open(path.encode(), b'{{"template": "%(message)s"}}')
    return core.logspool_logger(b"c", 20, (ctypes.c_uint32 * 1)(sink), 1)

def log_in_c(text):
    assert core.logspool_text(logger, 20, text, ctypes.c_size_t(len(text)), None, 0, None) == 0

if order == "c":
    logger = c_logger()
    log_in_c(b"first")
    log = python_logger()
else:
    log = python_logger()
    log.info("first")
    logger = c_logger()
for i in range(int(count)):
    log_in_c(b"c %d" % i)
    log.info("python %d", i)
if end == "kill":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("order", ["c", "python"])
def test_both_languages_log_into_one_file_in_one_order(library, program, tmp_path, order, end):
    path = tmp_path / "a.log"
    command = [sys.executable, "-c", PROGRAM, order, end, str(path), str(library / "liblogspool.so.1"), str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ("", 0 if end == "exit" else -9) == (done.stderr, done.returncode)
    subprocess.run([program("ends"), path, "recover", "0"], check=True)
    expected = ["first", *(f"{who} {i}" for i in range(COUNT) for who in ("c", "python"))]
    assert expected == path.read_text().splitlines()
