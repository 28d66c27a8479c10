"""`logspool.llm`: one record for each request to a language model."""

import asyncio
import json
import logging

import pytest

import logspool.llm as llm

pytestmark = pytest.mark.real

PROGRAM = """\
import asyncio, logging, sys
import logspool
import logspool.llm

handler = logspool.FileHandler("requests.log")
handler.setFormatter(logspool.JSONFormatter())
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install()

async def tokens(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number

async def serve(number):
    with logspool.llm.request(model="m", input_tokens=number, timings=True, request_id=f"r{number}") as request:
        assert [token async for token in request.each_async(tokens(number))] == list(range(number))

async def main():
    await asyncio.gather(*(serve(number) for number in range(50)))

asyncio.run(main())
"""


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests advance."""
    now = [100.0]
    monkeypatch.setattr(llm.time, "perf_counter", lambda: now[0])
    return now


def _only(caplog):
    (record,) = caplog.records
    return record


def test_a_request_is_one_record_with_the_times_of_its_tokens(clock, caplog):
    with caplog.at_level(logging.INFO), llm.request(model="small", input_tokens=7, timings=True, user="u1") as request:
        for seconds, count in ((0.25, 1), (0.01, 1), (0.03, 2), (0.01, 1)):
            clock[0] += seconds
            request.token(count)
        request.add(finish_reason="stop")
        clock[0] += 0.1

    record = _only(caplog)
    assert record.name == "logspool.llm"
    assert record.filename == "test_llm.py"
    assert record.levelno == logging.INFO
    assert record.getMessage() == "small done: 5 tokens in 0.400 s, the first after 0.250 s"
    shown = {name: value for name, value in vars(record).items() if name in {*llm._OWN, "user", "finish_reason"}}
    assert shown == {
        "model": "small",
        "outcome": "done",
        "seconds": 0.4,
        "input_tokens": 7,
        "output_tokens": 5,
        "first_token_seconds": 0.25,
        "tokens_per_second": 80.0,
        "token_gap_p50_seconds": 0.01,
        "token_gap_p99_seconds": 0.03,
        "token_gap_max_seconds": 0.03,
        "token_seconds": [0.25, 0.26, 0.29, 0.3],
        "user": "u1",
        "finish_reason": "stop",
    }


def test_a_request_without_a_token_says_so(caplog):
    with caplog.at_level(logging.INFO), llm.request():
        pass

    record = _only(caplog)
    assert record.getMessage().startswith("request done: no token in ")
    assert record.output_tokens == 0
    assert not hasattr(record, "first_token_seconds")
    assert not hasattr(record, "model")


def test_a_request_that_fails_is_an_error_with_its_exception(caplog):
    with pytest.raises(KeyError), llm.request(model="m", level="DEBUG") as request:
        request.token()
        raise KeyError("on purpose")

    record = _only(caplog)
    assert record.levelno == logging.ERROR
    assert record.outcome == "failed"
    assert record.exc_info[0] is KeyError
    assert record.output_tokens == 1


def test_a_disconnected_client_is_not_an_error(caplog):
    async def answer():
        with llm.request() as request:
            request.token()
            await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(answer())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def stream():
        with llm.request() as request:
            yield from request.each("ab")

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
        generator = stream()
        assert next(generator) == "a"
        generator.close()

    assert [(record.outcome, record.levelname, record.output_tokens) for record in caplog.records] == [
        ("cancelled", "INFO", 1),
        ("cancelled", "INFO", 1),
    ]


def test_tokens_after_the_end_change_nothing(caplog):
    with caplog.at_level(logging.INFO), llm.request() as request:
        request.token(3)
    request.token()
    with request:
        pass

    assert _only(caplog).output_tokens == request.output_tokens == 3


def test_a_long_answer_keeps_a_limited_number_of_times(monkeypatch, clock, caplog):
    monkeypatch.setattr(llm, "MAX_TIMES", 4)
    with caplog.at_level(logging.INFO), llm.request(timings=True) as request:
        for _ in range(10):
            clock[0] += 0.5
            request.token()

    record = _only(caplog)
    assert record.output_tokens == 10
    assert len(record.token_seconds) == 4
    assert record.tokens_per_second == 2.0


def test_a_filter_that_raises_does_not_fail_the_request(caplog, capsys):
    def refuse(record):
        raise ValueError("on purpose")

    logger = logging.Logger("filtered")
    logger.addFilter(refuse)
    with llm.request(logger=logger) as request:
        request.token()

    assert "on purpose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"model": 5}, TypeError, "model must be a name, not 5"),
        ({"input_tokens": -1}, TypeError, "input_tokens must be a number of tokens, not -1"),
        ({"input_tokens": True}, TypeError, "not True"),
        ({"logger": 5}, TypeError, "logger takes a name"),
        ({"level": "LOUD"}, ValueError, "LOUD"),
        ({"outcome": "good"}, ValueError, "outcome: the record has that already"),
        ({"name": "n"}, ValueError, "name: the record has that already"),
    ],
)
def test_a_wrong_argument_is_named(wrong, error, said):
    with pytest.raises(error, match=said):
        llm.request(**wrong)


def test_a_field_of_the_record_cannot_be_added(caplog):
    with pytest.raises(ValueError, match="args: the record has that already"), llm.request() as request:
        request.add(args=1)


def test_concurrent_requests_have_one_line_each(run_program):
    outcome, folder = run_program(PROGRAM)

    assert (outcome.status, outcome.err) == (0, b"")
    found = [json.loads(line) for line in (folder / "requests.log").read_text().splitlines()]
    assert sorted((line["input_tokens"], line["output_tokens"], line["request_id"]) for line in found) == [
        (number, number, f"r{number}") for number in range(50)
    ]
    assert all(len(json.loads(line.get("token_seconds", "[]"))) == line["output_tokens"] for line in found)
