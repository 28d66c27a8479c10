"""The other behaviours of stock logging that programs rely on, and habits of programs around them."""

# ruff: noqa: PLE1205, PLE1206

import contextlib
import copy
import io
import os
import pickle
import re
import sys
import threading
import warnings

from differential.staging import FULL, NATIVE, STOCK, UNSAID, alias, note, scenario, to_file

LINE = "%(filename)s:%(lineno)d %(funcName)s %(module)s %(message)s"


def _raise():
    raise ValueError("on purpose")


# 19: also reports.py
@scenario(UNSAID)
def bad_arguments_never_raise_in_the_caller(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%d", "text")
    log.info("too few %s %s", 1)
    log.info("too many", 1, 2)
    log.info("good")
    logging.raiseExceptions = False
    log.info("silent %d", "text")
    log.info("good again")


# 20
class _Counting:
    def __init__(self):
        self.calls = 0

    def __str__(self):
        self.calls += 1
        return f"call {self.calls}"


@scenario(UNSAID)
def disabled_calls_format_nothing(logging, folder):
    log, _ = to_file(logging, folder, level=logging.WARNING)
    value = _Counting()
    log.info("%s", value)
    log.debug("%s", value)
    note(value.calls)


@scenario(NATIVE)
def arguments_show_their_value_at_the_call(logging, folder):
    log, _ = to_file(logging, folder)
    items = [1, 2]
    fields = {"a": 1}
    value = _Counting()
    log.info("%s %s %s", items, fields, value)
    items.append(3)
    fields["a"] = 2
    log.info("%s %s %s", items, fields, value)
    log.info("the message itself", *[])
    log.info(items)
    items.clear()


@scenario(NATIVE)
def objects_with_every_conversion(logging, folder):
    log, _ = to_file(logging, folder)

    class Both:
        def __str__(self):
            return "str"

        def __repr__(self):
            return "repr ü"

        def __int__(self):
            return 7

        def __index__(self):
            return 8

        def __float__(self):
            return 1.5

    log.info("%s %r %a %f %x", Both(), Both(), Both(), Both(), Both())
    log.info("%s %d", type("Text", (str,), {"__str__": lambda self: "sub"})("x"), type("Int", (int,), {})(5))


# 21: configuration.py


# 22
@scenario(NATIVE)
def captured_warnings(logging, folder):
    to_file(logging, folder, name="py.warnings")
    logging.captureWarnings(True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = logging._showwarning
        warnings.warn("a warning", UserWarning, stacklevel=1)
        warnings.warn_explicit("explicit", DeprecationWarning, "file.py", 7)
    logging.captureWarnings(False)


@scenario(NATIVE)
def captured_warnings_reach_the_root(logging, folder):
    to_file(logging, folder, name=None)
    logging.captureWarnings(True)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = logging._showwarning
        for number in range(3):
            warnings.warn(f"warning {number % 2}", RuntimeWarning, stacklevel=1)
        with open("warnings", "w") as file:
            warnings.showwarning("to a file", UserWarning, "file.py", 7, file)
    logging.captureWarnings(False)


# 23
@scenario(UNSAID)
def records_can_be_pickled_and_copied(logging, folder):
    log, _ = to_file(logging, folder)
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    log.addHandler(handler)
    log.info("message %s", "x", extra={"request": 7})
    for again in (pickle.loads(pickle.dumps(records[0])), copy.copy(records[0]), copy.deepcopy(records[0])):
        note((type(again).__name__, again.getMessage(), again.request, vars(again) == vars(records[0])))


# 24
@scenario(NATIVE)
def names_of_thread_and_process(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(threadName)s %(thread)d %(processName)s %(process)d %(message)s")
    alias(os.getpid(), "<pid>")
    alias(threading.get_ident(), "<main>")
    log.info("from the main thread")

    def run():
        alias(threading.get_ident(), "<other>")
        log.info("from another")

    thread = threading.Thread(target=run, name="worker-ä")
    thread.start()
    thread.join()


@scenario(NATIVE)
def name_of_the_task(logging, folder):
    import asyncio

    fmt = "%(taskName)s %(message)s" if sys.version_info >= (3, 12) else "%(message)s"
    log, _ = to_file(logging, folder, fmt=fmt)

    async def work(number):
        log.info("begin %d", number)
        await asyncio.sleep(0)
        log.info("end %d", number)

    async def main():
        log.info("main")
        await asyncio.gather(*(asyncio.create_task(work(each), name=f"task {each}") for each in range(3)))

    log.info("outside")
    asyncio.run(main())
    log.info("outside again")


# 25
@scenario(UNSAID)
def last_resort(logging, folder):
    log = logging.getLogger("nobody")
    log.info("not shown")
    log.warning("shown %d", 1)
    log.error("error", exc_info=ValueError("x"))
    logging.lastResort = None
    log.warning("no handlers could be found")
    log.warning("said once")


@scenario(UNSAID)
def disabled_flag_and_has_handlers(logging, folder):
    log, _ = to_file(logging, folder, name="a")
    child = logging.getLogger("a.b")
    note((log.hasHandlers(), child.hasHandlers(), logging.getLogger("z").hasHandlers()))
    log.disabled = True
    log.critical("disabled")
    child.info("children are not")
    log.disabled = False
    log.info("again")


@scenario(UNSAID)
def handlers_list_and_logger_dict_are_public(logging, folder):
    log, handler = to_file(logging, folder, name="a.b")
    note((log.handlers == [handler], handler in log.handlers, list(log.handlers) == [handler]))
    note(isinstance(log.handlers, list))
    note(sorted(logging.root.manager.loggerDict))
    note(
        (
            type(log).__name__,
            repr(log),
            type(handler).__name__,
            repr(handler),
            handler.stream.name == handler.baseFilename,
        )
    )
    note(log.getChild("c").name)


# 26
@scenario(NATIVE)
def modules_that_know_nothing_reach_the_same_handlers(logging, folder):
    to_file(logging, folder, name=None, fmt="%(name)s %(module)s %(message)s")
    (folder / "third_party.py").write_text(
        "import logging\nfrom logging import getLogger, info\nlog = getLogger(__name__)\n"
        "def work():\n    log.info('from a module %d', 1)\n    info('by a bound function')\n"
    )
    sys.path.insert(0, str(folder))
    try:
        import third_party

        third_party.work()
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("third_party", None)


# 27: concurrency.py


# 28
@scenario(UNSAID)
def handler_error_goes_to_handle_error(logging, folder):
    log, _ = to_file(logging, folder)

    class Failing(logging.Handler):
        def emit(self, record):
            try:
                raise OSError("disk gone")
            except OSError:
                self.handleError(record)

    class Raising(logging.Handler):
        def emit(self, record):
            raise RuntimeError("not caught by anybody")

    log.addHandler(Failing())
    log.addHandler(Raising())
    with contextlib.redirect_stderr(io.StringIO()) as report:
        try:
            log.info("reported, and raises")
        except RuntimeError as error:
            note(repr(error))
    # The frames of logging between this function and the handler differ: see docs/explain/surprises.md.
    own = re.compile(r'  File ".*[/]logging[/]__init__.py", line .*\n.*\n(    [~^]+\n)?')
    note(own.sub("", report.getvalue()))


@scenario(UNSAID)
def overridden_handle_error_is_called(logging, folder):
    log, handler = to_file(logging, folder)
    handler.handleError = lambda record: note(f"handleError: {record.msg} {sys.exc_info()[0].__name__}")
    log.info("%d", "bad")
    log.info("good")


# 29
@scenario(UNSAID)
def logging_from_str(logging, folder):
    log, _ = to_file(logging, folder)

    class Talking:
        def __str__(self):
            log.info("from __str__")
            return "talking"

    log.info("says %s", Talking())
    log.info("twice %s %s", Talking(), Talking())


@scenario(UNSAID)
def logging_from_repr_del_and_filter(logging, folder):
    log, handler = to_file(logging, folder)

    class Dying:
        def __repr__(self):
            log.info("from __repr__")
            return "dying"

        def __del__(self):
            log.info("from __del__")

    log.info("says %r", Dying())

    def talk(record):
        if "talk" not in str(record.msg):
            log.info("talk from the filter")
        return True

    handler.addFilter(talk)
    log.info("message")


@scenario(UNSAID)
def str_that_raises(logging, folder):
    log, _ = to_file(logging, folder)

    class Broken:
        def __str__(self):
            raise RuntimeError("no text")

        __repr__ = __str__

    log.info("fine before")
    try:
        log.info("%s", Broken())
    except RuntimeError as error:
        note(repr(error))
    log.info("fine after")


# 30: fork is in concurrency.py


# 31
@scenario(STOCK)
def handlers_see_records_synchronously(logging, folder):
    log, _ = to_file(logging, folder)
    memory = io.StringIO()
    log.addHandler(logging.StreamHandler(memory))
    seen = []
    catching = logging.Handler()
    catching.emit = lambda record: seen.append(record.getMessage())
    log.addHandler(catching)
    for number in range(3):
        log.info("number %d", number)
        note((seen[-1], memory.getvalue()[-9:]))


@scenario(NATIVE)
def many_handlers_of_known_classes(logging, folder):
    log = logging.getLogger("many")
    log.setLevel(10)
    for number in range(5):
        handler = logging.FileHandler(folder / f"{number}.log")
        handler.setFormatter(logging.Formatter(f"{number} %(levelname)s %(message)s"))
        handler.setLevel(number * 10)
        log.addHandler(handler)
    log.addHandler(logging.NullHandler())
    for level in range(10, 60, 10):
        log.log(level, "at %d", level)


@scenario(UNSAID)
def two_handlers_on_one_file(logging, folder):
    log, _ = to_file(logging, folder, fmt="first %(message)s")
    to_file(logging, folder, fmt="second %(message)s")
    for number in range(200):
        log.info("number %d", number)


@scenario(UNSAID)
def keyword_arguments_that_do_not_exist(logging, folder):
    log, _ = to_file(logging, folder)
    for wrong in ({"nonsense": 1}, {"level": 1}, {"msg": 1}):
        try:
            log.info("x", **wrong)
        except TypeError as error:
            note(repr(error))
    try:
        log.info()
    except TypeError as error:
        note(repr(error))
    log.info(msg="by keyword")
    log.info(msg="by keyword %s")


@scenario(NATIVE)
def methods_kept_and_called_later(logging, folder):
    log, _ = to_file(logging, folder, fmt=FULL)
    info, warning = log.info, logging.Logger.warning
    info("bound %d", 1)
    warning(log, "unbound %d", 2)
    import functools

    functools.partial(log.log, 25, "partial %s")("x")
    list(map(log.info, ["mapped", "twice"]))


@scenario(NATIVE)
def warn_and_fatal_still_work(logging, folder):
    log, _ = to_file(logging, folder, fmt=LINE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if hasattr(log, "warn"):
            log.warn("old name %d", 1)
        log.fatal("fatal %s", "x")
    note([str(each.message) for each in caught])


@scenario(UNSAID)
def logger_is_pickled_by_name(logging, folder):
    log, _ = to_file(logging, folder, name="a.b")
    note(pickle.loads(pickle.dumps(log)) is log)
    note(copy.copy(log) is log)
    note(pickle.loads(pickle.dumps(logging.getLogger())) is logging.getLogger())
