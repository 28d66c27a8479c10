"""Logs markers by an unchanged `SocketHandler`, and asks for each over HTTP until it is found.

    python probe.py TCP_PORT HTTP_PORT COUNT

Prints `ready`, waits for a line, and prints one JSON object with the milliseconds of each marker: first the markers
that were asked for by the id of a trace, then the markers by a word of the message. COUNT is of both.
"""

import http.client
import json
import logging
import logging.handlers
import random
import sys
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone

#: The pause between two questions: a marker's time is exact to this.
PAUSE_SECONDS = 0.002
#: Markers come at all moments of the service's work.
APART_SECONDS = 0.06
DEADLINE = 60.0
#: The limit of all questions for words: a store without an index of words reads for seconds, while the load continues.
WORDS_MILLISECONDS = 20_000.0


def find(connection: http.client.HTTPConnection, question: dict[str, str]) -> float:
    """Ask until there is an answer; return when, and how long that took in milliseconds."""
    began = time.perf_counter()
    target = f"/api/query?{urllib.parse.urlencode(question)}"
    while True:
        connection.request("GET", target)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{target}: {answer.status}: {body[:200]!r}")
        if body.strip():
            return (time.perf_counter() - began) * 1e3
        if time.perf_counter() - began > DEADLINE:
            raise SystemExit(f"{target}: not found within {DEADLINE:.0f} s")
        time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Log and ask."""
    tcp, http_port, count = map(int, sys.argv[1:])
    logger = logging.getLogger("probe")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.handlers.SocketHandler("127.0.0.1", tcp))
    connection = http.client.HTTPConnection("127.0.0.1", http_port, timeout=DEADLINE)
    print("ready", flush=True)
    sys.stdin.readline()
    found: dict[str, list[float]] = {"trace": [], "word": []}
    for number in range(count):
        kind = "trace" if number < (count + 1) // 2 else "word"
        marker = f"marker{uuid.uuid4().hex}"
        logger.info("a probe says %s", marker, extra={"trace_id": marker})
        # A moment, not `5s`: a question that took longer than 5 s would look only after the marker.
        since = datetime.now(timezone.utc) - timedelta(seconds=5)
        question = {"trace": {"q": f"trace_id={marker}"}, "word": {"q": marker, "since": since.isoformat()}}[kind]
        found[kind].append(find(connection, question))
        if sum(found["word"]) > WORDS_MILLISECONDS:
            break
        time.sleep(random.random() * APART_SECONDS)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
