"""`compress=` of the rotating handlers: formats, order, several programs on one file, and refused values."""

import gzip
import subprocess

import pytest

from suite import lines, programs
from suite.waiting import until

pytestmark = pytest.mark.real

SECONDS = 60

PROGRAM = """\
import logging, os, sys, time
import logspool
who, count, compress = sys.argv[1], int(sys.argv[2]), sys.argv[3]
handler = logspool.RotatingFileHandler("app.log", maxBytes=20_000, backupCount=1000, compress=compress)
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
if sys.argv[4:] == ["install"]:
    logspool.install()
for number in range(count):
    log.info("%s %d end", who, number)
    if not number % 200:
        time.sleep(0.001)
assert logspool.flush(30)
deadline = time.monotonic() + 30
while any(name[-1].isdigit() or name.endswith(".part") for name in os.listdir(".") if name.startswith("app.log.")):
    assert time.monotonic() < deadline, sorted(os.listdir("."))
    time.sleep(0.01)
os.write(1, b"done\\n")
"""


def _plain(path):
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", str(path)], capture_output=True, check=True).stdout
    return path.read_bytes()


def _number(path):
    return int(path.name.split(".")[2])


def _join(folder):
    """Concatenate all files, oldest first; return the backups and the count of the lines."""
    backups = sorted(folder.glob("app.log.*"), key=_number, reverse=True)
    whole = folder / "whole"
    whole.write_bytes(b"".join(map(_plain, [*backups, folder / "app.log"])))
    return backups, lines.count(whole)


def _zstd_or_skip(compress):
    if compress == "zstd" and subprocess.run(["which", "zstd"], capture_output=True).returncode:
        pytest.skip("the program zstd is missing")


@pytest.mark.every_interpreter
@pytest.mark.parametrize("compress", ["gzip", "zstd"])
@pytest.mark.parametrize("installed", [[], ["install"]], ids=["alone", "installed"])
def test_backups_are_compressed_and_hold_every_line_once_and_in_order(tmp_path, queue_dir, compress, installed):
    _zstd_or_skip(compress)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    folder = tmp_path / "logs"
    folder.mkdir()
    env = programs.environment(programs.INSTALLED, queue_dir)
    arguments = [script, "one", "20000", compress, *installed]
    programs.run(arguments, env=env, folder=folder, deadline_seconds=SECONDS).expect_success()

    backups, found = _join(folder)
    assert found.numbers == {"one": list(range(20_000))}
    assert found.other == []
    assert len(backups) > 10
    assert {path.suffix for path in backups} == {".gz" if compress == "gzip" else ".zst"}


def test_two_programs_compress_each_backup_once(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    folder = tmp_path / "logs"
    folder.mkdir()
    env = programs.environment(programs.INSTALLED, queue_dir)
    children = [programs.start([script, who, "10000", "gzip"], env=env, folder=folder) for who in ("one", "two")]
    for child in children:
        until(lambda child=child: child.poll() is not None, SECONDS, "the end of a program")

    backups, found = _join(folder)
    assert [child.returncode for child in children] == [0, 0]
    assert found.numbers == {"one": list(range(10_000)), "two": list(range(10_000))}
    assert {path.suffix for path in backups} == {".gz"}
    assert [_number(path) for path in backups] == list(range(len(backups), 0, -1))


FORKING = """\
import logging, os, time
import logspool
handler = logspool.RotatingFileHandler("app.log", maxBytes=3_000_000, backupCount=100, compress="gzip")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
number = 0
for turn in range(20):
    for number in range(number, number + 20_000):
        log.info("parent %d end", number)
    number += 1
    assert logspool.flush(30)
    # Usually in the middle of a compression.
    child = os.fork()
    if not child:
        log.info("child%d 0 end", turn)
        logspool.flush(30)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
deadline = time.monotonic() + 30
while any(name[-1].isdigit() or name.endswith(".part") for name in os.listdir(".") if name.startswith("app.log.")):
    assert time.monotonic() < deadline, sorted(os.listdir("."))
    time.sleep(0.01)
"""


def test_forks_in_the_middle_of_a_compression_lose_nothing(tmp_path, queue_dir):
    script = tmp_path / "program.py"
    script.write_text(FORKING)
    folder = tmp_path / "logs"
    folder.mkdir()
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run([script], env=env, folder=folder, deadline_seconds=SECONDS).expect_success()

    _, found = _join(folder)
    assert found.numbers["parent"] == list(range(400_000))
    assert sorted(found.numbers) == sorted(["parent", *(f"child{turn}" for turn in range(20))])
    assert found.doubled() == {}
    assert found.other == []


@pytest.mark.parametrize("options", [{"compress": "xz"}, {"compress": True}, {"compress": "gzip", "errors": "replace"}])
@pytest.mark.parametrize("name", ["RotatingFileHandler", "TimedRotatingFileHandler"])
def test_unsupported_compression_options_are_refused(run_program, name, options):
    text = (
        "import logspool\n"
        f"try:\n    logspool.{name}('app.log', **{options!r})\n"
        "except ValueError as error:\n    assert 'compress' in str(error), error\n"
        "else:\n    raise AssertionError('it was taken')\n"
        f"assert logspool.{name}('app.log', compress='zstd').compress == 'zstd'\n"
        f"assert logspool.{name}('app.log').compress is None\n"
    )
    outcome, _ = run_program(text, deadline_seconds=SECONDS)
    outcome.expect_success()
