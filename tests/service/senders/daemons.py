"""Senders of the survey that are programs of a system: each forwards or writes the records in its own way."""

import contextlib
import datetime
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zoneinfo

import ports
import service_tools

from .conftest import DEADLINE, run
from .kinds import KINDS, LOGGER, Kind
from .page import addressed, sample
from .table import NO_HEADERS
from .test_rsyslog import Rsyslog

#: A time zone other than the zone of the service, and not whole hours from it.
ZONE = "Asia/Kolkata"

SEVERITIES = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "err", "CRITICAL": "crit"}
NUMBERS = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
FACILITY = 16 << 3


def logger(place) -> None:
    """logger(1) of util-linux: a message for each run, over TCP."""
    program = service_tools.logger()
    port = str(place.service.tcp[1])
    for kind in KINDS:
        words = ["--server", "127.0.0.1", "--port", port, "--tcp", "--octet-count", "--size", "32KiB"]
        words += ["--tag", LOGGER, "--priority", f"local0.{SEVERITIES[kind.level]}"]
        run([program, *words, "--", kind.message], place.folder, TZ=ZONE)


def busybox(place) -> None:
    """logger of busybox, which writes to /dev/log: in a namespace of its own, that is the socket of the service."""
    program = service_tools.busybox()
    for kind in KINDS:
        words = [program, "logger", "-t", LOGGER, "-p", f"local0.{SEVERITIES[kind.level]}", "--", kind.message]
        inside = 'mount -t tmpfs none /dev && ln -s "$0" /dev/log && exec "$@"'
        # Times of its header have no zone. A program at /dev/log has the zone of the service.
        run(["unshare", "--mount", "sh", "-c", inside, str(place.socket), *words], place.folder)


def rsyslog(place) -> None:
    """rsyslogd: it forwards messages of RFC 5424, as they came, by the action of the page."""
    folder = place.folder / "rsyslog"
    folder.mkdir()
    now = datetime.datetime.now(zoneinfo.ZoneInfo(ZONE)).isoformat()
    messages = [f"<{FACILITY + NUMBERS[kind.level]}>1 {now} web-1 {LOGGER} - - - {kind.message}" for kind in KINDS]
    forwarding = Rsyslog(service_tools.rsyslogd(), folder, addressed(sample("rsyslog"), place.service))
    try:
        forwarding.send(messages)
        place.new_rows(len(KINDS))
    finally:
        forwarding.stop()


@contextlib.contextmanager
def running(command: "list[str]", port: int, **variables: str):
    """Run a server until the end of the block, once it takes connections."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, **variables})
        try:
            until = time.monotonic() + DEADLINE
            while not is_taken(port):
                assert process.poll() is None and time.monotonic() < until, os.pread(said.fileno(), 4096, 0)
                time.sleep(0.01)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)


def is_taken(port: int) -> bool:
    """Whether a program listens at a port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def ask(port: int, kind: Kind) -> None:
    """Send a request with the message in a header, as its bytes are."""
    headers = {"X-Message": kind.message.encode().decode("latin-1")}
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/", headers=headers), timeout=DEADLINE)


def sent(without: "dict[str, str]") -> "list[Kind]":
    """Return the kinds that are sent."""
    return [kind for kind in KINDS if kind.name not in without]


def nginx(place) -> None:
    """nginx: its access log in datagrams to a socket of the system."""
    folder, port = place.folder / "nginx", ports.free_port()
    folder.mkdir()
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\nevents {{}}\nhttp {{\n"
        f'log_format message escape=none "$http_x_message";\nlarge_client_header_buffers 4 64k;\n'
        f"access_log syslog:server=unix:{place.socket},tag=shop,severity=info,nohostname message;\n"
        + "".join(f"{name}_temp_path {folder};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        + f"server {{ listen 127.0.0.1:{port}; return 204; }}\n}}\n"
    )
    with running([service_tools.nginx(), "-c", str(folder / "nginx.conf"), "-p", str(folder)], port):
        for kind in sent(NO_HEADERS):
            ask(port, kind)


def haproxy(place) -> None:
    """haproxy: its log of requests in datagrams of RFC 5424."""
    folder, port = place.folder / "haproxy", ports.free_port()
    folder.mkdir()
    (folder / "haproxy.cfg").write_text(
        f"global\n log 127.0.0.1:{place.service.udp[1]} len 65535 format rfc5424 local0 info\n log-tag shop\n"
        " tune.bufsize 65536\n"
        "defaults\n mode http\n log global\n option dontlognull\n timeout client 10s\n"
        f"frontend all\n bind 127.0.0.1:{port}\n capture request header X-Message len 40000\n"
        " log-format %[capture.req.hdr(0)]\n http-request return status 204\n"
    )
    with running([service_tools.haproxy(), "-db", "-f", str(folder / "haproxy.cfg")], port):
        for kind in sent(NO_HEADERS):
            ask(port, kind)


def syslog_ng(place) -> None:
    """syslog-ng: it forwards messages of RFC 5424 in counted frames."""
    folder, port = place.folder / "syslog-ng", ports.free_port()
    folder.mkdir()
    (folder / "syslog-ng.conf").write_text(
        "@version: 3.38\noptions { keep-hostname(yes); log-msg-size(65536); };\n"
        f'source here {{ syslog(ip("127.0.0.1") port({port}) transport("tcp")); }};\n'
        f'destination service {{ syslog("127.0.0.1" port({place.service.tcp[1]}) transport("tcp")); }};\n'
        "log { source(here); destination(service); };\n"
    )
    files = [f"--{name}={folder}/{name}" for name in ("persist-file", "pidfile", "control")]
    command, variables = service_tools.syslog_ng()
    command += ["--foreground", "--no-caps", f"--cfgfile={folder}/syslog-ng.conf", *files]
    now = datetime.datetime.now(zoneinfo.ZoneInfo(ZONE)).isoformat()
    with (
        running(command, port, **variables),
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection,
    ):
        for kind in KINDS:
            level = FACILITY + NUMBERS[kind.level]
            message = f"<{level}>1 {now} web-1 {LOGGER} - - - {kind.message}".encode()
            connection.sendall(b"%d %s" % (len(message), message))
        place.new_rows(len(KINDS))
