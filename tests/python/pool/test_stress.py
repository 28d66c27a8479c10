"""Several threads use all functions at once: each job ends once (done, cancelled or failed), and callbacks run."""

import concurrent.futures
import random
import threading

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool, as_completed = pool_module.Pool, pool_module.as_completed

ROUNDS = 30
JOBS = 100


class Odd(Exception):
    """The exception of every seventh job."""


def job(number, done):
    done.append(number)
    if number % 7 == 0:
        raise Odd(number)
    return number


def outcome(future):
    if future.cancelled():
        return "cancelled"
    return "failed" if future.exception() else "done"


def drive(pool, seed, done, told):
    """Submit and cancel jobs and wait for them in several ways; return how the jobs of this thread ended."""
    rng, ends = random.Random(seed), []
    for _ in range(ROUNDS):
        futures = []
        for number in range(JOBS):
            futures.append(pool.submit(job, number, done))
            if rng.random() < 0.3:
                futures[-1].add_done_callback(told.append)
            if rng.random() < 0.2:
                rng.choice(futures).cancel()
        how = rng.randrange(4)
        if how == 0:
            assert len(list(as_completed(futures, 120))) == JOBS
        elif how == 1:
            assert concurrent.futures.wait(futures, 120).not_done == set()
        elif how == 2:
            assert len(list(concurrent.futures.as_completed(futures, 120))) == JOBS
        ends += [end(future) for future in futures]
    return ends


def end(future):
    try:
        future.exception(120)
    except concurrent.futures.CancelledError:
        pass
    return outcome(future)


@pytest.mark.parametrize("options", [{}, {"queue_size": 50}, {"idle_timeout": 0.0}, {"context": "copy"}], ids=str)
def test_each_job_ends_once_and_reports_its_outcome(options):
    done, told, ends = [], [], []
    with Pool(3, **options) as pool:
        threads = [
            threading.Thread(target=lambda seed=seed: ends.extend(drive(pool, seed, done, told))) for seed in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pool.wait_idle(120)
        stats = pool.stats()

    assert len(ends) == stats.submitted == 4 * ROUNDS * JOBS
    assert len(done) == len(ends) - ends.count("cancelled")
    assert ends.count("failed") == sum(number % 7 == 0 for number in done)
    assert len(set(map(id, told))) == len(told)
    assert all(future.done() for future in told)
