"""One `bind` object may be entered in several threads, tasks and blocks: each context has its own fields."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

PROGRAM = """\
import asyncio, logging, threading
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s %(user)s %(place)s")
logspool.install()
log = logging.getLogger("app")
shared = logspool.bind(user="ada")
nobody = logspool.bind(user="nobody")

def show(text):
    with logspool.bind(place=text):
        log.info(text)

{body}
"""

THREADS = """\
entered, left = threading.Barrier(2), threading.Event()
errors = []

def work(who):
    try:
        with nobody:
            with shared:
                entered.wait()
                if who == "second":
                    left.wait()
                show(f"{who}-inside")
            show(f"{who}-outside")
    except Exception as error:
        errors.append(error)
    left.set()

threads = [threading.Thread(target=work, args=[who]) for who in ("first", "second")]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(errors)
"""

TASKS = """\
async def work(who, turns):
    with nobody:
        with shared:
            await asyncio.sleep(0)
            with shared:
                await turns[who].wait()
            show(f"{who}-inside")
        show(f"{who}-outside")

async def main():
    turns = {who: asyncio.Event() for who in ("first", "second")}
    tasks = [asyncio.ensure_future(work(who, turns)) for who in turns]
    for turn, task in zip(turns.values(), tasks):
        turn.set()
        await task

asyncio.run(main())
print([])
"""

# A generator leaves its block while a block of its caller is open, and in another context than it entered it.
GENERATORS = """\
import contextvars

def steps():
    with shared:
        yield

with nobody:
    inside = steps()
    next(inside)
    with logspool.bind(user="someone"):
        inside.close()
    show("first-outside")
    elsewhere = steps()
    contextvars.copy_context().run(next, elsewhere)
    elsewhere.close()
    show("second-outside")
print([])
"""


@pytest.mark.parametrize("body", [THREADS, TASKS], ids=["threads", "tasks"])
def test_one_object_can_be_used_in_two_contexts(run_program, body):
    outcome, folder = run_program(PROGRAM.replace("{body}", body))

    assert outcome.expect_success().out == b"[]\n"
    assert (folder / "app.log").read_text().splitlines() == [
        f"{who}-{where} {user} {who}-{where}"
        for who in ("first", "second")
        for where, user in (("inside", "ada"), ("outside", "nobody"))
    ]


def test_blocks_inside_generators_leave_no_fields_bound(run_program):
    outcome, folder = run_program(PROGRAM.replace("{body}", GENERATORS))

    assert outcome.expect_success().out == b"[]\n"
    assert (folder / "app.log").read_text().splitlines() == [
        f"{who}-outside nobody {who}-outside" for who in ("first", "second")
    ]


SEEN = """\
import logging
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
log = logging.getLogger("app")

def show(record):
    print(record.getMessage(), {name: vars(record).get(name) for name in ("user", "place")})
    return True

logging.root.handlers[0].addFilter(show)
log.info("before")
with logspool.bind(user="ada", place="here"):
    log.info("bound")
    log.info("given", extra={"user": "bob"})
    stock = logging.getLogRecordFactory()
    logging.setLogRecordFactory(lambda *args, **kwargs: stock(*args, **kwargs))
    log.info("factory")
    log.info("factory, given", extra={"user": "bob"})
log.info("after")
"""


def test_a_filter_sees_bound_fields(run_program):
    outcome, _ = run_program(SEEN)

    lines = outcome.expect_success().out.decode().splitlines()
    assert lines == [
        "before {'user': None, 'place': None}",
        "bound {'user': 'ada', 'place': 'here'}",
        "given {'user': 'bob', 'place': 'here'}",
        "factory {'user': 'ada', 'place': 'here'}",
        "factory, given {'user': 'bob', 'place': 'here'}",
        "after {'user': None, 'place': None}",
    ]


DECORATED = """\
import contextlib

@shared
def numbers():
    show("first")
    with logspool.bind(user="bob"):
        try:
            received = yield 1
        except KeyError:
            received = "thrown"
        show(f"second-{received}")
    show("third")
    yield 2
    return 3

@shared
async def letters():
    show("first")
    with logspool.bind(user="bob"):
        await asyncio.sleep(0)
        try:
            received = yield "a"
        except KeyError:
            received = "thrown"
        show(f"second-{received}")
    try:
        yield "b"
    finally:
        show("closed")

with nobody:
    generator = numbers()
    assert next(generator) == 1
    show("between")
    assert generator.send("sent") == 2
    show("after")
    with contextlib.suppress(StopIteration):
        next(generator)
    generator = numbers()
    next(generator), generator.throw(KeyError()), generator.close()

async def main():
    with nobody:
        generator = letters()
        assert await generator.__anext__() == "a"
        show("between")
        assert await generator.asend("sent") == "b"
        show("after")
        await generator.aclose()
        generator = letters()
        await generator.__anext__(), await generator.athrow(KeyError())
        assert [letter async for letter in generator] == []

asyncio.run(main())
"""


def test_a_decorated_generator_has_the_fields_while_it_runs(run_program):
    outcome, folder = run_program(PROGRAM.replace("{body}", DECORATED), deadline_seconds=60)

    outcome.expect_success()
    first = ["first ada", "between nobody", "second-sent bob", "third ada", "after nobody"]
    again = ["first ada", "second-thrown bob", "third ada"]
    of_async = ["first ada", "between nobody", "second-sent bob", "after nobody", "closed ada"]
    of_async_again = ["first ada", "second-thrown bob", "closed ada"]
    lines = [" ".join(line.split()[:2]) for line in (folder / "app.log").read_text().splitlines()]
    assert first + again + of_async + of_async_again == lines
