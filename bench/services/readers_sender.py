"""Posts records over HTTP, waits for each answer, and says how long those took.

    python readers_sender.py PORT FIRST SECONDS

Prints `ready`, waits for a line, and prints one JSON object. Records are numbered from FIRST on.
"""

import http.client
import json
import sys
import time

#: Records of a request.
RECORDS = 1000


def record(number: int) -> str:
    """Return a record; its message is as long as the messages of the senders without Python."""
    message = f"client 0 sends record {number:09} of a request that took 1.250 ms"
    return f'{{"message":"{message}","level":20,"logger":"readers","trace_id":"{number // 10}"}}'


def main() -> None:
    """Send."""
    port, first, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    sent, times = 0, []
    while time.perf_counter() - began < seconds:
        records = range(first + sent, first + sent + RECORDS)
        body = "\n".join(map(record, records))
        asked = time.perf_counter()
        connection.request("POST", "/ingest", body, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        said = answer.read()
        times.append(time.perf_counter() - asked)
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {said[:200]!r}")
        sent += RECORDS
    rate = sent / (time.perf_counter() - began)
    times.sort()
    p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
    print(json.dumps({"records": sent, "rate": rate, "p99": p99, "most": times[-1]}), flush=True)


if __name__ == "__main__":
    main()
