"""logspool's own rotating handlers: several processes log to one file, and one rotates it for all."""

import pytest

from suite import lines, programs, queue_folder

pytestmark = pytest.mark.real

PROCESSES = 3
LINES = 3000
MAX_BYTES = 10_000
# Ten times the duration of the slowest test on a busy machine.
SECONDS = 120

SIZED = f"logspool.RotatingFileHandler('app.log', maxBytes={MAX_BYTES}, backupCount=500)"
TIMED = "logspool.TimedRotatingFileHandler('app.log', when='S')"

# The programs start to log once all of them are ready. A test by time logs for several rotations.
PROGRAM = """\
import logging, logspool, sys, time
{install}
handler = {handler}
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
print("ready", flush=True)
sys.stdin.readline()
for number in range({lines}):
    log.info("%s %d end", sys.argv[1], number)
    time.sleep({pause})
handler.flush()
"""


def _run(tmp_path, queue_dir, handler, install, count, pause):
    text = PROGRAM.format(handler=handler, install="logspool.install()" if install else "", lines=count, pause=pause)
    children = [
        programs.start(
            ["-c", text, f"program{who}"],
            env=programs.environment(programs.INSTALLED, queue_dir),
            folder=tmp_path,
            stdin=-1,
            stdout=-1,
        )
        for who in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout.readline() == b"ready\n"
        for child in children:
            child.stdin.write(b"\n")
            child.stdin.flush()
        for child in children:
            assert child.wait(SECONDS) == 0
    finally:
        for child in children:
            with programs.ended(child):
                pass


def _each_line_once(paths, count):
    counted = lines.count(*paths)

    assert counted.numbers == {f"program{who}": list(range(count)) for who in range(PROCESSES)}
    assert counted.other == []


@pytest.mark.parametrize("install", [False, True], ids=["alone", "installed"])
def test_a_file_rotated_by_size_has_every_line_once_and_full_backups(tmp_path, queue_dir, install):
    _run(tmp_path, queue_dir, SIZED, install, LINES, 0)
    backups = sorted(tmp_path.glob("app.log.*"), key=lambda path: -int(path.suffix[1:]))

    assert len(backups) > 3
    assert [path for path in backups if not MAX_BYTES - 100 < path.stat().st_size < MAX_BYTES] == []
    _each_line_once([*backups, tmp_path / "app.log"], LINES)
    assert queue_folder.left_in(queue_dir) == []


def test_a_file_rotated_by_time_is_rotated_once_a_second_for_all(tmp_path, queue_dir):
    _run(tmp_path, queue_dir, TIMED, False, 300, 0.01)
    backups = sorted(tmp_path.glob("app.log.*"))

    assert len(backups) >= 2
    _each_line_once([*backups, tmp_path / "app.log"], 300)
    assert queue_folder.left_in(queue_dir) == []
