"""Rows: globals of the module, level names, names of threads and processes, standard streams."""

import asyncio
import enum
import io
import os
import sys
import threading
from types import SimpleNamespace
from unittest import mock

from differential.staging import NATIVE, UNSAID, alias, note, speak
from differential.table.cases import ONE_OF_EACH, named_row, row


# Module globals and level names
@row(NATIVE)
def disable_below_error(case):
    case.logging.disable(case.logging.WARNING)
    yield
    case.logging.disable(case.logging.NOTSET)


@row(NATIVE)
def managers_disable_assigned(case):
    case.root.manager.disable = case.logging.WARNING


@row(UNSAID)
def disable_all(case):
    case.logging.disable()


@row(NATIVE, kinds=ONE_OF_EACH)
def managers_disable_assigned_and_cache_cleared(case):
    case.root.manager.disable = case.logging.INFO
    case.root.manager._clear_cache()


@row(NATIVE)
def level_name_added(case):
    case.logging.addLevelName(case.logging.INFO, "Information")
    case.logging.addLevelName(25, "NOTICE")


@row(NATIVE, kinds=ONE_OF_EACH)
def level_name_replaced(case):
    case.logging._levelToName[case.logging.INFO] = "I"


@row(NATIVE, kinds=ONE_OF_EACH)
def level_name_exchanged_for_another(case):
    # The number of level names stays the same.
    del case.logging._levelToName[case.logging.INFO]
    case.logging.addLevelName(25, "NOTICE")


class Level(enum.IntEnum):
    NOTICE = 25


@row(NATIVE, kinds=ONE_OF_EACH)
def level_name_added_for_an_enum(case):
    case.logging.addLevelName(Level.NOTICE, "NOTICE")


@row(NATIVE, kinds=ONE_OF_EACH, prepare=level_name_added_for_an_enum)
def level_name_replaced_of_an_enum(case):
    case.logging.addLevelName(Level.NOTICE, "OTHER")


@row(NATIVE, kinds=ONE_OF_EACH)
def level_name_table_assigned(case):
    case.logging._levelToName[case.logging.ERROR] = "E"
    del case.logging._levelToName[case.logging.DEBUG]


for _name, _value in (
    ("logThreads", False),
    ("logProcesses", False),
    ("logMultiprocessing", False),
    ("_srcfile", None),
    ("raiseExceptions", False),
):

    def _assigned(case, name=_name, value=_value):
        if name == "logProcesses":
            alias(os.getpid(), "<pid>")
            case.formatter._style._fmt = "%(process)s %(message)s"
        with mock.patch.object(case.logging, name, value):
            yield

    named_row(
        f"module_{_name.strip('_')}_assigned",
        _assigned,
        NATIVE if _name == "raiseExceptions" else UNSAID,
        kinds=ONE_OF_EACH,
    )


@row(UNSAID, kinds=ONE_OF_EACH, since=(3, 12))
def module_log_asyncio_tasks_assigned(case):
    case.formatter._style._fmt = "%(taskName)s %(message)s"

    async def speak_in_a_task():
        speak(case.log)

    asyncio.run(speak_in_a_task())
    with mock.patch.object(case.logging, "logAsyncioTasks", False):
        asyncio.run(speak_in_a_task())
        yield
    asyncio.run(speak_in_a_task())


@row(UNSAID, kinds=ONE_OF_EACH)
def raise_exceptions_off_and_bad_arguments(case):
    with mock.patch.object(case.logging, "raiseExceptions", False):
        case.log.info("bad %d", "arguments")
        yield
    case.log.info("bad %d", "arguments again")


@row(UNSAID, kinds=ONE_OF_EACH)
def currentframe_patched(case):
    frame = sys._getframe()
    with mock.patch.object(case.logging, "currentframe", lambda: frame):
        yield


@row(UNSAID, kinds=ONE_OF_EACH)
def last_resort_replaced_and_no_handlers(case):
    case.log.handlers.clear()
    case.log.propagate = False
    with mock.patch.object(case.logging, "lastResort", case.other):
        yield


@row(UNSAID, kinds=ONE_OF_EACH)
def last_resort_none_and_no_handlers(case):
    case.log.handlers.clear()
    case.log.propagate = False
    with mock.patch.object(case.logging, "lastResort", None):
        yield


@row(UNSAID, kinds=("file", "terminal"))
def no_handlers_left(case):
    case.log.handlers.clear()
    case.log.propagate = False


# Names of threads and processes, streams, the process itself
@row(NATIVE)
def thread_renamed(case):
    thread = threading.current_thread()
    original, thread.name = thread.name, "renamed-thread"
    yield
    thread.name = original


@row(NATIVE, kinds=ONE_OF_EACH)
def thread_renamed_by_its_private_attribute(case):
    thread = threading.current_thread()
    original, thread._name = thread._name, "renamed-thread"
    yield
    thread._name = original


@row(UNSAID, kinds=ONE_OF_EACH)
def current_thread_patched(case):
    thread = SimpleNamespace(name="patched-thread", daemon=False)
    with mock.patch("threading.current_thread", return_value=thread):
        yield


@row(NATIVE, kinds=ONE_OF_EACH)
def process_renamed(case):
    import multiprocessing

    process = multiprocessing.current_process()
    original, process.name = process.name, "RenamedProcess"
    yield
    process.name = original


@row(UNSAID, kinds=ONE_OF_EACH)
def getpid_patched(case):
    alias(os.getpid(), "<pid>")
    case.formatter._style._fmt = "%(process)d %(message)s"
    with mock.patch("os.getpid", return_value=4242):
        yield


@row(NATIVE, kinds=("pipe", "terminal", "stdout"))
def standard_streams_swapped(case):
    # A StreamHandler keeps the stream with which it was created.
    out, err = io.StringIO(), io.StringIO()
    with mock.patch("sys.stdout", out), mock.patch("sys.stderr", err):
        yield
    note(out.getvalue() + err.getvalue())


@row(UNSAID, kinds=("file", "terminal"))
def standard_error_swapped_and_last_resort(case):
    case.log.handlers.clear()
    case.log.propagate = False
    err = io.StringIO()
    with mock.patch("sys.stderr", err):
        yield
    note(err.getvalue())
