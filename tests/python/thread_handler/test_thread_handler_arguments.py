import collections
import logging

import pytest
from thread_handler_support import HeldHandler, ListHandler, hold, new_logger

from logspool.thread._handler import ThreadHandler


class Text(str):
    def __str__(self):
        return "text of its own"


class Changing:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


def test_a_mutable_argument_shows_its_value_at_the_time_of_the_call():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("arguments", handler)
    hold(logger, wrapped)
    items = [1]
    table = {"key": "old"}
    nested = (1, ("a", items))
    changing = Changing("old")
    logger.info("%s", items)
    logger.info("%(key)s", table)
    logger.info("%s", nested)
    logger.info("%s", changing)
    logger.info(changing)
    items.append(2)
    table["key"] = "new"
    changing.text = "new"
    wrapped.go.set()
    handler.close()

    assert wrapped.messages[1:] == ["[1]", "old", "(1, ('a', [1]))", "old", "old"]


def test_subclasses_of_builtin_types_are_rendered_in_the_caller():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("arguments", handler).info("%s", Text("x"))
    handler.close()

    assert wrapped.records[0].msg == "text of its own"
    assert not wrapped.records[0].args


def test_builtin_values_and_tuples_of_them_stay_arguments():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    values = (1, 2.5, "text", b"bytes", True, None, (1, ("deep",)))
    new_logger("arguments", handler).info("%s %s %s %s %s %s %s", *values)
    handler.close()

    assert wrapped.records[0].args == values


def test_the_wrapped_handler_gets_a_shallow_copy_and_the_caller_keeps_its_record():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    shared = ["extra"]
    record = logging.makeLogRecord({"msg": "%s", "args": ([1],), "levelno": 20, "shared": shared})
    handler.handle(record)
    record.added_later = True
    handler.close()
    received = wrapped.records[0]

    assert received is not record
    assert type(received) is logging.LogRecord
    assert received.shared is shared
    assert not hasattr(received, "added_later")
    assert (record.msg, record.args) == ("%s", ([1],))


def test_a_subclass_of_log_record_stays_one():
    class Record(logging.LogRecord):
        __slots__ = ("slot",)

        def getMessage(self):
            return "own message"

    record = Record("name", logging.INFO, "path", 1, "msg", (), None)
    record.slot = "kept"
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    handler.handle(record)
    handler.close()
    received = wrapped.records[0]

    assert type(received) is Record
    assert received.slot == "kept"
    assert received.getMessage() == "own message"


def test_fields_of_extra_arrive():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("arguments", handler).info("hello", extra={"request": 17})
    handler.close()

    assert wrapped.records[0].request == 17


def test_no_argument_stays_alive_after_its_record_was_handled():
    class Forgetful(logging.Handler):
        def emit(self, record):
            pass

    handler = ThreadHandler(Forgetful())
    logger = new_logger("arguments", handler)
    marker = collections.UserList()
    import weakref

    reference = weakref.ref(marker)
    logger.info("x", extra={"marker": marker})
    handler.flush()
    del marker
    import gc

    gc.collect()

    assert reference() is None
    handler.close()


@pytest.mark.parametrize("plain", [1, 2.5, "a", b"b", True, None, (), (1, ("a", None))])
def test_exact_builtin_values_are_plain(plain):
    from logspool.thread._record import is_plain

    assert is_plain(plain)


@pytest.mark.parametrize(
    "other", [[], {}, set(), 1j, object(), (1, []), Text("x"), bytearray(b"x"), logging.INFO.__class__]
)
def test_everything_else_is_not_plain(other):
    from logspool.thread._record import is_plain

    assert not is_plain(other)
