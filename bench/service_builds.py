"""Compare the processor time of two builds of the service under one load, for example for glibc and for musl.

Each round runs all builds one after the other, in another order each time. A build gets lines of JSON from four
connections and lines of syslog from four others, stores them in SQLite, and answers twenty questions. Its processor
time is the one that the kernel counts for its process; the ratio to the first build is taken inside a round.

    python bench/service_builds.py glibc=PROGRAM musl=PROGRAM [--rounds N] [--records N]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time

CONNECTIONS = 4
QUESTIONS = ["level>=error | count by logger", "payment | count by host", "user=17", '"order 4711"', "| last by logger"]


def load(connection: int, records: int) -> tuple[bytes, bytes]:
    """Return the lines of JSON and of syslog of one connection."""
    lines, syslog = [], []
    for number in range(records):
        level = ("info", "warning", "error")[number % 3]
        message = f"order {number} of connection {connection}: payment took {number % 977} ms"
        fields = {"message": message, "level": level, "logger": f"shop.part{number % 40}", "user": number % 1000}
        lines.append(json.dumps({**fields, "request": f"{connection:04x}{number:012x}"}))
        syslog.append(f"<134>1 2026-11-29T10:00:00.000Z host{number % 20} shop {connection} - - {message}")
    return ("\n".join(lines) + "\n").encode(), ("\n".join(syslog) + "\n").encode()


def measure(program: str, loads: list[tuple[bytes, bytes]], records: int) -> float:
    """Return the seconds of processor time that a program takes for the load."""
    with tempfile.TemporaryDirectory(prefix="logspool-builds-") as folder:
        listeners = ["--listen", "tcp://127.0.0.1:0", "--listen", "tcp://127.0.0.1:0?protocol=syslog"]
        words = [program, "serve", *listeners, "--http", "127.0.0.1:0", "--store", f"sqlite:{folder}"]
        service = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        ports: list[int] = []
        for line in service.stderr:
            ports += map(int, re.findall(r"listening at \w+://127\.0\.0\.1:(\d+)", line))
            if "ready" in line:
                break
        json_port, syslog_port, http = ports

        def send(port: int, data: bytes) -> None:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(data)

        senders = [
            threading.Thread(target=send, args=(port, data))
            for pair in loads
            for port, data in zip((json_port, syslog_port), pair)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        wanted = 2 * len(loads) * records
        ask = [program, "query", "--service", f"http://127.0.0.1:{http}"]
        deadline = time.monotonic() + 600
        stored = 0
        while stored < wanted:
            time.sleep(0.5)
            done = subprocess.run([*ask, "order | count by level"], capture_output=True, text=True)
            stored = sum(int(number) for number in re.findall(r"\b\d+\b", done.stdout))
            if time.monotonic() > deadline:
                raise SystemExit(f"{program} has not stored {wanted} records: {done}")
        for question in QUESTIONS * 4:
            subprocess.run([*ask, question], stdout=subprocess.DEVNULL, check=True)
        service.terminate()
        _, status, usage = os.wait4(service.pid, 0)
        service.returncode = os.waitstatus_to_exitcode(status)
        service.stderr.close()
        if service.returncode != 0:
            raise SystemExit(f"{program} ended with {service.returncode}")
        return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=PROGRAM")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=25_000, help="of each connection")
    options = parser.parse_args()
    builds = dict(build.split("=", 1) for build in options.builds)
    loads = [load(number, options.records) for number in range(CONNECTIONS)]
    taken: dict[str, list[float]] = {name: [] for name in builds}
    for number in range(options.rounds):
        names = list(builds) if number % 2 == 0 else list(reversed(builds))
        for name in names:
            taken[name].append(measure(builds[name], loads, options.records))
        print("  ".join(f"{name} {seconds[-1]:.2f} s" for name, seconds in taken.items()), flush=True)
    first = next(iter(builds))
    for name, seconds in taken.items():
        ratios = [own / base for own, base in zip(seconds, taken[first])]
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(
            f"{name}: median {statistics.median(seconds):.2f} s, {statistics.median(ratios):.3f} of {first} ({spread})"
        )


if __name__ == "__main__":
    main()
