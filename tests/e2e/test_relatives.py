"""Dead relatives: a living process delivers the records of killed processes of its user, for any file."""

import json
import os
import shutil
import signal

import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

pytestmark = [pytest.mark.real]

# Ten times the time of one search, which runs each half a second, and the delivery.
SECONDS = 20
WORKERS, RECORDS = (100, 200) if fixtures.faults_full() else (8, 200)

SUPERVISOR = """\
import json, logging, os, signal, subprocess, sys, time
import logspool

what = json.loads(sys.argv[1])
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
log = logging.getLogger("app")
log.info("supervisor 0 end")

def burst(who, count):
    for number in range(count):
        log.info("%s %d end", who, number)

if what["do"] == "workers":
    if what["path"]:
        log.propagate = False
    for worker in range(what["workers"]):
        if os.fork() == 0:
            if what["path"]:
                handler = logging.FileHandler(what["path"])
                handler.setFormatter(logging.Formatter("%(message)s"))
                log.addHandler(handler)
            burst(f"worker-{worker}", what["records"])
            if what["path"]:
                os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(what["workers"]):
        os.wait()
if what["do"] == "exec":
    for child in range(what["children"]):
        lines = lambda: burst(f"child-{child}", 10)
        subprocess.Popen(["sleep", "60"], preexec_fn=lines)
print("done", flush=True)
for word in sys.stdin:
    health = logspool.health()
    print(json.dumps([str(health.status), health.reasons, logspool.stats().recovered]), flush=True)
"""


class Supervisor:
    """A program that runs and no longer logs."""

    def __init__(self, folder, queue_dir, **what) -> None:
        script = folder / "supervisor.py"
        script.write_text(SUPERVISOR)
        self.child = programs.start(
            [script, json.dumps({"path": None, **what})],
            env=programs.environment(programs.INSTALLED, queue_dir),
            folder=folder,
            stdin=-1,
            stdout=-1,
        )

    def wait_for_its_children(self) -> None:
        assert self.child.stdout.readline() == b"done\n"

    def ask(self):
        """Return its health, the reasons, and how many records of others it has delivered."""
        self.child.stdin.write(b"?\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def leave(self) -> None:
        self.child.stdin.close()
        assert self.child.wait(SECONDS) == 0


def _owners(queue_dir):
    return {path.name.partition(".")[0] for path in queue_dir.iterdir() if path.suffix == ".seg"}


def _written(folder, name="app.log"):
    return lines.count(folder / name).numbers


def test_workers_killed_under_a_live_supervisor_lose_nothing(tmp_path, queue_dir):
    supervisor = Supervisor(tmp_path, queue_dir, do="workers", workers=WORKERS, records=RECORDS)
    with programs.ended(supervisor.child):
        supervisor.wait_for_its_children()
        until(lambda: len(_owners(queue_dir)) == 1, SECONDS, "nothing of the workers is left on tmpfs")

        expected = {f"worker-{worker}": list(range(RECORDS)) for worker in range(WORKERS)}
        assert _written(tmp_path) == {"supervisor": [0], **expected}
        status, reasons, recovered = supervisor.ask()
        assert (status, reasons) == ("ok", [])
        assert 0 <= recovered <= WORKERS * RECORDS
        supervisor.leave()
    assert queue_folder.left_in(queue_dir) == []


def test_another_program_of_the_same_user_delivers_the_records_of_a_killed_one(tmp_path, queue_dir):
    (tmp_path / "other").mkdir()
    supervisor = Supervisor(tmp_path, queue_dir, do="nothing")
    with programs.ended(supervisor.child):
        supervisor.wait_for_its_children()
        script = tmp_path / "killed.py"
        script.write_text(KILLED)
        env = programs.environment(programs.INSTALLED, queue_dir)
        killed = programs.run([script], env=env, folder=tmp_path / "other", deadline_seconds=SECONDS)
        assert killed.status == -signal.SIGKILL
        until(lambda: len(_owners(queue_dir)) == 1, SECONDS, "nothing of the program is left on tmpfs")

        assert _written(tmp_path / "other") == {"killed": list(range(RECORDS))}
        supervisor.leave()


KILLED = f"""\
import logging, os, signal
import logspool
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
for number in range({RECORDS}):
    logging.info("killed %d end", number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_children_that_log_before_exec_leave_nothing_on_tmpfs(tmp_path, queue_dir):
    children = 300 if fixtures.faults_full() else 5
    supervisor = Supervisor(tmp_path, queue_dir, do="exec", children=children)
    with programs.ended(supervisor.child):
        supervisor.wait_for_its_children()
        until(lambda: len(_owners(queue_dir)) == 1, SECONDS, "nothing of the children is left on tmpfs")

        expected = {f"child-{child}": list(range(10)) for child in range(children)}
        assert _written(tmp_path) == {"supervisor": [0], **expected}
        supervisor.leave()


DAEMON = """\
import logging, os, sys
import logspool
logging.basicConfig(filename="daemon.log", level=logging.INFO, format="%(message)s")
logspool.install()
logging.info("daemon 0 end")
logspool.flush(30)
for number in os.listdir("/proc/self/fd"):
    path = f"/proc/self/fd/{number}"
    if os.path.lexists(path) and os.readlink(path).endswith(".lock"):
        os.close(int(number))
print("done", flush=True)
sys.stdin.read()
logging.info("daemon 1 end")
"""


def test_a_program_that_closed_the_lock_of_its_queue_is_not_considered_dead(tmp_path, queue_dir):
    supervisor = Supervisor(tmp_path, queue_dir, do="nothing")
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON)
    env = programs.environment(programs.INSTALLED, queue_dir)
    with programs.ended(supervisor.child):
        supervisor.wait_for_its_children()
        daemon = programs.start([script], env=env, folder=tmp_path, stdin=-1, stdout=-1)
        with programs.ended(daemon):
            assert daemon.stdout.readline() == b"done\n"
            for _ in range(3):
                last = queue_dir.stat().st_atime_ns
                until(lambda last=last: queue_dir.stat().st_atime_ns != last, SECONDS, "the next look")

            assert len(_owners(queue_dir)) == 2
            daemon.stdin.close()
            assert daemon.wait(SECONDS) == 0
        supervisor.leave()
    assert _written(tmp_path, "daemon.log") == {"daemon": [0, 1]}
    assert queue_folder.left_in(queue_dir) == []


def test_health_reports_undeliverable_records_and_delivery_is_retried(tmp_path, queue_dir):
    (tmp_path / "sub").mkdir()
    # A pipe that is not read: records that do not fit into the pipe are queued when the kill comes. `count` is more
    # than the pipe holds, and less than the lane: on a busy machine records for a full lane are refused.
    os.mkfifo(tmp_path / "sub" / "own.log")
    end = os.open(tmp_path / "sub" / "own.log", os.O_RDWR)
    count = 5_000
    supervisor = Supervisor(tmp_path, queue_dir, do="workers", workers=1, records=count, path="sub/own.log")
    with programs.ended(supervisor.child):
        # The recovery finds no folder.
        stopped = _stopped_worker(supervisor.child.pid)
        shutil.rmtree(tmp_path / "sub")
        os.kill(stopped, signal.SIGCONT)
        supervisor.wait_for_its_children()
        # Only now: without a reader the worker would drop the records that it writes to the pipe.
        os.close(end)
        until(lambda: supervisor.ask()[0] == "degraded", SECONDS, "health tells")
        _, [reason], _ = supervisor.ask()
        assert "records of 1 killed process are not in their files yet" in reason

        until(lambda: _put_off(queue_dir), SECONDS, "the watcher has tried")
        (tmp_path / "sub").mkdir()
        until(lambda: len(_owners(queue_dir)) == 1, SECONDS, "nothing of the worker is left on tmpfs")
        status, reasons, recovered = supervisor.ask()
        assert (status, reasons) == ("ok", [])
        numbers = _written(tmp_path / "sub", "own.log")["worker-0"]
        assert numbers == list(range(numbers[0], count))
        assert recovered == len(numbers) > 0
        supervisor.leave()


def _put_off(queue_dir):
    """Tell whether a lock file says that the next try comes later."""
    return any(path.stat().st_atime > path.stat().st_mtime for path in queue_dir.glob("*.lock"))


def _stopped_worker(parent):
    """Return the worker, once it has logged and stopped itself."""
    children = f"/proc/{parent}/task/{parent}/children"

    def stopped():
        with open(children) as file:
            pids = [int(word) for word in file.read().split()]
        for pid in pids:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "T":
                    return pid
        return None

    return until(stopped, SECONDS, "the worker has logged")
