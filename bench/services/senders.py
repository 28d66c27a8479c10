"""Unchanged handlers of the standard library in processes of their own."""

import logging
import logging.handlers
import multiprocessing
import os
import time

HANDLERS = {"stream": logging.handlers.SocketHandler, "datagram": logging.handlers.DatagramHandler}


def send(kind: str, host: str, port: int, records: int, barrier, number: int) -> None:
    """Log `records` records once all are ready."""
    logger = logging.getLogger(f"client.{number}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = HANDLERS[kind](host, port)
    logger.addHandler(handler)
    barrier.wait()
    for place in range(records):
        logger.info("client %d sends record %d of a request that took %.3f ms", number, place, 1.25)
    handler.close()
    # No interpreter cleans up: its end is not measured.
    os._exit(0)


def crowd(kind: str, host: str, port: int, clients: int, records: int) -> float:
    """Run `clients` clients; return when they began, all at once, on the clock of `time.perf_counter`."""
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
    return began
