"""Test tools that reach into logging: unittest's assertLogs, mock, redirected streams."""

import contextlib
import io
import sys
import unittest
from unittest import mock

from differential.staging import FULL, NATIVE, STOCK, UNSAID, expect, note, scenario, speak, to_file, warm

CASE = unittest.TestCase()


@scenario(UNSAID)
def assert_logs_of_a_logger(logging, folder):
    log, _ = to_file(logging, folder)
    with expect(NATIVE):
        warm(log)
    with CASE.assertLogs("app", level="INFO") as seen, expect(STOCK):
        log.info("seen %d", 1)
        log.warning("seen too")
    note((seen.output, [record.args for record in seen.records]))
    with expect(NATIVE):
        log.info("in the file again")


@scenario(UNSAID)
def assert_logs_of_the_root(logging, folder):
    _log, _ = to_file(logging, folder, name=None)
    deep = logging.getLogger("a.b.c")
    warm(deep)
    with CASE.assertLogs() as seen:
        deep.error("seen")
    note(seen.output)
    deep.error("in the file")


@scenario(UNSAID)
def assert_logs_again_and_again(logging, folder):
    log, _ = to_file(logging, folder)
    for turn in range(30):
        warm(log, 20)
        with CASE.assertLogs(log, level="DEBUG") as seen:
            log.debug("turn %d", turn)
        note(seen.output)


@scenario(UNSAID)
def assert_logs_that_fails(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    try:
        with CASE.assertLogs("app", level="ERROR"):
            log.info("too low")
    except AssertionError as error:
        note(error)
    log.info("as before")


@scenario(UNSAID)
def assert_no_logs(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    with CASE.assertNoLogs("app", level="WARNING"):
        log.info("not counted and not in the file")
    try:
        with CASE.assertNoLogs("app"):
            log.info("counted")
    except AssertionError as error:
        note(error)
    log.info("as before")


@scenario(UNSAID)
def assert_logs_of_an_ancestor(logging, folder):
    log, _ = to_file(logging, folder, name="app.db.deep")
    to_file(logging, folder, name="app", file="parent.log")
    warm(log)
    with CASE.assertLogs("app") as seen:
        log.info("own file and assertLogs, not the parent's file")
    note(seen.output)
    log.info("everywhere")


@scenario(UNSAID)
def mocked_method_of_an_instance(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    with mock.patch.object(log, "info") as info:
        log.info("mocked %d", 1)
        log.warning("not mocked")
    note(info.mock_calls)
    log.info("real")


@scenario(UNSAID)
def mocked_method_of_the_class(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    with mock.patch.object(logging.Logger, "warning") as warning:
        log.warning("mocked %d", 1)
        log.info("not mocked")
    note(warning.mock_calls)
    log.warning("real")


@scenario(UNSAID, surprise="a native method is no function for create_autospec: the mock is not bound to the logger")
def mocked_method_of_the_class_with_autospec(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    with mock.patch.object(logging.Logger, "warning", autospec=True) as warning:
        log.warning("mocked %d", 1)
    note([call.args[1:] for call in warning.mock_calls])


@scenario(UNSAID)
def mocked_handler_method(logging, folder):
    log, handler = to_file(logging, folder)
    warm(log)
    with mock.patch.object(handler, "emit") as emit, expect(STOCK):
        log.info("mocked %s", "x")
    note([call.args[0].getMessage() for call in emit.mock_calls])
    with mock.patch.object(type(handler), "emit", autospec=True) as emit, expect(STOCK):
        log.info("mocked on the class")
    note(emit.call_count)
    with expect(NATIVE):
        log.info("real")


@scenario(UNSAID)
def mocked_handler_in_the_list(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    handler = mock.Mock(level=logging.WARNING)
    with mock.patch.object(log, "handlers", [handler]):
        log.info("too low")
        log.warning("mocked")
    note([call.args[0].getMessage() for call in handler.handle.mock_calls])
    log.info("real")


@scenario(UNSAID)
def mocked_stream(logging, folder):
    log, _ = to_file(logging, folder)
    stream = mock.Mock()
    log.addHandler(logging.StreamHandler(stream))
    log.info("x")
    note(stream.mock_calls)


@scenario(UNSAID)
def mocked_dictionary_of_the_logger(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    with mock.patch.dict(vars(log), {"note": "more"}):
        log.info("dictionary patched")
    log.info("dictionary back")


@scenario(UNSAID)
def attributes_set_through_the_instance_dictionary(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log)
    note(sorted(vars(log)))
    note((vars(log).get("level"), vars(log).get("disabled"), vars(log).get("propagate")))


@scenario(UNSAID)
def redirected_standard_error(logging, folder):
    memory = io.StringIO()
    with contextlib.redirect_stderr(memory):
        handler = logging.StreamHandler()
        log = logging.getLogger("redirected")
        log.addHandler(handler)
        log.warning("into memory")
        logging.getLogger("other").warning("last resort into memory")
    logging.getLogger("other").warning("last resort onto stderr")
    log.warning("still into memory")
    note(memory.getvalue())


@scenario(UNSAID)
def handler_on_a_swapped_standard_error_that_was_put_back(logging, folder):
    handler = logging.StreamHandler()
    log = logging.getLogger("kept")
    log.addHandler(handler)
    warm(log, 1)
    memory = io.StringIO()
    with contextlib.redirect_stderr(memory):
        log.warning("onto the real one")
        handler.setStream(sys.stderr)
        log.warning("into memory")
    log.warning("still into memory")
    handler.setStream(sys.stderr)
    log.warning("real again")
    note(memory.getvalue())


@scenario(UNSAID)
def descriptor_two_redirected(logging, folder):
    import os

    log = logging.getLogger("fd")
    log.addHandler(logging.StreamHandler())
    log.warning("to the old descriptor")
    log.handlers[0].flush()
    kept = os.dup(2)
    target = os.open(folder / "stderr.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(target, 2)
    log.warning("to the file")
    log.handlers[0].flush()
    os.dup2(kept, 2)
    os.close(kept)
    os.close(target)
    log.warning("to the old descriptor again")


@scenario(UNSAID)
def context_manager_that_adds_and_removes_a_handler(logging, folder):
    log, _ = to_file(logging, folder)
    for _turn in range(50):
        warm(log, 5)
        handler = logging.FileHandler(folder / "turns.log")
        log.addHandler(handler)
        speak(log)
        log.removeHandler(handler)
        handler.close()


@scenario(UNSAID)
def changes_between_each_two_calls(logging, folder):
    log, handler = to_file(logging, folder, fmt=FULL)
    for turn in range(200):
        log.info("turn %d", turn)
        log.level = 30 if turn % 3 == 0 else 10
        log._cache.clear()
        handler.level = 30 if turn % 5 == 0 else 0
        log.disabled = turn % 7 == 0
        handler.formatter = logging.Formatter(f"{turn % 4} %(message)s")
        log.warning("after turn %d", turn)
