"""Records of many megabytes on a small tmpfs: with a disk that works no record is refused."""

import pytest

from suite import mounts

pytestmark = pytest.mark.real

PROGRAM = """\
import logging, sys
import logspool

count, size = int(sys.argv[1]), int(sys.argv[2])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(queue_dir=sys.argv[3])
for number in range(count):
    logging.info("%08d%s", number, "x" * (size - 8))
print(logspool.flush())
"""


@pytest.mark.parametrize(
    ("tmpfs", "count", "size", "told"),
    [
        ("64m", 100, 1_000_000, b""),
        ("64m", 3, 30_000_000, b""),
        ("16m", 3, 20_000_000, b"cannot keep a record of 200000"),
    ],
)
def test_large_records_wait_for_room_and_all_are_written(run_program, tmp_path, tmpfs, count, size, told):
    with mounts.small(tmp_path / "queue", tmpfs) as queue:
        outcome, folder = run_program(PROGRAM, str(count), str(size), str(queue), deadline_seconds=120)

    assert outcome.expect_success().out == b"True\n"
    assert outcome.err.count(b"\n") == (1 if told else 0) and told in outcome.err
    with (folder / "app.log").open("rb") as file:
        assert [int(line[:8]) for line in file if len(line) == size + 1] == list(range(count))
