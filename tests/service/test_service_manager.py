"""The service under a service manager: what it tells it, the sockets that it takes over, and the unit files.

The tests play systemd, as sd_notify(3) and sd_listen_fds(3) describe it: none of them needs a running one.
"""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from conftest import DEADLINE, PASS_SOCKETS
from ports import free_port
from suite import pages

UNITS = pages.ROOT / "packaging" / "systemd"
PAGE = pages.ROOT / "docs" / "how-to" / "run-with-systemd.md"


@pytest.fixture
def manager(tmp_path):
    """The socket of a service manager: a service tells it its states."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE)
        yield manager


def _states(manager):
    return dict(line.split("=", 1) for line in manager.recv(4096).decode().splitlines())


def _until(manager, state):
    """Return the first message that has this state."""
    while True:
        states = _states(manager)
        if state in states:
            return states


def numbered(numbers):
    """Return JSON lines with numbers as messages."""
    return b"".join(json.dumps({"message": f"r{number}"}).encode() + b"\n" for number in numbers)


def _listening(*addresses):
    """Open sockets as a service manager does; return them."""
    opened = []
    for kind, at in addresses:
        family = socket.AF_UNIX if isinstance(at, str) else socket.AF_INET
        opened.append(socket.socket(family, kind))
        opened[-1].bind(at)
        if kind == socket.SOCK_STREAM:
            opened[-1].listen(64)
    return opened


def test_the_service_manager_hears_of_start_reload_and_end(start_service, manager):
    service = start_service(variables={"NOTIFY_SOCKET": manager.getsockname()})

    states = _states(manager)
    assert (states["READY"], states["STATUS"]) == ("1", f"records go to sqlite:{service.folder / 'data'}")

    service.process.send_signal(signal.SIGHUP)
    states = _states(manager)
    assert states["RELOADING"] == "1"
    assert int(states["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert _states(manager)["READY"] == "1"

    assert service.stop() == 0
    assert _until(manager, "STOPPING")["STOPPING"] == "1"


def test_a_watchdog_hears_from_the_service_in_half_its_time(start_service, manager):
    variables = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "200000"}
    start_service(variables=variables)

    assert [_until(manager, "WATCHDOG")["WATCHDOG"] for _ in range(5)] == ["1"] * 5


def test_a_store_that_fails_is_in_the_status(start_service, manager, database):
    start_service("--store", database.url(), variables={"NOTIFY_SOCKET": manager.getsockname()})
    assert _states(manager)["STATUS"].startswith("records go to postgres://")

    database.kill()
    assert _until(manager, "STATUS")["STATUS"].startswith("records wait: store postgres: cannot reach ")


def test_without_a_service_manager_nothing_is_told_and_a_wrong_one_stops_nothing(start_service, tmp_path):
    service = start_service(variables={"NOTIFY_SOCKET": str(tmp_path / "gone")})

    service.wait_said("the service manager cannot be told (NOTIFY_SOCKET)", 1)
    assert service.stop() == 0


def test_no_sender_is_refused_while_a_service_with_inherited_sockets_restarts(start_service, tmp_path):
    tcp, udp, http = (free_port() for _ in range(3))
    place = str(tmp_path / "records.sock")
    sockets = _listening(
        (socket.SOCK_STREAM, ("127.0.0.1", tcp)),
        (socket.SOCK_DGRAM, ("127.0.0.1", udp)),
        (socket.SOCK_STREAM, place),
        (socket.SOCK_STREAM, ("127.0.0.1", http)),
    )
    config = (
        f'listen = ["tcp://127.0.0.1:{tcp}", "udp://127.0.0.1:{udp}", "unix://{place}"]\nhttp = "127.0.0.1:{http}"\n'
    )
    with contextlib.ExitStack() as closing:
        for each in sockets:
            closing.enter_context(each)
        sent = 0
        for turn in range(3):
            # These senders connect while no service runs: the socket of the service manager keeps them.
            waiting = []
            for at in (("127.0.0.1", tcp), place):
                family = socket.AF_UNIX if at == place else socket.AF_INET
                waiting.append(closing.enter_context(socket.socket(family)))
                waiting[-1].connect(at)
                waiting[-1].sendall(numbered(range(sent, sent + 100)))
                waiting[-1].shutdown(socket.SHUT_WR)
                sent += 100
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.sendto(numbered([sent]), ("127.0.0.1", udp))
                sent += 1
            service = start_service(config=config, sockets=sockets)
            service.wait_for(sent)
            if turn < 2:
                assert service.stop() == 0

    assert len(set(service.stored_messages())) == len(service.stored_messages()) == sent


def _refusal(logspool_binary, config, tmp_path, sockets):
    """Start a service that refuses its sockets; return what it says."""
    (tmp_path / "logspool.toml").write_text(config)
    numbers = [each.fileno() for each in sockets]
    command = [logspool_binary, "serve", "--config", tmp_path / "logspool.toml"]
    done = subprocess.run(
        [sys.executable, "-c", PASS_SOCKETS, ",".join(map(str, numbers)), *command],
        capture_output=True,
        cwd=tmp_path,
        pass_fds=numbers,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 1, done
    return done.stderr


def test_a_socket_that_no_listener_has_is_named_with_the_mend(logspool_binary, tmp_path):
    config = f'listen = ["tcp://127.0.0.1:{free_port()}"]\nhttp = "off"\n'
    port = free_port()
    (socket_of_none,) = _listening((socket.SOCK_STREAM, ("127.0.0.1", port)))
    with socket_of_none:
        said = _refusal(logspool_binary, config, tmp_path, [socket_of_none])

    assert f"no listener of the configuration has the address of tcp://127.0.0.1:{port}" in said
    assert "fix: add it to `listen`" in said
    assert not (tmp_path / "logspool-data").exists()


def test_a_descriptor_that_is_no_listening_socket_is_named(logspool_binary, tmp_path):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "off"\n'
    with (tmp_path / "file").open("w") as file:
        assert "it is no socket" in _refusal(logspool_binary, config, tmp_path, [file])
    with socket.socket() as unbound:
        said = _refusal(logspool_binary, config, tmp_path, [unbound])
    assert "it does not listen (Accept=yes passes connections" in said


def test_the_units_are_valid_and_the_service_is_exposed_to_little(logspool_binary, tmp_path):
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is missing: apt-get install systemd")
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/usr/bin/logspool", str(logspool_binary))
        (tmp_path / unit.name).write_text(text)
    units = [str(tmp_path / unit.name) for unit in UNITS.iterdir()]

    done = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode, done.stderr) == (0, "")

    command = [analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", tmp_path / "logspool.service"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout
    exposure = re.search(r"Overall exposure level for \S+: (\S+)", done.stdout)
    assert float(exposure[1]) <= 2.0


def test_the_configuration_on_the_page_has_the_addresses_of_the_socket_unit(logspool_binary, tmp_path):
    (config,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "serve.toml").write_text(config)
    unit = (UNITS / "logspool.socket").read_text()
    addresses = re.findall(r"^Listen\w+=(\S+)$", unit, re.MULTILINE)

    done = subprocess.run(
        [logspool_binary, "check-config", tmp_path / "serve.toml"], capture_output=True, text=True, timeout=DEADLINE
    )

    assert done.returncode == 0, done.stderr
    assert len(addresses) == 3
    assert all(address in config for address in addresses)
