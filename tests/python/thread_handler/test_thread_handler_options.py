import math

import pytest
from thread_handler_support import ListHandler

from logspool.thread._handler import ThreadHandler


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("queue_size", 0, "from 1 to"),
        ("queue_size", -1, "from 1 to"),
        ("queue_size", 10**12, "from 1 to 100000000"),
        ("queue_size", 2.5, "whole number"),
        ("queue_size", True, "whole number"),
        ("queue_bytes", 100, "from 4096 to"),
        ("flush_interval", 0, "from 0.001 to"),
        ("flush_interval", None, "from 0.001 to"),
        ("flush_interval", math.nan, "from 0.001 to"),
        ("blocking_timeout", -1, "from 0 to"),
        ("blocking_timeout", "1", "from 0 to"),
        ("shutdown_timeout", -0.1, "from 0 to"),
        ("shutdown_timeout", 1e300, "from 0 to"),
        ("exc_info", "drop", "'keep' or 'text'"),
        ("durability", "process", "only 'memory' does"),
        ("durability", "sync", "only 'memory' does"),
        ("blocking_levels", ["EROR"], "the nearest one is 'ERROR'"),
        ("blocking_levels", ["error"], "the nearest one is 'ERROR'"),
        ("blocking_levels", ["CRITCAL"], "the nearest one is 'CRITICAL'"),
        ("blocking_levels", "ERROR", "collection of levels"),
        ("blocking_levels", 40, "collection of levels"),
        ("blocking_levels", [None], "is no level"),
        ("blocking_levels", [-5], "is no level"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_valid_range(option, value, words):
    with pytest.raises(ValueError) as caught:
        ThreadHandler(ListHandler(), **{option: value})

    assert option in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["blocking_timeout", "shutdown_timeout"])
@pytest.mark.parametrize("value", [None, math.inf, 0, 1, 2.5])
def test_seconds_can_be_none_infinite_integers_or_fractions(name, value):
    ThreadHandler(ListHandler(), **{name: value}).close()


def test_a_wrapped_handler_must_be_a_handler():
    with pytest.raises(TypeError, match=r"must be a logging.Handler, not object"):
        ThreadHandler(object())


def test_the_defaults_are_the_documented_ones():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)

    assert handler.wrapped_handler is wrapped
    assert handler._queue.capacity == 1000
    assert handler._blocking_levels == {40, 50}
    assert handler._blocking_timeout is None
    assert handler._writer.flush_interval == 0.5
    assert handler._writer.shutdown_timeout == 5.0


def test_the_parameters_of_backgroundlog_work_in_their_order():
    handler = ThreadHandler(ListHandler(), 10, {40}, 0.1, 0.2, 0.3)

    assert handler._queue.capacity == 10
    assert handler._blocking_levels == {40}
    assert handler._blocking_timeout == 0.1
    assert handler._writer.flush_interval == 0.2
    assert handler._writer.shutdown_timeout == 0.3
    assert repr(handler).startswith("<ThreadHandler <ListHandler")
