"""`ForwardHandler` with a receiver of others: the server of @fluent-org/logger for Node.js."""

import os
import subprocess
import sys
import threading

import pytest

from .conftest import DEADLINE, PROGRAMS, run

COUNT = 3000

#: argv: the address, and the shared key or nothing.
PROGRAM = """\
import logging, sys
import logspool

handler = logspool.ForwardHandler(sys.argv[1], tag="app.web", shared_key=sys.argv[2] or None)
log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.addHandler(handler)
for number in range(int(sys.argv[3])):
    log.info("number %d", number, extra={"order": number})
print(logspool.flush(float(sys.argv[4])))
sink = logspool.stats().sinks[sys.argv[1]]
print(sink.total("written"), sink.total("dropped"), sink.error if sink.error else "")
"""


class Receiver:
    """The server of Node.js, and the lines that it prints."""

    def __init__(self, node, key, folder):
        program, variables = node
        self.child = subprocess.Popen(
            [program, str(PROGRAMS / "forward_server.cjs"), *([key] if key else [])],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = f"tcp://127.0.0.1:{int(self.child.stdout.readline())}"
        self.lines = []
        self._reading = threading.Thread(target=self.lines.extend, args=(self.child.stdout,))
        self._reading.start()

    def end(self):
        """Let it end; return all lines."""
        self.child.stdin.close()
        assert self.child.wait(DEADLINE) == 0
        self._reading.join(DEADLINE)
        return self.lines


@pytest.fixture
def start_receiver(node, tmp_path):
    """Start a receiver with or without a shared key."""
    started = []

    def start(key):
        started.append(Receiver(node, key, tmp_path))
        return started[-1]

    yield start
    for receiver in started:
        receiver.child.kill()
        receiver.child.wait()
        receiver.child.stdin.close()
        receiver._reading.join(DEADLINE)
        receiver.child.stdout.close()


@pytest.mark.parametrize("key", ["", "hunter2"])
def test_a_third_party_receiver_gets_every_record_once(key, start_receiver, tmp_path):
    receiver = start_receiver(key)
    printed = run([sys.executable, "-c", PROGRAM, receiver.address, key, str(COUNT), str(DEADLINE)], tmp_path)

    assert printed.split() == ["True", str(COUNT), "0"]
    assert receiver.end() == [f"app.web {number}\n" for number in range(COUNT)]


def test_a_third_party_receiver_refuses_a_wrong_key(start_receiver, tmp_path):
    receiver = start_receiver("other")
    printed = run([sys.executable, "-c", PROGRAM, receiver.address, "hunter2", "10", "0.5"], tmp_path)

    assert printed.startswith("False\n0 0 ") and "the receiver refuses the shared key" in printed
    assert "hunter2" not in printed
    assert receiver.end() == []
