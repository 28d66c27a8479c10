"""The sinks over HTTP in real programs: every record arrives and is counted, also with a faulty receiver."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import peers
import pytest
from http_receivers import SECONDS, program, receiver

from suite import programs
from suite.waiting import until

pytestmark = [pytest.mark.real]

KINDS = ("loki", "elasticsearch", "otlp")

OK = (200, {}, b'{"errors":false}')


def once(count):
    """Return the expected counts if each of `count` records arrived once."""
    return Counter(dict.fromkeys(range(count), 1))


def expect_all(kind, accepted, count):
    """Compare the received records: each at least once, and exactly once where the receiver knows its id."""
    assert set(accepted) == set(range(count))
    if kind == "elasticsearch":
        assert accepted == once(count)


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_receiver_gets_every_record_once(kind, tmp_path, queue_dir):
    with receiver() as got, program(tmp_path, queue_dir, kind, {"address": got.address}) as sender:
        assert sender.ask("log", 5000) == 5000
        assert sender.ask("flush", SECONDS) is True
        stats = sender.ask("stats")
        sender.end()

    assert got.accepted == once(5000)
    assert {name: stats[name] for name in ("accepted_for_sink", "written", "dropped")} == {
        "accepted_for_sink": 5000,
        "written": 5000,
        "dropped": 0,
    }
    # Batches of the queue are gathered into few requests.
    assert got.requests < 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_that_starts_late_and_restarts_gets_every_record(kind, tmp_path, queue_dir):
    with receiver(runs=False) as got, program(tmp_path, queue_dir, kind, {"address": got.address}) as sender:
        sender.ask("log", 500)
        assert sender.ask("flush", 0.3) is False
        assert not got.accepted
        got.start()
        assert sender.ask("flush", SECONDS) is True
        assert got.accepted == once(500)
        sender.ask("log", 500)
        got.stop()
        sender.ask("log", 500)
        got.start()
        assert sender.ask("flush", SECONDS) is True
        stats = sender.ask("stats")
        sender.end()

    expect_all(kind, got.accepted, 1500)
    assert (stats["written"], stats["dropped"]) == (1500, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_in_trouble_gets_every_record_later(kind, tmp_path, queue_dir):
    def replies(count, _):
        if count == 2:
            return None
        if count == 4:
            time.sleep(1)
        return {0: (500, {}, b"no"), 1: (429, {"Retry-After": "1"}, b""), 3: (503, {}, b"")}.get(count, OK)

    with receiver(replies) as got, program(tmp_path, queue_dir, kind, {"address": got.address}) as sender:
        sender.ask("log", 1000)
        assert sender.ask("flush", SECONDS) is True
        stats = sender.ask("stats")
        sender.end()

    expect_all(kind, got.accepted, 1000)
    assert (stats["written"], stats["dropped"], stats["queued"]) == (1000, 0, 0)
    assert got.requests >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_one_record_that_the_receiver_refuses_is_dropped_alone_and_counted(kind, tmp_path, queue_dir):
    def replies(_, body):
        if b"number 617 end" not in body:
            return OK
        if kind != "elasticsearch":
            return 400, {}, b"a bad record"
        refused = {"status": 400, "error": {"type": "mapper", "reason": "a bad record"}}
        documents = body.splitlines()[1::2]
        items = [{"create": refused if b"number 617 end" in each else {"status": 201}} for each in documents]
        return 200, {}, json.dumps({"errors": True, "items": items}).encode()

    with receiver(replies) as got, program(tmp_path, queue_dir, kind, {"address": got.address}) as sender:
        sender.ask("log", 1000)
        assert sender.ask("flush", SECONDS) is True
        stats = sender.ask("stats")
        sender.end()

    expected = once(1000)
    del expected[617]
    assert got.accepted == expected
    assert (stats["accepted_for_sink"], stats["written"], stats["dropped"]) == (1000, 999, 1)
    assert 'reason="rejected"' in stats["shown"], stats["shown"]


def test_an_address_that_requires_a_secret_is_reported_and_the_records_stay(tmp_path, queue_dir):
    options = {"token": "hunter2", "headers": "X-Key: hunter3"}
    with (
        receiver(lambda *_: (401, {}, b"who are you")) as got,
        program(tmp_path, queue_dir, "loki", {"address": got.address, **options}) as sender,
    ):
        sender.ask("log", 100)
        assert sender.ask("flush", 0.5) is False
        until(lambda: "token" in sender.ask("stats")["shown"], SECONDS, "the error names the mend")
        stats = sender.ask("stats")
        got.replies = lambda *_: OK
        assert sender.ask("flush", SECONDS) is True
        sender.end()

    assert "hunter" not in stats["shown"], stats["shown"]
    assert (stats["written"], stats["dropped"]) == (0, 0)
    assert got.accepted == once(100)


def recover(queue_dir, folder):
    """Run the command that delivers the records of dead programs; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "logspool", "recover"],
        env=programs.environment(programs.INSTALLED, queue_dir, NO_PROXY="127.0.0.1"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_recover_delivers_the_records_of_a_killed_program(kind, tmp_path, queue_dir):
    options = {"headers": "X-Key: hunter3"}
    with receiver(runs=False) as got:
        sent = {"address": got.address, **options}
        with program(tmp_path, queue_dir, kind, sent, spool_dir=str(tmp_path / "spool"), keeper=False) as sender:
            sender.ask("log", 3000)
            assert sender.ask("flush", 0.3) is False
            sender.child.send_signal(signal.SIGKILL)
            sender.child.wait(SECONDS)
        got.start()
        said = recover(queue_dir, tmp_path)

    expect_all(kind, got.accepted, 3000)
    assert "hunter" not in said, said


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_killed_while_it_sends_loses_nothing(kind, tmp_path, queue_dir):
    def replies(*_):
        time.sleep(0.02)
        return OK

    with receiver(replies) as got:
        sent = {"address": got.address, "batch_records": 50}
        with program(tmp_path, queue_dir, kind, sent, keeper=False) as sender:
            sender.ask("log", 3000)
            until(lambda: got.requests > 10, SECONDS, "ten requests")
            sender.child.send_signal(signal.SIGKILL)
            sender.child.wait(SECONDS)
        assert len(got.accepted) < 3000
        recover(queue_dir, tmp_path)

    expect_all(kind, got.accepted, 3000)


def test_recover_reports_a_refused_record_of_a_dead_program(tmp_path, queue_dir):
    with receiver(lambda _, body: (400, {}, b"bad") if b"number 7 end" in body else OK, runs=False) as got:
        with program(tmp_path, queue_dir, "loki", {"address": got.address}, keeper=False) as sender:
            sender.ask("log", 20)
            sender.child.send_signal(signal.SIGKILL)
            sender.child.wait(SECONDS)
        got.start()
        said = recover(queue_dir, tmp_path)

    assert "19 records written to loki:" in said, said
    assert "1 record dropped: their receiver refuses them" in said, said
    expected = once(20)
    del expected[7]
    assert got.accepted == expected


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("send-to-loki.md", "http://127.0.0.1:3100"),
        ("send-to-elasticsearch.md", "https://search:9200"),
        ("send-otlp.md", "http://127.0.0.1:4318"),
    ],
)
def test_the_program_on_the_page_sends_its_record(page, shown, run_program):
    bodies = []

    def replies(count, body):
        bodies.append(body)
        return OK

    with receiver(replies) as got:
        test = "test_the_program_on_the_page_sends_its_record"
        run_program(peers.page_program(page, test, shown, got.address), NO_PROXY="127.0.0.1")[0].expect_success()

    assert [b"payment is late" in body for body in bodies] == [True]
