"""`logspool serve --adopt`: records of killed programs are delivered once, without another start of the programs."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import clients
import pytest

import ports

KILLS = int(os.environ.get("LOGSPOOL_KILLS", {"ci": 5, "full": 200}[os.environ.get("LOGSPOOL_FAULTS", "ci")]))
DEADLINE = 60.0

LEFT = """
import logging, os, sys, logspool
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(sys.argv[1])])
logspool.install()
for number in range(5000):
    logging.info("%s %d", sys.argv[2], number)
os.kill(os.getpid(), 9)
"""

FILE_LEFT = """
import logging, os, sys, threading, logspool
# A pipe that nobody reads holds up what is written; the file takes its place before anybody adopts.
os.mkfifo(sys.argv[1])
reader = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
handler = logging.FileHandler(sys.argv[1])
logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
logspool.install()
for number in range(5000):
    logging.info("line %d %s", number, "x" * 100)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def environment(queue_dir) -> "dict[str, str]":
    """Variables of a program with the queue folder of this test."""
    return {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}


def leave(program: str, *arguments: str, env: "dict[str, str]") -> int:
    """Run a program that is killed; return its process id."""
    with subprocess.Popen([sys.executable, "-c", program, *arguments], env=env) as client:
        assert -signal.SIGKILL == client.wait(DEADLINE)
    return client.pid


def wait_until(what: str, is_so) -> None:
    until = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def wait_empty(folder) -> None:
    """Wait until nothing is left in a queue folder."""
    wait_until(f"something stays in {folder}", lambda: not folder.exists() or not list(folder.iterdir()))


def numbers(messages: "list[str]", name: str) -> "list[int]":
    return [int(message.split()[1]) for message in messages if message.split()[0] == name]


def test_records_of_a_killed_client_arrive_without_another_start(start_service, environment, queue_dir):
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    leave(LEFT, listen, "early", env=environment)
    service = start_service("--listen", listen, "--adopt", str(queue_dir))
    service.wait_for(5000)
    wait_empty(queue_dir)
    # Records that come while it runs. A stopped service takes the client's connection and no record.
    service.process.send_signal(signal.SIGSTOP)
    leave(LEFT, listen, "late", env=environment)
    service.process.send_signal(signal.SIGCONT)
    service.wait_for(10_000)
    wait_empty(queue_dir)

    metrics = service.get("/metrics")[1]
    stats = json.loads(service.get("/api/stats")[1])
    service.stop()
    messages = service.stored_messages()
    assert 0 == stats["stores"][0]["records_missing"]
    assert list(range(5000)) == numbers(messages, "early")
    assert list(range(5000)) == numbers(messages, "late")
    assert 'logspool_service_records_adopted_total{to="store"} ' in metrics
    assert any(f"5000 records for {listen} stored" in line for line in service.said), service.said


@pytest.mark.timeout(3600)
def test_each_record_is_stored_once_although_client_and_service_are_killed(
    start_service, environment, queue_dir, tmp_path
):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    listen = f"tcp://127.0.0.1:{ports.free_port()}"

    def start():
        return start_service("--listen", listen, "--adopt", str(queue_dir), folder=tmp_path / "killed")

    service, accepted = start(), {}
    for turn in range(KILLS):
        name = f"c{turn}"
        with clients.Client(listen, name, environment, {}) as client:
            client.wait_accepted(1)
            threading.Event().wait(moments.uniform(0, 0.2))
            if turn % 2:
                service.stop(signal.SIGKILL)
                threading.Event().wait(moments.uniform(0, 0.2))
        accepted[name] = client.accepted
        if turn % 2:
            service = start()
            # In the middle of the adoption, as often as not.
            threading.Event().wait(moments.uniform(0, 0.3))
        service.stop(signal.SIGKILL)
        service = start()
        wait_empty(queue_dir)

    service.stop()
    messages = service.stored_messages()
    for name, count in accepted.items():
        stored = numbers(messages, name)
        assert stored == list(range(len(stored))), f"seed {seed}, {name}: one missing, twice, or in another order"
        assert len(stored) >= count, f"seed {seed}, {name}: {count} were accepted, {len(stored)} rows"


def test_the_next_start_and_the_service_never_both_deliver(start_service, environment, queue_dir):
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    leave(LEFT, listen, "left", env=environment)
    command = [sys.executable, "-c", "import logspool; logspool.recover()"]
    recoverers = [subprocess.Popen(command, env=environment) for _ in range(3)]
    service = start_service("--listen", listen, "--adopt", str(queue_dir))
    for recoverer in recoverers:
        assert 0 == recoverer.wait(DEADLINE)
    service.wait_for(5000)
    wait_empty(queue_dir)
    service.stop()

    assert list(range(5000)) == numbers(service.stored_messages(), "left")


def test_records_for_a_file_reach_their_file(start_service, environment, queue_dir, tmp_path):
    path = tmp_path / "app.log"
    leave(FILE_LEFT, str(path), env=environment)
    path.unlink()
    service = start_service("--adopt", str(queue_dir))
    wait_empty(queue_dir)

    lines = path.read_text().splitlines()
    assert list(range(5000))[-len(lines) :] == [int(line.split()[1]) for line in lines] and len(lines) > 4000
    service.wait_metric(f'logspool_service_records_adopted_total{{to="file"}} {len(lines)}')
    assert [] == service.query()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may adopt what other users' programs left")
def test_records_left_by_another_user_are_stored_without_opening_their_paths(
    start_service, environment, queue_dir, tmp_path
):
    listen, path = f"tcp://127.0.0.1:{ports.free_port()}", tmp_path / "app.log"
    leave(LEFT, "tcp://127.0.0.1:1", "elsewhere", env=environment)
    leave(LEFT, listen, "here", env=environment)
    leave(FILE_LEFT, str(path), env=environment)
    path.unlink()
    for place in [queue_dir, *queue_dir.iterdir()]:
        os.chown(place, 65534, 65534)
    service = start_service("--listen", listen, "--adopt", str(queue_dir))
    wait_until("something stays", lambda: not list(queue_dir.glob("*.seg")))
    service.stop()

    messages = service.stored_messages()
    assert not path.exists()
    assert list(range(5000)) == numbers(messages, "elsewhere") == numbers(messages, "here")
    lines = numbers(messages, "line")
    assert list(range(5000))[-len(lines) :] == lines and len(lines) > 4000


def test_a_folder_that_cannot_be_adopted_is_an_error_with_a_fix(logspool_binary, tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "file").touch()
    named = tmp_path / f"logspool-{os.geteuid() + 1}"
    named.mkdir(mode=0o700)
    for place, part in [
        ("missing", "the folder does not exist (fix: create it with mode 0700"),
        ("open", "others may enter it (mode 0755; fix: chmod 700"),
        ("file", "it is not a folder (fix: name the queue folder of the programs"),
        (named.name, "not to the one that it is named after"),
    ]:
        command = [logspool_binary, "serve", "--listen", "tcp://127.0.0.1:0", "--http", "off", "--adopt", place]
        done = subprocess.run(
            [*command, "--store", "sqlite:data"], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE
        )
        assert 1 == done.returncode and f"cannot adopt {place}: " in done.stderr and part in done.stderr, done.stderr


def test_the_service_waits_for_a_folder_that_programs_create_later(start_service, tmp_path):
    folder = tmp_path / f"logspool-{os.geteuid()}"
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    service = start_service("--listen", listen, "--adopt", str(folder))
    assert any(f"nothing to adopt in {folder} yet" in line for line in service.said), service.said


def test_recover_delivers_records_and_reports_the_remaining_ones(
    logspool_binary, start_service, environment, queue_dir
):
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    leave(LEFT, listen, "left", env=environment)

    def recover(*arguments: str) -> subprocess.CompletedProcess:
        command = [logspool_binary, "recover", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment)

    away = recover(str(queue_dir))
    assert (1, "") == (away.returncode, away.stdout)
    assert f"cannot append 5000 records to {listen}" in away.stderr
    service = start_service("--listen", listen)
    there = recover()
    assert (0, f"5000 records written to {listen}\n", "") == (there.returncode, there.stdout, there.stderr)
    again = recover(str(queue_dir))
    assert (0, "nothing to deliver\n") == (again.returncode, again.stdout)
    assert 2 == recover("a", "b").returncode
    wrong = recover("/etc/passwd")
    assert 1 == wrong.returncode and "cannot recover /etc/passwd" in wrong.stderr
    service.stop()
    assert list(range(5000)) == numbers(service.stored_messages(), "left")
