"""A program that logs through logspool's client, and waits until everything is acknowledged.

    python native_client.py ADDRESS NUMBER RECORDS

Prints `ready`, waits for a line, logs, and prints one JSON object; its times are of the clock that all processes share.
"""

import json
import logging
import sys
import time

import logspool


def main() -> None:
    """Log."""
    address, number, records = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    handler = logspool.ServiceHandler(address, shutdown_timeout=120)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logspool.install(shutdown_timeout=120)
    logger = logging.getLogger("native")
    print("ready", flush=True)
    sys.stdin.readline()
    used, began = time.process_time(), time.monotonic()
    for place in range(records):
        logger.info("client %d sends record %d of a request that took %.3f ms", number, place, 1.25)
    logged = time.monotonic()
    if not logspool.flush(240):
        raise SystemExit("not everything was acknowledged in time")
    done = time.monotonic()
    cpu = time.process_time() - used
    print(json.dumps({"began": began, "logged": logged, "done": done, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    main()
