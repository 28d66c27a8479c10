"""Workers of one server log, and one answers a scrape; for `test_prometheus.py`. The argument is a start method."""

import json
import logging
import multiprocessing
import os
import sys

import logspool

#: Records that each worker logs. The first one answers the scrape.
RECORDS = (3, 5, 11)
DEADLINE_SECONDS = 60


def set_up():
    logging.basicConfig(filename="app.log", level=logging.INFO)
    logspool.install()


def work(number, barrier, answers):
    """Log, and run until the first worker has answered the scrape."""
    set_up()
    for _ in range(number):
        logging.info("of a worker")
    logspool.flush()
    barrier.wait(DEADLINE_SECONDS)
    if number == RECORDS[0]:
        answers.put((os.getpid(), scrape()))
    barrier.wait(DEADLINE_SECONDS)


def scrape():
    """Return the samples of the metrics page of a program with several workers."""
    import prometheus_client
    from prometheus_client import multiprocess

    import logspool.prometheus

    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    registry.register(logspool.prometheus.Collector())
    prometheus_client.generate_latest(registry)
    return [(sample.name, sample.labels, sample.value) for family in registry.collect() for sample in family.samples]


def main(method):
    """Start the workers, and print their process ids and the samples."""
    set_up()
    logging.info("of the parent")
    logspool.flush()
    context = multiprocessing.get_context(method)
    barrier, answers = context.Barrier(len(RECORDS) + 1), context.SimpleQueue()
    workers = [context.Process(target=work, args=(number, barrier, answers)) for number in RECORDS]
    for worker in workers:
        worker.start()
    barrier.wait(DEADLINE_SECONDS)
    asked, samples = answers.get()
    barrier.wait(DEADLINE_SECONDS)
    for worker in workers:
        worker.join(DEADLINE_SECONDS)
    print(json.dumps({"pids": [worker.pid for worker in workers], "parent": os.getpid(), "samples": samples}))
    assert asked == workers[0].pid


if __name__ == "__main__":
    main(sys.argv[1])
