"""fastthreadpool's names: results are taken as they come, and workers wait until there is room for more."""

import threading

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")
Pool = compat.Pool

from pool.held_compat import count_to, fail, held  # noqa: E402


def test_workers_wait_until_results_are_taken():
    begun = []

    def note(number):
        begun.append(number)
        return number

    with Pool(1, done_max=3) as pool:
        for number in range(100):
            pool.submit(note, number)
        taken = []
        for number in pool.as_completed():
            taken.append(number)
            # Three results are in `done`, and the worker holds another; the one just taken made room.
            assert len(begun) <= len(taken) + 3 + 1
            assert len(pool.done) <= 3

    assert list(range(100)) == taken


def test_results_taken_from_the_deque_make_room_too():
    with Pool(1, done_max=1) as pool:
        pool.submit(count_to, 100)
        taken = []
        while len(taken) < 100:
            assert pool.done_cnt.acquire(timeout=60)
            taken.append(pool.done.popleft())

    assert list(range(100)) == taken


def test_a_generator_waits_for_its_consumer_at_the_bound():
    yielded = []

    def stream():
        for number in range(50):
            yielded.append(number)
            yield number

    with Pool(1, done_max=2) as pool:
        pool.submit(stream)
        for number in pool.as_completed():
            assert len(yielded) <= number + 1 + 2 + 1

    assert len(yielded) == 50


def test_results_are_returned_as_they_arrive_until_the_last_job_ends():
    pool, go = held()
    pool.submit(fail)
    pool.submit(int, 1)
    threading.Timer(0.05, go.set).start()

    assert ["1", "why"] == sorted(map(str, pool.as_completed()))
    assert [] == list(pool.as_completed())
    assert (0, 0, 0, 0) == (len(pool.done), len(pool.failed), pool.done_cnt.value, pool.failed_cnt.value)
    assert pool.shutdown(60)


@pytest.mark.parametrize(("job", "expected"), [(fail, "why"), (int, "0")])
def test_a_waiting_consumer_is_woken_by_each_entry_and_not_only_by_the_end(job, expected):
    go = threading.Event()
    with Pool(2) as pool:
        pool.submit(go.wait, 60)
        results = pool.as_completed()
        threading.Timer(0.05, pool.submit, (job,)).start()
        assert expected == str(next(results))
        go.set()
        assert [True] == list(results)


def test_wait_true_waits_for_the_end_and_not_for_one_second():
    pool, go = held()
    pool.submit(int, 5)
    threading.Timer(1.2, go.set).start()

    assert [5] == list(pool.as_completed(wait=True))
    assert pool.shutdown(60)


def test_a_consumer_can_limit_the_waiting_time_and_the_number_of_results():
    pool, go = held()
    for number in range(5):
        pool.submit(int, number)

    assert [] == list(pool.as_completed(wait=False))
    assert [] == list(pool.as_completed(wait=0))
    assert [] == list(pool.as_completed(wait=0.02))
    go.set()
    assert [0, 1] == list(pool.as_completed(cnt_max=2))
    assert pool.wait_idle(60)
    assert [2, 3] == list(pool.as_completed(False, 2))
    assert [4] == list(pool.as_completed(wait=True))
    assert pool.shutdown(60)


def test_each_entry_goes_to_one_of_many_consumers():
    taken = [[], []]
    with Pool(2) as pool:
        pool.submit(count_to, 2000)
        takers = [threading.Thread(target=lambda each=each: each.extend(pool.as_completed())) for each in taken]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join(60)

    assert list(range(2000)) == sorted(taken[0] + taken[1])


def test_a_consumer_ends_when_all_jobs_are_cancelled():
    pool, go = held()
    pool.submit(int)
    taken = []
    taker = threading.Thread(target=lambda: taken.extend(pool.as_completed()))
    taker.start()
    pool.cancel()
    go.set()
    taker.join(60)

    assert (False, []) == (taker.is_alive(), taken)
    assert pool.shutdown(60)
