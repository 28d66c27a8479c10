"""The sink sqlite in real programs: committed rows stay, and each record is in the table once."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest
from http_receivers import NUMBER, SECONDS, program

from suite import fixtures, programs
from suite.waiting import until

pytestmark = [pytest.mark.real]

KILLS = 30 if fixtures.faults_full() else 4


def rows(path):
    """Return how often each number is in the table, and check the database."""
    with contextlib.closing(sqlite3.connect(path, timeout=SECONDS)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        messages = [message.encode() for (message,) in database.execute("SELECT message FROM records ORDER BY id")]
    return Counter(int(NUMBER.fullmatch(message)[1]) for message in messages)


def count(path):
    """Return the number of rows; 0 if there is no table yet."""
    if not os.path.exists(path):
        return 0
    with contextlib.closing(sqlite3.connect(path, timeout=SECONDS)) as database:
        try:
            return database.execute("SELECT count(*) FROM records").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


def once(count):
    """Return the expected counts if each of `count` records is there once."""
    return Counter(dict.fromkeys(range(count), 1))


@pytest.mark.parametrize("synchronous", ["normal", "full"])
def test_each_record_is_a_row(synchronous, tmp_path, queue_dir):
    path = str(tmp_path / "log.sqlite")
    with program(tmp_path, queue_dir, "sqlite", {"path": path, "synchronous": synchronous}) as sender:
        sender.ask("log", 3000)
        assert sender.ask("flush", SECONDS) is True
        stats = sender.ask("stats")
        sender.end()

    assert rows(path) == once(3000)
    assert (stats["accepted_for_sink"], stats["written"], stats["dropped"]) == (3000, 3000, 0)
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = database.execute(
            "SELECT logger, level, function, json_extract(fields, '$.order') FROM records WHERE message = ?",
            ["number 77 end"],
        )
        assert found.fetchall() == [("app", 20, "<module>", 77)]


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_kill_in_the_middle_loses_nothing_and_repeats_nothing(kill, tmp_path, queue_dir):
    path = str(tmp_path / "log.sqlite")
    with program(tmp_path, queue_dir, "sqlite", {"path": path, "synchronous": "full"}, keeper=False) as sender:
        sender.ask("log", 200)
        until(lambda: count(path) > 0, SECONDS, "the first rows")
        sender.child.stdin.write("log 20000\n")
        sender.child.stdin.flush()
        until(lambda: count(path) > 400 * kill, SECONDS, "more rows")
        sender.child.send_signal(signal.SIGKILL)
        sender.child.wait(SECONDS)
    before = rows(path)
    assert set(before.values()) == {1}
    subprocess.run(
        [sys.executable, "-m", "logspool", "recover"],
        env=programs.environment(programs.INSTALLED, queue_dir),
        cwd=tmp_path,
        check=True,
        timeout=SECONDS,
    )
    after = rows(path)
    # The program logs in order, so the accepted records have no gaps.
    assert after == once(len(after))
    assert len(after) >= max(200, len(before))


def test_a_locked_database_gets_every_record_later(tmp_path, queue_dir):
    path = str(tmp_path / "log.sqlite")
    with program(tmp_path, queue_dir, "sqlite", {"path": path, "busy_timeout": 0.1}) as sender:
        sender.ask("log", 100)
        assert sender.ask("flush", SECONDS) is True
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            sender.ask("log", 100)
            assert sender.ask("flush", 0.3) is False
            until(lambda: "locks the database" in sender.ask("stats")["shown"], SECONDS, "the error is told")
            other.execute("COMMIT")
            # A reader with an open transaction delays no write.
            other.execute("BEGIN")
            assert other.execute("SELECT count(*) FROM records").fetchone()[0] >= 100
            assert sender.ask("flush", SECONDS) is True
            sender.ask("log", 100)
            assert sender.ask("flush", SECONDS) is True
            other.execute("COMMIT")
        stats = sender.ask("stats")
        sender.end()

    assert rows(path) == once(300)
    assert (stats["written"], stats["dropped"]) == (300, 0)


FORKS = """\
import logging, os, sys
import logspool

handler = logspool.SinkHandler("sqlite", path=sys.argv[1])
log = logging.getLogger("app")
log.addHandler(handler)
log.setLevel(logging.INFO)
for number in range(100):
    log.info("number %d end", number)
assert logspool.flush(60)
for child in range(3):
    pid = os.fork()
    if pid == 0:
        for number in range(100):
            log.info("number %d end", 100 + child * 100 + number)
        assert logspool.flush(60)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
for number in range(400, 500):
    log.info("number %d end", number)
assert logspool.flush(60)
"""


def test_forked_children_write_to_the_same_database(run_program, tmp_path):
    path = str(tmp_path / "log.sqlite")
    outcome, _ = run_program(FORKS, path, deadline_seconds=SECONDS * 2)
    outcome.expect_success()

    assert rows(path) == once(500)
