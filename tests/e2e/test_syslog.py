"""The syslog sink against rsyslogd: a private one on loopback and on unix sockets, with its own configuration."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import peers
import pytest

from ports import free_port
from service import certificates
from suite import programs, tools
from suite.waiting import until

pytestmark = [pytest.mark.real]

SECONDS = 30

PARTS = ("pri", "hostname", "app-name", "procid", "msgid", "structured-data", "msg")


def program() -> str:
    """Return the program of rsyslog, or skip the test; fail it where all are required."""
    if found := shutil.which("rsyslogd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])):
        return found
    tools.missing("there is no program rsyslogd on the PATH (in Debian's package rsyslog)")


class Rsyslog:
    """A receiver that writes each message as a line of JSON."""

    def __init__(self, folder, pair=None):
        self.folder = folder
        self.program = program()
        self.tls = free_port()
        self.pair = pair
        self.udp, self.tcp = free_port(), free_port()
        self.datagram, self.stream = folder / "dev.log", folder / "stream.log"
        self.configure()
        self.process = None

    def configure(self):
        """Write its configuration. With a pair of a certificate and its key it also listens with TLS."""
        folder = self.folder
        parts = 'constant(value=", ") '.join(f'property(name="{part}" format="jsonf") ' for part in PARTS)
        (folder / "rsyslog.conf").write_text(
            f'global(workDirectory="{folder}" maxMessageSize="64k" parser.escapeControlCharactersOnReceive="off")\n'
            'module(load="imudp") module(load="imptcp") module(load="imuxsock" SysSock.Use="off")\n'
            f'template(name="parts" type="list") {{ constant(value="{{") {parts} constant(value="}}\\n") }}\n'
            f'ruleset(name="kept") {{ action(type="omfile" file="{folder}/kept" template="parts") }}\n'
            f'input(type="imudp" address="127.0.0.1" port="{self.udp}" ruleset="kept")\n'
            f'input(type="imptcp" address="127.0.0.1" port="{self.tcp}" ruleset="kept")\n'
            f'input(type="imptcp" path="{self.stream}" ruleset="kept")\n'
            f'input(type="imuxsock" socket="{self.datagram}" useSpecialParser="off" ruleset="kept")\n'
            + (self._tls() if self.pair else "")
        )

    def _tls(self):
        certificate, key = self.pair
        return (
            'module(load="imtcp")\n'
            f'input(type="imtcp" address="127.0.0.1" port="{self.tls}" ruleset="kept" streamDriver.name="ossl" '
            f'streamDriver.mode="1" streamDriver.authMode="anon" streamDriver.caFile="{certificate}" '
            f'streamDriver.certFile="{certificate}" streamDriver.keyFile="{key}")\n'
        )

    def address(self, way: str) -> str:
        """Return the address on which it listens with this transport."""
        return {
            "udp": f"udp://127.0.0.1:{self.udp}",
            "tcp": f"tcp://127.0.0.1:{self.tcp}",
            "datagram": f"unix://{self.datagram}",
            "stream": f"unix://{self.stream}",
            "tls": f"tls://127.0.0.1:{self.tls}",
        }[way]

    def start(self):
        """Start it and wait until it takes connections."""
        # Its stream input leaves the socket where it was.
        self.stream.unlink(missing_ok=True)
        command = [self.program, "-n", "-f", str(self.folder / "rsyslog.conf"), "-i", str(self.folder / "rsyslog.pid")]
        log = (self.folder / "rsyslog.log").open("a")
        with log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        until(self.listens, SECONDS, "rsyslogd listens")

    def listens(self) -> bool:
        """Return whether all its inputs are ready."""
        assert self.process.poll() is None, (self.folder / "rsyslog.log").read_text()
        with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as stream:
            there = tcp.connect_ex(("127.0.0.1", self.tcp)) == 0 and stream.connect_ex(str(self.stream)) == 0
        if self.pair:
            with socket.socket() as tls:
                there = there and tls.connect_ex(("127.0.0.1", self.tls)) == 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
            there = there and datagram.connect_ex(str(self.datagram)) == 0
        with open("/proc/net/udp", encoding="ascii") as table:
            return there and f":{self.udp:04X} " in table.read()

    def stop(self):
        """End it, by its process id."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(SECONDS)

    def messages(self):
        """Return the messages that it has written; of the last one there may be only a part yet."""
        kept = self.folder / "kept"
        lines = kept.read_text().splitlines(keepends=True) if kept.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for(self, count):
        """Return its messages once there are `count`."""
        until(lambda: len(self.messages()) >= count, SECONDS, f"{count} messages")
        return self.messages()


@pytest.fixture
def rsyslog(tmp_path):
    folder = tmp_path / "rsyslog"
    folder.mkdir()
    with contextlib.ExitStack() as ends:
        made = Rsyslog(folder)
        ends.callback(made.stop)
        yield made


SENDS = """\
import logging, os, sys
import logspool

if sys.argv[2] == "installed":
    logspool.install()
handler = logspool.SinkHandler("syslog", address=sys.argv[1], facility="local0", app_name="shop", max_bytes=2000)
log = logging.getLogger("shop.cart")
log.addHandler(handler)
log.setLevel(5)
for level in (5, 10, 20, 25, 30, 40, 50):
    log.log(level, "level %d", level)
with logspool.bind(user='Zoë "Z" ]\\\\', order=7):
    log.info("grün\\nzwei", extra={"items": [1, {"a": None}], "paid": True})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("it broke")
log.info("long %s", "ö" * 3000)
assert logspool.flush(20)
print(os.getpid(), os.uname().nodename)
"""


@pytest.mark.parametrize("installed", ["installed", "alone"])
@pytest.mark.parametrize("way", ["udp", "tcp", "datagram", "stream"])
def test_every_part_of_a_record_is_read_by_rsyslog(run_program, rsyslog, way, installed):
    rsyslog.start()
    outcome, _ = run_program(SENDS, rsyslog.address(way), installed)
    process, host = outcome.expect_success().out.decode().split()
    messages = rsyslog.wait_for(10)

    severities = [7, 7, 6, 6, 4, 3, 2, 6, 3, 6]
    assert [str(16 * 8 + severity) for severity in severities] == [message["pri"] for message in messages]
    headers = {tuple(message[part] for part in ("hostname", "app-name", "procid", "msgid")) for message in messages}
    assert headers == {(host, "shop", process, "shop.cart")}
    texts = [message["msg"] for message in messages]
    assert texts[:8] == [f"level {level}" for level in (5, 10, 20, 25, 30, 40, 50)] + ["grün\nzwei"]
    assert texts[8].startswith("it broke\nTraceback (most recent call last):\n") and "ZeroDivisionError" in texts[8]
    assert texts[9].startswith("long öö") and texts[9].endswith("öö...") and 1800 < len(texts[9].encode()) <= 2000
    data = messages[7]["structured-data"]
    for shown in ('user="Zoë \\"Z\\" \\]\\\\"', 'order="7"', 'items="[1, {\\"a\\": null}\\]"', 'paid="true"'):
        assert shown in data, data
    assert data.startswith("[logspool@32473 ") and messages[0]["structured-data"] == "-"


RESTARTS = """\
import logging, sys
import logspool

handler = logspool.SinkHandler("syslog", address=sys.argv[1])
logging.basicConfig(handlers=[handler], level=logging.INFO)
number = 0
for line in sys.stdin:
    for _ in range(100):
        logging.info("number %d", number)
        number += 1
    print(logspool.flush(20 if line == "wait\\n" else 0.2), flush=True)
"""


def test_a_receiver_that_restarts_gets_every_record_once(rsyslog, tmp_path, queue_dir):
    rsyslog.start()
    script = tmp_path / "program.py"
    script.write_text(RESTARTS)
    sender = subprocess.Popen(
        [sys.executable, str(script), rsyslog.address("tcp")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=programs.environment(programs.INSTALLED, queue_dir),
    )

    def log(line):
        sender.stdin.write(line + "\n")
        sender.stdin.flush()
        return sender.stdout.readline().strip()

    assert log("wait") == "True"
    rsyslog.wait_for(100)
    rsyslog.stop()
    assert log("away") == "False"
    rsyslog.start()
    assert log("wait") == "True"
    sender.communicate(timeout=SECONDS)
    assert sender.returncode == 0

    messages = rsyslog.wait_for(300)
    assert [f"number {number}" for number in range(300)] == [message["msg"] for message in messages]


KILLED = """\
import logging, os, signal, sys
import logspool

logspool.install()
logging.getLogger().addHandler(logspool.SinkHandler("syslog", address=sys.argv[1], app_name="killed one"))
for number in range(100):
    logging.warning("number %d", number)
os.kill(os.getpid(), signal.SIGKILL)
"""

RECOVERS = """\
import os
import logspool

print(logspool.recover(os.environ["LOGSPOOL_QUEUE_DIR"]).delivered)
"""


def test_records_of_a_killed_program_reach_the_receiver_at_the_next_start(run_program, rsyslog):
    outcome, _ = run_program(KILLED, rsyslog.address("tcp"))
    assert outcome.status == -signal.SIGKILL
    rsyslog.start()
    run_program(RECOVERS)[0].expect_success()

    messages = rsyslog.wait_for(100)
    assert [f"number {number}" for number in range(100)] == [message["msg"] for message in messages]
    assert {"killed_one"} == {message["app-name"] for message in messages}


@pytest.fixture(scope="module")
def folder_of_certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    certificates.issued(folder, "server", certificates.authority(folder, "ca"))
    certificates.issued(folder, "foreign", certificates.authority(folder, "other"))
    return folder


@pytest.fixture
def tls_rsyslog(tmp_path, folder_of_certificates):
    """An rsyslogd with TLS, and its address with the authority of its certificate."""
    program()
    if not [*Path("/usr/lib").glob("*/rsyslog/lmnsd_ossl.so"), *Path("/usr").glob("lib*/rsyslog/lmnsd_ossl.so")]:
        tools.missing("rsyslog has no module lmnsd_ossl (in Debian's package rsyslog-openssl)")
    folder = tmp_path / "rsyslog"
    folder.mkdir()
    made = Rsyslog(folder, pair_of(folder_of_certificates, "server"))
    made.to = made.address("tls") + f"?authorities={folder_of_certificates}/ca.pem"
    yield made
    made.stop()


def pair_of(folder, name):
    return folder / f"{name}.pem", folder / f"{name}.key"


def received(rsyslog):
    return peers.numbers([message["msg"] for message in rsyslog.messages()])


def test_messages_over_tls_survive_a_receiver_that_starts_late_and_restarts(tmp_path, queue_dir, tls_rsyslog):
    with peers.Sender(tmp_path, queue_dir, "syslog", address=tls_rsyslog.to, app_name="shop") as sender:
        away = sender.log(100, seconds=0.5)
        assert not away["flushed"] and away["waiting"] == 100 and away["problems"]
        tls_rsyslog.start()
        assert sender.log(100, more="\nsecond line")["flushed"]
        peers.wait_for_all(lambda: received(tls_rsyslog), 200)
        tls_rsyslog.stop()
        assert not sender.log(100, seconds=0.5)["flushed"]
        tls_rsyslog.start()
        said = sender.log(100)
        assert said["flushed"] and (400, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(lambda: received(tls_rsyslog), 400)

    assert received(tls_rsyslog) == list(range(400))
    message = tls_rsyslog.messages()[150]
    assert (message["msg"], message["app-name"]) == ("number 150\nsecond line", "shop")
    assert message["structured-data"] == '[logspool@32473 number="150"]'


def test_a_restart_under_load_over_tls_leaves_at_most_one_gap(tmp_path, queue_dir, tls_rsyslog):
    tls_rsyslog.start()
    with peers.Sender(tmp_path, queue_dir, "syslog", address=tls_rsyslog.to) as sender:
        sender.order(20_000)
        until(lambda: len(tls_rsyslog.messages()) > 500, SECONDS, "the first messages")
        tls_rsyslog.stop()
        tls_rsyslog.start()
        said = sender.answer()
        assert said["flushed"] and (20_000, 0) == (said["written"], said["dropped"]), said
        until(lambda: 19_999 in received(tls_rsyslog), SECONDS, "the last message")

    found = received(tls_rsyslog)
    missing = sorted(set(range(20_000)) - set(found))
    # Messages that the system had accepted and rsyslogd had not read at its end are lost, as RFC 5425 says.
    assert not missing or missing == list(range(missing[0], missing[-1] + 1)), missing
    assert len(missing) < 20_000 - 500


def test_a_certificate_of_another_authority_is_an_error_until_it_is_repaired(
    tmp_path, queue_dir, tls_rsyslog, folder_of_certificates
):
    tls_rsyslog.pair = pair_of(folder_of_certificates, "foreign")
    tls_rsyslog.configure()
    tls_rsyslog.start()
    with peers.Sender(tmp_path, queue_dir, "syslog", address=tls_rsyslog.to) as sender:
        refused = sender.log(100, seconds=1)
        assert not refused["flushed"] and refused["written"] == 0 and refused["waiting"] == 100
        assert "was not issued by" in refused["error"] and "(fix: authorities=" in refused["error"], refused
        tls_rsyslog.stop()
        tls_rsyslog.pair = pair_of(folder_of_certificates, "server")
        tls_rsyslog.configure()
        tls_rsyslog.start()
        said = sender.log(100)
        assert said["flushed"] and (200, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(lambda: received(tls_rsyslog), 200)

    assert received(tls_rsyslog) == list(range(200))
