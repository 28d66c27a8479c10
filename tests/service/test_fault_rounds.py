"""Rounds of random faults over programs, two services and their PostgreSQL: each accepted record is stored once.

The programs have a list of both services, each over a relay. In each round programs start and end while some
of them, a service, its way to PostgreSQL and PostgreSQL itself are killed, stopped for a while, or cut off.
LOGSPOOL_SEED repeats a run as far as a system does that, and LOGSPOOL_ROUNDS sets the number of rounds.
"""

import collections
import contextlib
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import clients
import postgres
import pytest
from relays import Relay
from test_several_addresses import address_of
from test_several_services import accepted, settled
from test_store_away import FULL, wait_ready

from ports import free_port

ROUNDS = int(os.environ.get("LOGSPOOL_ROUNDS", 200 if FULL else 4))
#: Records per second of a program.
RATE = 1_600 if FULL else 1_000
#: The longest fault in seconds.
LONGEST = 6.0 if FULL else 1.5
#: How long programs log, in seconds: the first half of them, and the second half.
SHORT, LONG = (0.2, 1.0), (3.0, 4.0) if FULL else (2.0, 3.0)
PROGRAMS, FAULTS = 4, 4
#: Records that the full form stores at least.
LEAST = 2_000_000 if FULL and ROUNDS >= 200 else 1
#: A logging call takes at most so many microseconds in 999 of 1,000 cases.
MOST_MICROSECONDS = 1_000

#: Microseconds of a step in the counts of durations, and the number of steps; the last one has all longer calls.
STEP, STEPS = 10, 1_000

# Logs at a pace. Notes the number of accepted records, and how many calls took how long, where a kill leaves both.
PROGRAM = f"""
import json, logging, mmap, sys, time, logspool
address, name, rate, seconds, notes, options = sys.argv[1:]
with open(notes, "r+b") as file:
    notes = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(address)])
logspool.install(**json.loads(options))
log, now, begin = logging.info, time.perf_counter_ns, time.monotonic()
number = 0
while (passed := time.monotonic() - begin) < float(seconds):
    for number in range(number, int(passed * float(rate))):
        before = now()
        log("%s %d", name, number)
        taken = now() - before
        number += 1
        notes[0] = number
        notes[1 + min(taken // {STEP * 1_000}, {STEPS} - 1)] += 1
    time.sleep(0.01)
levels = logspool.stats().levels
if number and levels["INFO"].accepted != number:
    sys.exit(f"{{number}} logged: {{levels}}")
"""


class Program:
    """A program that logs `NAME NUMBER` for some seconds."""

    def __init__(self, address: str, name: str, seconds: float, options: "dict[str, object]", folder: Path, env: dict):
        """Start it."""
        self.name, self.notes, self.said = name, folder / name, folder / f"{name}.stderr"
        self.notes.write_bytes(bytes(8 * (1 + STEPS)))
        command = [sys.executable, "-c", PROGRAM, address, name, str(RATE), str(seconds), str(self.notes)]
        self.began, self.killed, self.lived = time.monotonic(), False, 0.0
        with self.said.open("w") as said:
            self.process = subprocess.Popen([*command, json.dumps(options)], stderr=said, env=env)
        self.waiter = threading.Thread(target=self._wait, daemon=True)
        self.waiter.start()

    def _wait(self) -> None:
        self.process.wait()
        self.lived = time.monotonic() - self.began

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self.process.poll() is None

    def end(self) -> None:
        """Wait for its end. Nothing may be refused; records that it could not send in time come later."""
        self.waiter.join(clients.DEADLINE)
        expected = -signal.SIGKILL if self.killed else 0
        assert self.process.returncode in (0, expected), f"{self.name}: {self.said.read_text()}"

    def counts(self) -> "list[int]":
        """Return the number of accepted records, and the numbers of calls by duration."""
        with self.notes.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as notes:
            return memoryview(bytes(notes)).cast("Q").tolist()


@dataclass
class World:
    """The services, their database and the ways between them, which get faults."""

    start_service: object
    database: postgres.Postgres
    folder: Path
    running: "list[Program]" = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start two services. The first one reaches its database over a relay, and both are behind relays."""
        self.way = Relay(self.database.port)
        self.urls = [self.database.url().replace(str(self.database.port), str(self.way.port)), self.database.url()]
        self.ports = [free_port(), free_port()]
        self.services = [self.start(0), self.start(1)]
        self.doors = [Relay(port) for port in self.ports]
        self.address = address_of(*(door.port for door in self.doors))

    def start(self, number: int):
        """Start a service."""
        options = ["--listen", f"tcp://127.0.0.1:{self.ports[number]}", "--store", self.urls[number]]
        return self.start_service(*options, folder=self.folder / f"service-{number}")

    def close(self) -> None:
        """End the relays."""
        for relay in (self.way, *self.doors):
            relay.close()

    def fault(self, target: str, kind: str, seconds: float, number: int) -> None:
        """Make a fault of some seconds. `number` chooses one of several programs or connections."""
        if target.startswith("service"):
            self._fault_of_service(int(target[-1]), kind, seconds)
        else:
            getattr(self, f"_fault_of_{target}")(kind, seconds, number)

    def _fault_of_service(self, number: int, kind: str, seconds: float) -> None:
        service = self.services[number]
        if kind == "kill":
            service.stop(signal.SIGKILL)
            time.sleep(seconds)
            self.services[number] = self.start(number)
        elif kind == "stop":
            stopped(service.process, seconds)
        else:
            self.doors[number].cut()

    def _fault_of_program(self, kind: str, seconds: float, number: int) -> None:
        alive = [program for program in self.running if program.is_alive()]
        if kind == "cut":
            doors = [door for door in self.doors if door.pairs]
            for door in doors[number % max(1, len(doors)) :][:1]:
                door.cut(number // 2)
        elif not alive:
            return
        elif kind == "kill":
            program = alive[number % len(alive)]
            program.killed = True
            program.process.kill()
        else:
            stopped(alive[number % len(alive)].process, seconds)

    def _fault_of_way(self, kind: str, seconds: float, _number: int) -> None:
        if kind == "stop":
            self.way.passes.clear()
        else:
            self.way.refuses = kind == "kill"
            self.way.cut()
        # The service has records that it cannot store by now. Its clients would leave after 30 s. The door is faster.
        time.sleep(seconds / 2)
        self.doors[0].refuses = True
        self.doors[0].cut()
        time.sleep(seconds / 2)
        self.way.passes.set()
        self.way.refuses = self.doors[0].refuses = False

    def _fault_of_database(self, kind: str, seconds: float, _number: int) -> None:
        if kind == "kill":
            self.database.kill()
            time.sleep(seconds)
            self.database.start()
        elif kind == "stop":
            with self.database.frozen():
                time.sleep(seconds)
        else:
            with postgres.Session(self.database) as session:
                others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
                session.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


def stopped(process: subprocess.Popen, seconds: float) -> None:
    """Stop a process for some seconds."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def plan(moments: random.Random) -> "list[list[tuple[float, str, str, float, int]]]":
    """Return the faults of each round: when, of what, which, for how long, and a number.

    A round has no two faults of one target, and the kinds of a target occur in turn.
    """
    targets = ("program", "service 0", "service 1", "way", "database")
    kinds = {target: moments.sample(("kill", "stop", "cut"), 3) for target in targets}
    rounds = []
    for _ in range(ROUNDS):
        faults = []
        for target in moments.sample(targets, FAULTS):
            kinds[target].append(kinds[target].pop(0))
            # A short fault is more frequent than a long one.
            seconds = 0.05 + LONGEST * moments.random() ** 2
            faults.append((moments.uniform(0.1, LONG[0]), target, kinds[target][-1], seconds, moments.randrange(1000)))
        rounds.append(faults)
    return rounds


def at(world: World, moment: float, *fault: object) -> None:
    """Make a fault after some seconds."""
    time.sleep(moment)
    world.fault(*fault)


@pytest.mark.timeout(7200)
def test_faults_of_everything_lose_and_duplicate_nothing(start_service, database, queue_dir, tmp_path, record_property):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LOGSPOOL_SEED={seed}")
    moments = random.Random(seed)
    env = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    programs: list[Program] = []
    began = time.monotonic()
    with contextlib.closing(World(start_service, database, tmp_path)) as world:
        for turn, faults in enumerate(plan(moments)):
            for index in range(PROGRAMS):
                is_short = index < PROGRAMS // 2
                options = {"shutdown_timeout": 0.3} if is_short else {"spool_dir": str(tmp_path / "spool")}
                seconds = moments.uniform(*(SHORT if is_short else LONG))
                name = f"p{turn}-{index}"
                world.running.append(Program(world.address, name, seconds, options, tmp_path, env))
            with ThreadPoolExecutor(FAULTS) as threads:
                list(threads.map(lambda fault: at(world, *fault), faults))
            for program in world.running:
                program.end()
            programs += world.running
            world.running = []
        for service in world.services:
            wait_ready(service, 200)
        clients.run(clients.RECOVERY, queue_dir=queue_dir)
        for service in world.services:
            clients.wait_until("a service settles its records", lambda s=service: accepted(s) == settled(s))
            assert 0 == service.stop(), service.said
        took = time.monotonic() - began

    counts = {program.name: program.counts() for program in programs}
    stored = clients.numbers(database.messages())
    lost, doubled, total = [], [], 0
    for program in programs:
        accepted_records, found = counts[program.name][0], collections.Counter(stored[program.name])
        # A program that is killed has perhaps not noted its last record.
        extra = 1 if program.killed and found[accepted_records] else 0
        total += accepted_records + extra
        lost += [f"{program.name} {number}" for number in range(accepted_records) if number not in found]
        doubled += [f"{program.name} {number}" for number, times in found.items() if times > 1]
        assert max(found, default=-1) < accepted_records + extra, f"seed {seed}, {program.name}: never logged"
    durations = [sum(column) for column in zip(*(each[1:] for each in counts.values()), strict=True)]
    microseconds = percentile(durations, 0.999) * STEP
    short = sum(program.lived < 2 for program in programs)
    summary = (
        f"{ROUNDS} rounds, {ROUNDS * FAULTS} faults, {len(programs)} programs ({short} lived less than 2 s), "
        f"seed {seed}: {total} records, {len(lost)} lost, {len(doubled)} doubled, in {took:.0f} s; 99.9 % of the "
        f"calls within {microseconds} microseconds"
    )
    record_property("summary", summary)
    print(summary)

    assert not lost and not doubled, f"{summary}: lost {lost[:3]} ..., doubled {doubled[:3]} ..."
    assert total >= LEAST, summary
    assert not FULL or microseconds <= MOST_MICROSECONDS, summary


def percentile(counts: "list[int]", share: float) -> int:
    """Return the number of the step up to which a share of the counts are, from 1."""
    left = share * sum(counts)
    for step, count in enumerate(counts, 1):
        left -= count
        if left <= 0:
            return step
    return len(counts)
