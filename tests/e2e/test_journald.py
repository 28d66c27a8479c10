"""The sink for journald, against systemd-journald itself and against a reader of its protocol."""

import array
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import peers
import pytest
from peers import Sender

from suite import programs
from suite.waiting import until

pytestmark = [pytest.mark.real]

#: Numbers of fcntl that Python names from 3.13 on: F_GET_SEALS, and the four seals that journald requires.
GET_SEALS, SEALS = 1034, 0x0001 | 0x0002 | 0x0004 | 0x0008


def fields(entry: bytes) -> dict[str, str]:
    """Read an entry of the native protocol."""
    found = {}
    while entry:
        name, separator, rest = entry.partition(b"\n")
        if b"=" in name:
            name, _, value = name.partition(b"=")
            entry = rest
        else:
            (length,) = struct.unpack_from("<Q", rest)
            value, entry = rest[8 : 8 + length], rest[8 + length :]
            assert entry[:1] == b"\n"
            entry = entry[1:]
        assert separator and name.decode() not in found
        found[name.decode()] = value.decode()
    return found


class StandIn:
    """Reads the native protocol, with entries in memory files."""

    def __init__(self, folder):
        self.path = folder / "journal.socket"
        self.entries = []
        self.files = 0
        self.reads = threading.Event()
        self.reads.set()
        self._socket = self._thread = None

    def start(self):
        self.path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._thread = threading.Thread(target=self._serve, args=(self._socket,))
        self._thread.start()
        return self

    def stop(self):
        if self._thread is not None:
            self.reads.set()
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.sendto(b"end", str(self.path))
            self._thread.join(peers.SECONDS)
            self._socket.close()
            self._thread = None

    def _serve(self, listening):
        while True:
            self.reads.wait()
            entry, control, _, _ = listening.recvmsg(1 << 20, socket.CMSG_SPACE(4))
            if entry == b"end":
                return
            for _, _, data in control:
                (descriptor,) = array.array("i", data)
                assert entry == b"" and fcntl.fcntl(descriptor, GET_SEALS) == SEALS
                with open(descriptor, "rb") as file:
                    file.seek(0)
                    entry = file.read()
                self.files += 1
            self.entries.append(fields(entry))

    def numbers(self):
        return [int(entry["NUMBER"]) for entry in list(self.entries)]


@pytest.fixture
def journal(tmp_path):
    made = StandIn(tmp_path)
    yield made
    made.stop()


def test_every_record_is_an_entry(tmp_path, queue_dir, journal):
    journal.start()
    with Sender(tmp_path, queue_dir, "journald", address=f"unix://{journal.path}", identifier="shop") as sender:
        said = sender.log(300, more="\nsecond")
        assert said["flushed"], said
        process = sender.process.pid
        peers.wait_for_all(journal.numbers, 300)

    assert (300, 0, 0, 0) == (said["written"], said["dropped"], said["cut"], said["errors"])
    assert journal.numbers() == list(range(300))
    entry = journal.entries[7]
    assert entry["MESSAGE"] == "number 7\nsecond" and entry["PRIORITY"] == "6" and entry["LOGGER"] == "root"
    assert entry["SYSLOG_IDENTIFIER"] == "shop" and entry["SYSLOG_PID"] == str(process)
    assert entry["CODE_FILE"].endswith("program.py") and int(entry["CODE_LINE"]) > 0
    assert entry["THREAD_NAME"] == "MainThread"


def test_the_program_on_the_page_writes_the_fields_on_the_page(run_program, journal):
    journal.start()
    test = "test_the_program_on_the_page_writes_the_fields_on_the_page"
    shown, used = 'identifier="shop"', f'identifier="shop", address="unix://{journal.path}"'
    run_program(peers.page_program("send-to-journald.md", test, shown, used))[0].expect_success()
    until(lambda: journal.entries, peers.SECONDS, "an entry")

    (entry,) = journal.entries
    assert ("payment is late", "7", "4") == (entry["MESSAGE"], entry["ORDER"], entry["PRIORITY"])
    page = (peers.pages.ROOT / "docs" / "how-to" / "send-to-journald.md").read_text()
    assert all(name == "ORDER" or f"`{name}`" in page for name in entry)


def test_a_long_record_is_passed_uncut_in_a_memory_file(tmp_path, queue_dir, journal):
    journal.start()
    with Sender(tmp_path, queue_dir, "journald", address=f"unix://{journal.path}") as sender:
        assert sender.log(1)["flushed"]
        said = sender.log(3, more=" " + "z" * 2_000_000)
        assert said["flushed"] and (4, 0, 0) == (said["written"], said["dropped"], said["cut"]), said
        peers.wait_for_all(journal.numbers, 4)

    assert journal.files == 3
    assert [len(entry["MESSAGE"]) for entry in journal.entries[1:]] == [len("number 1 ") + 2_000_000] * 3


def test_an_absent_or_slow_journal_gets_every_record_once(tmp_path, queue_dir, journal):
    with Sender(tmp_path, queue_dir, "journald", address=f"unix://{journal.path}") as sender:
        away = sender.log(100, seconds=0.5)
        assert not away["flushed"] and away["waiting"] == 100 and away["problems"]
        journal.start()
        assert sender.log(100)["flushed"]
        peers.wait_for_all(journal.numbers, 200)
        journal.stop()
        assert not sender.log(100, seconds=0.5)["flushed"]
        journal.start()
        journal.reads.clear()
        slow = sender.log(10_000, seconds=0.5)
        assert not slow["flushed"] and slow["dropped"] == 0
        journal.reads.set()
        said = sender.log(0)
        assert said["flushed"] and (10_300, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(journal.numbers, 10_300)

    assert journal.numbers() == list(range(10_300))


#: Starts journald for a namespace of the journal, with folders of its own.
LAUNCH = """\
mount -t tmpfs none /run && mkdir -p /run/log /run/systemd/journald@logspool.conf.d && mount --bind "$1/log" /run/log &&
printf '[Journal]\\nStorage=volatile\\nRateLimitBurst=0\\n' > /run/systemd/journald@logspool.conf.d/test.conf &&
RUNTIME_DIRECTORY="$1/run" exec "$2" logspool
"""


@pytest.fixture
def real_journal(tmp_path):
    """A systemd-journald in a mount namespace: its process, its socket and its folder."""
    journald = next((path for path in ("/usr/lib/systemd/systemd-journald",) if os.path.exists(path)), None)
    unshare = ["unshare", "--mount"]
    if journald is None or shutil.which("journalctl") is None:
        pytest.skip("there is no systemd-journald")
    if os.geteuid() != 0 or subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/run"]).returncode != 0:
        pytest.skip("a journald of its own needs root and mount namespaces")
    folder = tmp_path / "j"
    for name in ("log/journal", "run"):
        (folder / name).mkdir(parents=True)
    with (folder / "journald.log").open("w") as log:
        command = [*unshare, "sh", "-c", LAUNCH, "launch", str(folder), journald]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: (folder / "run/socket").exists() or process.poll() is not None, peers.SECONDS, "journald listens")
        if process.poll() is not None:
            pytest.skip(f"systemd-journald does not run here: {(folder / 'journald.log').read_text()}")
        yield folder
    finally:
        process.terminate()
        process.wait(peers.SECONDS)


def shown(folder: Path):
    """Return the entries of the program in the journal."""
    files = [str(path) for path in (folder / "log/journal").glob("*/system.journal")]
    if not files:
        return []
    command = ["journalctl", "--quiet", "--all", "--file", *files, "--output", "json", "SYSLOG_IDENTIFIER=shop"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


RAISES = """\
import logging, sys
import logspool

handler = logspool.SinkHandler("journald", address=sys.argv[1], identifier="shop")
logging.getLogger().addHandler(handler)
for number in range(200):
    logging.warning("number %d", number, extra={"number": number})
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("it broke", extra={"order id": 7})
logging.warning("long %s", "y" * 1_000_000)
assert logspool.flush(20)
sys.stdin.read()
"""


def test_systemd_journald_keeps_every_field(tmp_path, queue_dir, real_journal):
    script = tmp_path / "program.py"
    script.write_text(RAISES)
    command = [sys.executable, str(script), f"unix://{real_journal}/run/socket"]
    environment = programs.environment(programs.INSTALLED, queue_dir)
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as program:
        try:
            until(lambda: len(shown(real_journal)) >= 202, peers.SECONDS, "202 entries in the journal")
        finally:
            program.communicate(timeout=peers.SECONDS)
    assert program.returncode == 0

    entries = shown(real_journal)
    assert [f"number {number}" for number in range(200)] == [entry["MESSAGE"] for entry in entries[:200]]
    assert {("4", "root", "MainThread")} == {
        (entry["PRIORITY"], entry["LOGGER"], entry["THREAD_NAME"]) for entry in entries[:200]
    }
    broken, long = entries[200:]
    assert broken["PRIORITY"] == "3" and broken["ORDER_ID"] == "7"
    assert broken["EXCEPTION_TEXT"].startswith("Traceback") and broken["MESSAGE"].startswith("it broke\nTraceback")
    assert long["MESSAGE"] == "long " + "y" * 1_000_000
