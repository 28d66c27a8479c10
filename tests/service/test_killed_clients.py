"""Clients killed at random: the next start or `recover()` sends the remaining records; each record is stored once."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading

import clients
import pytest

import ports

KILLS = int(os.environ.get("LOGSPOOL_KILLS", {"ci": 20, "full": 1000}[os.environ.get("LOGSPOOL_FAULTS", "ci")]))

NEXT_START = """
import logging, sys, logspool
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(sys.argv[1], shutdown_timeout=60)])
logspool.install(shutdown_timeout=60)
logging.info("%s alive", sys.argv[2])
assert logspool.flush(60)
"""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("after", ["next start", "recover"])
@pytest.mark.parametrize("weather", ["fair", "slow", "restarted", "away"])
def test_each_accepted_record_of_a_killed_client_is_stored_once(start_service, queue_dir, tmp_path, weather, after):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    folder = tmp_path / "service"
    service = start_service("--listen", listen, folder=folder)
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], env=variables, timeout=120, capture_output=True, text=True
        )
        assert 0 == done.returncode, f"seed {seed}: {done.stderr}"

    accepted = {}
    is_long = weather == "away"
    # Six tests share the rounds, and the two long ones a few more.
    for turn in range(max(3, KILLS // (24 if is_long else 6))):
        name = f"c{turn}"
        # Installed, and alone. Records that wait for a second go to the spool, also records that are being sent.
        options = {"spool_dir": str(tmp_path / "spool")} if is_long else [{}, None][turn % 2]
        with clients.Client(listen, name, variables, options, pause=1e-5 if is_long else 0.0) as client:
            client.wait_accepted(1)
            if weather in ("slow", "away"):
                service.process.send_signal(signal.SIGSTOP)
            elif weather == "restarted":
                service.stop(signal.SIGKILL)
            threading.Event().wait(moments.uniform(1, 3) if is_long else moments.uniform(0, 0.3))
            if is_long and moments.random() < 0.5:
                service.process.send_signal(signal.SIGCONT)
                threading.Event().wait(moments.uniform(0, 0.1))
            if weather == "restarted" and moments.random() < 0.5:
                service = start_service("--listen", listen, folder=folder)
                threading.Event().wait(moments.uniform(0, 0.1))
        accepted[name] = client.accepted
        if weather in ("slow", "away"):
            service.process.send_signal(signal.SIGCONT)
        elif service.process.poll() is not None:
            service = start_service("--listen", listen, folder=folder)
        if after == "recover":
            run(clients.RECOVERY)
        else:
            run(NEXT_START, listen, name)

    service.stop()
    stored = {name: [] for name in accepted}
    for message in service.stored_messages():
        name, number = message.split()
        if number != "alive":
            stored[name].append(int(number))
    for name, count in accepted.items():
        numbers = stored[name]
        once = list(itertools.islice(itertools.count(), len(numbers)))
        assert numbers == once, f"seed {seed}, {name}: {len(numbers)} rows, one missing, twice, or in another order"
        assert len(numbers) >= count, f"seed {seed}, {name}: {count} were accepted, {len(numbers)} rows"
