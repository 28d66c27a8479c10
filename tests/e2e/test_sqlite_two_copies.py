"""The sink sqlite in programs that use the same database through Python's own copy of SQLite, or remove it."""

import contextlib
import json
import signal
import sqlite3
from collections import Counter

import pytest
from http_receivers import NUMBER, SECONDS

from suite import fixtures, programs, seccomp

pytestmark = [pytest.mark.real]

COUNT = 5_000 if fixtures.faults_full() else 500
PROGRAMS = 2

PRELUDE = """\
import contextlib, json, logging, os, signal, sqlite3, sys
import logspool

path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
handler = logspool.SinkHandler("sqlite", path=path)
log = logging.getLogger("app")
log.addHandler(handler)
log.setLevel(logging.INFO)

def write(first, count):
    for number in range(first, first + count):
        log.info("number %d end", number)
    assert logspool.flush(60)

def read():
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        return {int(text.split()[1]) for (text,) in database.execute("SELECT message FROM records")}

def counts():
    sink = logspool.stats().sinks[path]
    return {name: sink.total(name) for name in ("accepted_for_sink", "written", "dropped")}
"""

READS = (
    PRELUDE
    + """\
for at in range(first, first + count, count // 10):
    write(at, count // 10)
    assert set(range(first, at + count // 10)) <= read()
print("written", flush=True)
if sys.argv[4] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
)


def rows(path):
    """Return how often each number is in the table, and check the database."""
    with contextlib.closing(sqlite3.connect(path, timeout=SECONDS)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        messages = [message.encode() for (message,) in database.execute("SELECT message FROM records")]
    return Counter(int(NUMBER.fullmatch(message)[1]) for message in messages)


def once(numbers):
    """Return the expected counts if each of these numbers is there once."""
    return Counter(dict.fromkeys(numbers, 1))


def test_a_program_that_reads_its_own_database_and_is_killed_loses_no_row(run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    outcome, _ = run_program(READS, path, "0", str(COUNT), "killed", deadline_seconds=SECONDS)

    assert outcome.status == -signal.SIGKILL, outcome.err
    assert rows(path) == once(range(COUNT))


def test_programs_that_read_their_common_database_lose_no_row(tmp_path, queue_dir):
    path = tmp_path / "log.sqlite"
    script = tmp_path / "program.py"
    script.write_text(READS, encoding="utf-8")
    with contextlib.ExitStack() as ends:
        started = [
            programs.start(
                [script, str(path), str(number * COUNT), str(COUNT), "ends"],
                env=programs.environment(programs.INSTALLED, queue_dir),
                folder=tmp_path,
            )
            for number in range(PROGRAMS)
        ]
        for child in started:
            ends.enter_context(programs.ended(child))
        assert [child.wait(SECONDS) for child in started] == [0] * PROGRAMS

    assert rows(path) == once(range(PROGRAMS * COUNT))


CLOSING_PARENT = (
    PRELUDE
    + """\
write(0, 100)
to_parent, to_child = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    write(100, 100)
    os.write(to_parent[1], b"x")
    os.read(to_child[0], 1)
    write(200, 100)
    os.kill(os.getpid(), signal.SIGKILL)
os.read(to_parent[0], 1)
write(300, 100)
handler.close()
os.write(to_child[1], b"x")
os.waitpid(child, 0)
"""
)


def test_a_child_loses_no_row_when_its_parent_closes_the_database(run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    outcome, _ = run_program(CLOSING_PARENT, path, "0", "0", deadline_seconds=SECONDS)
    outcome.expect_success()

    assert rows(path) == once(range(400))


GONE = (
    PRELUDE
    + """\
write(0, 100)
if sys.argv[4] == "removed":
    os.remove(path)
elif sys.argv[4] == "removed with its log":
    for end in ("", "-wal", "-shm"):
        os.remove(path + end)
elif sys.argv[4] == "moved":
    os.rename(path, path + ".old")
else:
    with contextlib.closing(sqlite3.connect(path + ".new")) as other:
        other.execute("CREATE TABLE mine (text)")
        other.commit()
    os.replace(path + ".new", path)
write(100, 100)
print(json.dumps({"rows": sorted(read()), "counts": counts(), "errors": logspool.stats().sinks[path].errors}))
"""
)


@pytest.mark.parametrize("way", ["removed", "removed with its log", "moved", "replaced"])
def test_a_removed_database_is_created_again_with_all_later_records(way, run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    outcome, _ = run_program(GONE, path, "0", "0", way, deadline_seconds=SECONDS)
    outcome.expect_success()

    told = json.loads(outcome.out)
    assert told["rows"] == list(range(100, 200))
    assert told["counts"] == {"accepted_for_sink": 200, "written": 200, "dropped": 0}
    assert told["errors"] == 1
    assert rows(path) == once(range(100, 200))
    if way == "moved":
        assert rows(path + ".old") == once(range(100))


REFUSED = (
    PRELUDE
    + """\
write(0, 100)
with contextlib.closing(sqlite3.connect(path)) as database:
    database.execute(
        "CREATE TRIGGER picky BEFORE INSERT ON records WHEN new.message LIKE '%7 end'"
        " BEGIN SELECT RAISE(ABORT, 'no sevens'); END"
    )
    database.commit()
# The last record is refused: health names the error of the last write.
write(100, 98)
print(json.dumps({"counts": counts(), "health": str(logspool.health())}))
"""
)


def test_a_record_that_a_trigger_refuses_is_counted_alone(run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    outcome, _ = run_program(REFUSED, path, "0", "0", deadline_seconds=SECONDS)

    assert outcome.status == 0, outcome.err
    told = json.loads(outcome.out)
    assert told["counts"] == {"accepted_for_sink": 198, "written": 188, "dropped": 10}
    assert "no sevens" in told["health"], told
    assert rows(path) == once([*range(100), *(number for number in range(100, 198) if number % 10 != 7)])
    assert b"10 records were not written and are dropped (rejected 10)" in outcome.err


def test_a_folder_is_refused_as_a_database(run_program, tmp_path):
    outcome, _ = run_program(PRELUDE, str(tmp_path), "0", "0", deadline_seconds=SECONDS)

    assert outcome.status == 1
    assert b"IsADirectoryError" in outcome.err, outcome.err
    assert b"cannot be a database: it is not a regular file" in outcome.err


@pytest.mark.skipif(not seccomp.can_refuse(), reason="the system calls of this processor are not known here")
@pytest.mark.parametrize("calls", [("close_range",), ("unshare",), ("close_range", "unshare")])
def test_the_handler_is_refused_where_no_descriptor_table_can_be_created(calls, run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    refuse = "".join(f"seccomp.refuse({call!r})\n" for call in calls)
    program = f"from suite import seccomp\n{refuse}{READS}"
    outcome, _ = run_program(program, path, "0", str(COUNT), "killed", deadline_seconds=SECONDS)

    if len(calls) == 1:
        assert outcome.status == -signal.SIGKILL, outcome.err
        assert rows(path) == once(range(COUNT))
    else:
        assert outcome.status == 1
        assert b"this environment refuses close_range and unshare" in outcome.err, outcome.err
