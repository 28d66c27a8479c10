"""Clients killed at a random moment: the next start or `recover()` sends what is left; each record is stored once."""

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading

import pytest

KILLS = int(os.environ.get("LOGSPOOL_KILLS", {"ci": 20, "full": 1000}[os.environ.get("LOGSPOOL_FAULTS", "ci")]))

# Each number that was accepted is written to a pipe: what the pipe holds is what was promised.
CLIENT = """
import logging, os, sys, logspool
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(sys.argv[1])])
if sys.argv[2] == "installed":
    logspool.install()
number = 0
while True:
    logging.info("%s %d", sys.argv[3], number)
    os.write(1, b"%d\\n" % number)
    number += 1
"""

NEXT_START = """
import logging, sys, logspool
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(sys.argv[1], shutdown_timeout=60)])
logspool.install(shutdown_timeout=60)
logging.info("%s alive", sys.argv[2])
assert logspool.flush(60)
"""

RECOVERY = """
import logspool
report = logspool.recover()
assert not report.kept, report
"""


def free_port() -> int:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("after", ["next start", "recover"])
@pytest.mark.parametrize("weather", ["fair", "slow", "restarted"])
def test_each_accepted_record_of_a_killed_client_is_stored_once(start_service, queue_dir, tmp_path, weather, after):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    listen = f"tcp://127.0.0.1:{free_port()}"
    folder = tmp_path / "service"
    service = start_service("--listen", listen, folder=folder)
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], env=variables, timeout=120, capture_output=True, text=True
        )
        assert 0 == done.returncode, f"seed {seed}: {done.stderr}"

    accepted = {}
    # Six tests share the rounds.
    for turn in range(max(3, KILLS // 6)):
        name = f"c{turn}"
        way = ["installed", "alone"][turn % 2]
        command = [sys.executable, "-c", CLIENT, listen, way, name]
        client = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        told = []
        reader = threading.Thread(target=lambda told=told, client=client: told.extend(client.stdout))
        with client:
            told.append(client.stdout.readline())
            reader.start()
            if weather == "slow":
                service.process.send_signal(signal.SIGSTOP)
            elif weather == "restarted":
                service.stop(signal.SIGKILL)
            threading.Event().wait(moments.uniform(0, 0.3))
            if weather == "restarted" and moments.random() < 0.5:
                service = start_service("--listen", listen, folder=folder)
                threading.Event().wait(moments.uniform(0, 0.1))
            client.kill()
            reader.join()
        # A line that the kill cut is one more record than was promised.
        accepted[name] = int(next(line for line in reversed(told) if line.endswith(b"\n")))
        if weather == "slow":
            service.process.send_signal(signal.SIGCONT)
        elif service.process.poll() is not None:
            service = start_service("--listen", listen, folder=folder)
        if after == "recover":
            run(RECOVERY)
        else:
            run(NEXT_START, listen, name)

    service.stop()
    stored = {name: [] for name in accepted}
    for message in service.stored_messages():
        name, number = message.split()
        if number != "alive":
            stored[name].append(int(number))
    for name, newest in accepted.items():
        numbers = stored[name]
        once = list(itertools.islice(itertools.count(), len(numbers)))
        assert numbers == once, f"seed {seed}, {name}: {len(numbers)} rows, one missing, twice, or in another order"
        assert len(numbers) > newest, f"seed {seed}, {name}: {newest} was accepted, {len(numbers)} rows"
