"""Programs that send records: unchanged handlers of the standard library, and logspool's own client."""

import logging
import logging.handlers
import multiprocessing
import os
import sys
import time

HANDLERS = {"stream": logging.handlers.SocketHandler, "datagram": logging.handlers.DatagramHandler}


def send(kind: str, host: str, port: int, records: int, barrier, number: int) -> None:
    """Log so many records once all are ready."""
    logger = logging.getLogger(f"client.{number}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = HANDLERS[kind](host, port)
    logger.addHandler(handler)
    barrier.wait()
    for place in range(records):
        logger.info("client %d sends record %d of a request that took %.3f ms", number, place, 1.25)
    handler.close()
    # No interpreter takes itself apart: that is not what is measured.
    os._exit(0)


def crowd(kind: str, host: str, port: int, clients: int, records: int) -> float:
    """Run so many clients; return the seconds from the common start until the last has sent all."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(clients + 1)
    processes = [
        context.Process(target=send, args=(kind, host, port, records // clients, barrier, number))
        for number in range(clients)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    began = time.perf_counter()
    for process in processes:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a client ended with {process.exitcode}")
    return time.perf_counter() - began


def native(address: str, records: int) -> None:
    """Log so many records through logspool's client; print the seconds until all are acknowledged."""
    import logspool

    handler = logspool.ServiceHandler(address, shutdown_timeout=120)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logspool.install(shutdown_timeout=120)
    logger = logging.getLogger("native")
    logger.info("the first record opens the connection")
    logspool.flush(60)
    began = time.perf_counter()
    for place in range(records):
        logger.info("client %d sends record %d of a request that took %.3f ms", 0, place, 1.25)
    logged = time.perf_counter() - began
    if not logspool.flush(120):
        raise SystemExit("not everything was acknowledged in time")
    print(logged, time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    native(sys.argv[1], int(sys.argv[2]))
