"""Threads, forks and signals. Lines whose order stock logging does not promise are sorted before the comparison."""

import asyncio
import os
import signal
import sys
import threading

from differential.staging import NATIVE, UNSAID, note, scenario, to_file


def _sort_lines(handler):
    """Close the handler and sort its file, because the order of its writers is not defined."""
    handler.close()
    with open(handler.baseFilename, "rb+") as file:
        lines = sorted(file.read().splitlines(keepends=True))
        file.seek(0)
        file.truncate()
        file.writelines(lines)


def _in_threads(count, run):
    threads = [threading.Thread(target=run, args=(number,), name=f"thread {number}") for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@scenario(NATIVE)
def threads_on_one_handler(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(threadName)s %(message)s")

    def run(who):
        for number in range(500):
            log.info("line %05d", number)

    _in_threads(8, run)
    order = {}
    handler.flush()
    for line in (folder / "app.log").read_text().splitlines():
        name, _, number = line.rpartition(" line ")
        order.setdefault(name, []).append(int(number))
    note({name: numbers == sorted(numbers) for name, numbers in sorted(order.items())})
    _sort_lines(handler)


@scenario(NATIVE)
def threads_one_after_another_keep_their_order(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(threadName)s %(message)s")
    for number in range(200):
        thread = threading.Thread(target=log.info, args=("line %d", number), name=f"thread {number}")
        thread.start()
        thread.join()


@scenario(UNSAID)
def threads_while_the_configuration_changes(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(message)s")
    stop = threading.Event()

    def change():
        while not stop.is_set():
            log.setLevel(10)
            handler.setLevel(0)
            handler.setFormatter(logging.Formatter("%(message)s"))
            log.handlers[:] = [handler]

    changing = threading.Thread(target=change)
    changing.start()

    def run(who):
        for number in range(300):
            log.info("thread %d line %d", who, number)

    _in_threads(4, run)
    stop.set()
    changing.join()
    _sort_lines(handler)


@scenario(UNSAID)
def handlers_added_and_removed_while_threads_log(logging, folder):
    log, handler = to_file(logging, folder)
    stop = threading.Event()
    others = []

    def change():
        while not stop.is_set():
            other = logging.FileHandler(folder / "coming-and-going.log")
            others.append(other)
            log.addHandler(other)
            log.removeHandler(other)
            other.close()

    changing = threading.Thread(target=change)
    changing.start()

    def run(who):
        for number in range(200):
            log.info("thread %d line %d", who, number)

    _in_threads(4, run)
    stop.set()
    changing.join()
    # A thread that still used a handler after its removal has opened its file again.
    for other in others:
        other.close()
    _sort_lines(handler)
    os.remove("coming-and-going.log")


@scenario(NATIVE)
def tasks_of_an_event_loop(logging, folder):
    fmt = "%(taskName)s %(message)s" if sys.version_info >= (3, 12) else "%(message)s"
    log, _ = to_file(logging, folder, fmt=fmt)

    async def work(who):
        for number in range(50):
            log.info("task %d line %d", who, number)
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(asyncio.create_task(work(each), name=f"named {each}") for each in range(5)))

    asyncio.run(main())


@scenario(UNSAID, isolated=True)
def forked_child_logs_and_leaves_by_os_exit(logging, folder):
    log, _handler = to_file(logging, folder, fmt="%(message)s")
    for number in range(100):
        log.info("parent before %03d", number)
    child = os.fork()
    if child == 0:
        for number in range(100):
            log.info("child %03d", number)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    note(status)
    for number in range(100):
        log.info("parent after %03d", number)


@scenario(UNSAID, isolated=True)
def forked_child_while_the_parent_logs(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(message)s")
    children = []
    for who in range(5):
        child = os.fork()
        if child == 0:
            for number in range(50):
                log.info("child %d line %03d", who, number)
            os._exit(0)
        children.append(child)
        for number in range(50):
            log.info("parent %d line %03d", who, number)
    for child in children:
        note(os.waitpid(child, 0)[1])
    _sort_lines(handler)


@scenario(UNSAID, isolated=True)
def forked_child_of_mode_w_does_not_truncate_again(logging, folder):
    log, _handler = to_file(logging, folder, fmt="%(message)s", mode="w")
    log.info("parent")
    child = os.fork()
    if child == 0:
        log.info("child")
        os._exit(0)
    os.waitpid(child, 0)
    log.info("parent again")


@scenario(UNSAID, isolated=True)
def grandchildren_log(logging, folder):
    log, _handler = to_file(logging, folder, fmt="%(message)s")
    log.info("0")
    if os.fork() == 0:
        log.info("1")
        if os.fork() == 0:
            log.info("2")
            os._exit(0)
        os.wait()
        log.info("3")
        os._exit(0)
    os.wait()
    log.info("4")


@scenario(UNSAID, isolated=True)
def signal_handler_that_logs(logging, folder):
    # Signals come only at chosen places: stock logging breaks when a signal comes inside a write.
    # tests/e2e/test_interruptions.py sends signals at any moment.
    log, _ = to_file(logging, folder, fmt="%(lineno)d %(funcName)s %(message)s")
    signal.signal(signal.SIGUSR1, lambda number, frame: log.info("signal %d", number))

    class Signalling:
        def __str__(self):
            signal.raise_signal(signal.SIGUSR1)
            return "signalled while formatted"

    for number in range(100):
        log.info("line %05d", number)
        signal.raise_signal(signal.SIGUSR1)
    log.info("%s", Signalling())


@scenario(UNSAID)
def garbage_that_logs_when_it_is_collected(logging, folder):
    # Garbage is collected only between calls: stock logging breaks when it is collected inside a write
    # (tests/e2e/test_interruptions.py).
    import gc

    log, handler = to_file(logging, folder, fmt="%(message)s")

    class Node:
        def __init__(self, number):
            self.number, self.me = number, self

        def __del__(self):
            log.info("collected %04d", self.number)

    gc.disable()
    try:
        for number in range(200):
            Node(number)
            log.info("line %d", number)
            if not number % 10:
                gc.collect()
        gc.collect()
    finally:
        gc.enable()
    _sort_lines(handler)  # the garbage collector promises no order


@scenario(UNSAID)
def generators_and_greenlet_like_switches(logging, folder):
    log, _ = to_file(logging, folder)

    def talk(who):
        for number in range(20):
            log.info("%s %d", who, number)
            yield

    for _ in zip(talk("first"), talk("second"), talk("third")):
        pass


@scenario(UNSAID)
def deep_recursion(logging, folder):
    log, _ = to_file(logging, folder)

    def down(depth):
        if depth:
            down(depth - 1)
        else:
            log.info("at the bottom")

    down(300)
