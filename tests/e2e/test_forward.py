"""`ForwardHandler` in real programs, with a strict receiver of Fluent Forward v1: no record is missing, ever."""

import subprocess
import sys

import pytest
from forward_receiver import SECONDS, ForwardReceiver, program

from service import certificates
from suite import programs
from suite.waiting import until

pytestmark = [pytest.mark.real]


def expect_all(receiver, count, most_twice=0):
    """Compare the received records: no gap in the numbers, and at most `most_twice` records come again."""
    assert not receiver.mistakes
    assert set(receiver.numbers) == set(range(count))
    twice = receiver.numbers.total() - count
    assert twice <= most_twice
    return twice


def expect_counts(stats, count):
    """Compare the counts of the sender."""
    assert {name: stats[name] for name in ("accepted_for_sink", "written", "queued", "dropped")} == {
        "accepted_for_sink": count,
        "written": count,
        "queued": 0,
        "dropped": 0,
    }


@pytest.mark.parametrize("shared_key", [None, "hunter2"])
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_healthy_receiver_gets_every_record_once(scheme, shared_key, tmp_path, queue_dir):
    context, options = None, {"tag": "app.web"}
    if scheme == "tls":
        authority = certificates.authority(tmp_path, "authority")
        context = certificates.context(certificates.issued(tmp_path, "server", authority))
        options["authorities"] = str(authority.certificate)
    if shared_key:
        options["shared_key"] = shared_key
    with ForwardReceiver(context, shared_key, tag="app.web") as receiver:
        with program(tmp_path, queue_dir, receiver.address, **options) as sender:
            assert sender.ask("log", 5000) == 5000
            assert sender.ask("flush", SECONDS) is True
            stats = sender.ask("stats")
            sender.end()

    expect_all(receiver, 5000)
    expect_counts(stats, 5000)
    assert "hunter2" not in stats["shown"]
    # Chunks are closed at 32 KiB, and have at most four times as many bytes.
    assert len(receiver.sizes) > 5 and max(receiver.sizes) <= 4 * 32768


def test_records_are_gathered_until_a_flush_or_the_end_of_the_program(tmp_path, queue_dir):
    with ForwardReceiver() as receiver:
        with program(tmp_path, queue_dir, receiver.address, gather_seconds=60.0) as sender:
            for _ in range(10):
                sender.ask("log", 1)
            assert sender.ask("flush", SECONDS) is True
            assert len(receiver.sizes) <= 2
            for _ in range(10):
                sender.ask("log", 1)
            sender.end()

    expect_all(receiver, 20)


def test_a_receiver_that_restarts_meanwhile_misses_no_record(tmp_path, queue_dir):
    with ForwardReceiver(shared_key="hunter2", ack_delay=0.02) as receiver:
        options = {"shared_key": "hunter2", "chunk_bytes": 4096, "gather_seconds": 0.01}
        with program(tmp_path, queue_dir, receiver.address, **options) as sender:
            for _ in range(4):
                before = len(receiver.sizes)
                sender.ask("log", 1000)
                until(lambda before=before: len(receiver.sizes) > before, SECONDS, "a chunk arrives")
                receiver.stop()
                sender.ask("log", 500)
                receiver.start()
            assert sender.ask("flush", SECONDS) is True
            stats = sender.ask("stats")
            sender.end()

    expect_all(receiver, 6000, most_twice=6000)
    expect_counts(stats, 6000)


def test_cut_connections_repeat_chunks_and_lose_none(tmp_path, queue_dir, record_property):
    with ForwardReceiver(cut_every=7) as receiver:
        options = {"chunk_bytes": 4096, "gather_seconds": 0.01}
        with program(tmp_path, queue_dir, receiver.address, **options) as sender:
            sender.ask("log", 3000)
            assert sender.ask("flush", SECONDS) is True
            stats = sender.ask("stats")
            sender.end()

    twice = expect_all(receiver, 3000, most_twice=24 * 3000)
    record_property("summary", f"3000 records, {twice} stored again")
    assert twice > 0
    expect_counts(stats, 3000)


def test_a_wrong_key_sends_no_record_and_the_right_one_sends_them_all(tmp_path, queue_dir):
    with ForwardReceiver(shared_key="other") as receiver:
        with program(tmp_path, queue_dir, receiver.address, shared_key="hunter2") as sender:
            sender.ask("log", 100)
            assert sender.ask("flush", 0.5) is False
            until(lambda: receiver.refused > 1, SECONDS, "it tries again")
            stats = sender.ask("stats")
            assert not receiver.numbers
            assert (stats["written"], stats["dropped"]) == (0, 0)
            assert "the receiver refuses the shared key" in stats["shown"] and "hunter2" not in stats["shown"]

            receiver.shared_key = "hunter2"
            assert sender.ask("flush", SECONDS) is True
            stats = sender.ask("stats")
            sender.end()

    expect_all(receiver, 100)
    expect_counts(stats, 100)


def test_a_receiver_with_a_key_is_an_error_for_a_handler_without_one(tmp_path, queue_dir):
    with ForwardReceiver(shared_key="other") as receiver:
        with program(tmp_path, queue_dir, receiver.address) as sender:
            sender.ask("log", 1)
            assert sender.ask("flush", 0.5) is False
            until(lambda: "fix: shared_key=" in sender.ask("stats")["shown"], SECONDS, "the error names the mend")
            receiver.shared_key = None
            assert sender.ask("flush", SECONDS) is True
            sender.end()

    expect_all(receiver, 1)


def command(folder, queue_dir, *words):
    """Run a command of logspool; return the ended process with its output."""
    return subprocess.run(
        [sys.executable, "-m", "logspool", *words],
        env=programs.environment(programs.INSTALLED, queue_dir),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def test_records_of_a_killed_program_are_recovered_with_its_key_and_tag(tmp_path, queue_dir):
    with ForwardReceiver(shared_key="hunter2", tag="app.web") as receiver:
        receiver.stop()
        with program(tmp_path, queue_dir, receiver.address, shared_key="hunter2", tag="app.web") as sender:
            assert sender.ask("log", 500) == 500
            assert sender.ask("flush", 0.3) is False
            sender.child.kill()
            sender.child.wait(SECONDS)
        left = command(tmp_path, queue_dir, "doctor").stdout
        receiver.start()
        recovered = command(tmp_path, queue_dir, "recover", str(queue_dir))

    assert "left 500 records for service:address=" in left and "hunter2" not in left, left
    printed = recovered.stdout + recovered.stderr
    assert recovered.returncode == 0, printed
    assert "500" in printed and "hunter2" not in printed
    expect_all(receiver, 500)
