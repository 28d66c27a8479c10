"""Measure the cost of input that grows when decoded: memory, and the time of an honest sender's acks."""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path

from parts import Column, Part, Round, percentile
from services import counting, processes
from services.bomb import BOMBS
from services.ground import HERE, Ground, Sender
from services.part import Wrong, wait
from services.running import Service, serving

#: Most memory of the service above its idle memory, as a multiple of limits.waiting_bytes.
TIMES_WAITING = 3
#: limits.waiting_bytes of the default configuration.
WAITING_MB = 128
#: The service's limit of address space.
ADDRESS_SPACE_MB = 1024
#: How much longer than alone an ack of an honest sender may take.
TIMES_ALONE = 5
HONEST = "127.0.0.2"
#: Messages of all probes are different.
_numbers = itertools.count(1)
#: Looks, 0.1 s apart, with the same count.
QUIET_LOOKS = 20


def measure(ground: Ground) -> Round:
    """Throw each bomb once, from many connections at once, at a service of its own."""
    found: Round = {}
    for name in BOMBS:
        ground.say(name)
        try:
            found[name] = _thrown(ground, name)
        except (Wrong, RuntimeError) as error:
            found[name] = str(error)[:300]
    return found


def _thrown(ground: Ground, name: str) -> dict[str, float]:
    limit = ("prlimit", f"--as={ADDRESS_SPACE_MB << 20}")
    with ground.folder() as folder:
        with serving(ground.binary, "--store", f"sqlite:{folder}/data", before=limit) as service:
            alone = _acks(service, ground.sizes.alone_seconds)
            idle = service.memory_mb()
            # Resets the peak.
            Path(f"/proc/{service.process.pid}/clear_refs").write_text("5")
            thrown, beside = _beside(service, ground.sizes.bombers, name)
            after = _acks(service, ground.sizes.alone_seconds)
            peak = processes.peak_memory_mb(service.process.pid) - idle
            rejected = service.stats()["frames_rejected"]
        honest = counting.in_sqlite(folder / "data", "logger = 'honest'")
        undecoded = counting.in_sqlite(folder / "data", "logger = 'logspool.undecoded'")
        others = counting.in_sqlite(folder / "data", "logger NOT IN ('honest', 'logspool.undecoded')")
    sent = len(alone) + len(beside) + len(after)
    p99 = [percentile(times, 0.99) for times in (alone, beside)]
    return {
        "peak_mb": peak,
        "limit_mb": TIMES_WAITING * WAITING_MB,
        "over_mb": peak - TIMES_WAITING * WAITING_MB,
        "alone_ms": p99[0],
        "beside_ms": p99[1],
        "times": p99[1] / p99[0],
        "acks": len(beside),
        "seconds": thrown["seconds"],
        "undecoded": undecoded.found / ground.sizes.bombers,
        "rejected": rejected / ground.sizes.bombers,
        "stored": others.found / ground.sizes.bombers,
        "open": thrown["open"],
        **honest.figures(sent),
    }


def _acks(service: Service, seconds: float) -> list[float]:
    """Return how long acks take while no other client sends."""
    probe = _probe(service, "alone")
    try:
        probe.begin()
        threading.Event().wait(seconds)
        return list(probe.finish()["times"])
    finally:
        probe.end()


def _probe(service: Service, name: str) -> Sender:
    name = f"{name} {next(_numbers)}"
    return Sender([sys.executable, str(HERE / "ack_probe.py"), str(service.ports["tcp"]), HONEST, name])


def _beside(service: Service, count: int, name: str) -> tuple[dict[str, float], list[float]]:
    """Return the outcome of the bombs, and how long acks took meanwhile."""
    bombers = Sender([sys.executable, str(HERE / "bomber.py"), str(service.ports["tcp"]), str(count), name])
    probe = _probe(service, "beside")
    try:
        probe.begin()
        bombers.begin()
        thrown = bombers.result()
        _wait_read(service)
        return thrown, list(probe.finish()["times"])
    finally:
        probe.end()
        bombers.end()


def _wait_read(service: Service) -> None:
    """Wait until all that came is decoded: the number of frames that cannot be read is the same for a while."""
    rejected = [service.stats()["frames_rejected"]]

    def is_same() -> bool:
        rejected.append(service.stats()["frames_rejected"])
        return len(rejected) > QUIET_LOOKS and len(set(rejected[-QUIET_LOOKS:])) == 1

    wait("everything is decoded", is_same, pause=0.1)


PART = Part(
    "bombs",
    "Input that grows when it is decoded",
    (
        Column("peak_mb", "peak above idle, MB", 1),
        Column("limit_mb", "allowed, MB", 0),
        Column("beside_ms", "ack p99 of an honest sender, ms", 1),
        Column("alone_ms", "alone, ms", 1),
        Column("times", "times", 2),
        Column("undecoded", "undecoded records per bomb", 2),
        Column("stored", "other records per bomb", 2),
    ),
    most_rounds=3,
    question="A thousand connections send one bomb each at the same time, to a service with the default limits and "
    "1 GiB of address space. Meanwhile an honest sender on another address sends one record after the other and waits "
    "for each ack. The peak of the resident memory may be three times limits.waiting_bytes above what it was idle.",
    measure=measure,
)
