"""Records as Python code sees them: filters, formatters, handlers and record factories.

The attributes of a record are noted with their order and types. Times are noted as relations between them.
"""

# ruff: noqa: PLE1205

import asyncio
import copy
import logging.handlers
import multiprocessing
import os
import pickle
import sys
import threading
import time
import types

from differential.staging import NATIVE, STOCK, UNSAID, alias, note, scenario, to_file

_TIMES = ("created", "msecs", "relativeCreated")


def noted(record):
    """Return the attributes of a record in order, without the values that differ between two runs."""
    attributes = dict(vars(record))
    for name in _TIMES:
        attributes[name] = type(attributes[name]).__name__
    alias(os.getpid(), "<pid>")
    alias(threading.get_ident(), "<ident>")
    if attributes["exc_info"]:
        attributes["exc_info"] = [type(part).__name__ for part in attributes["exc_info"]]
    if attributes["stack_info"]:
        attributes["stack_info"] = attributes["stack_info"].splitlines()[:2]
    return f"{type(record).__module__}.{type(record).__qualname__} {attributes}"


def note_record(record):
    note(noted(record))
    whole = int(record.created)
    note(0 <= record.msecs < 1000 and abs((record.created - whole) * 1000 - record.msecs) < 1.001)
    return True


def log_all(log):
    log.debug("plain")
    log.info("text %s, number %d, float %.2f, none %s", "é", -5, 2.5, None)
    log.warning("one %s", ("a", "tuple"))
    log.warning("mapping %(a)d", {"a": 1})
    log.warning("mapping proxy %(a)d", types.MappingProxyType({"a": 1}))
    log.warning("empty mapping", {})
    log.error("no arguments: 100%")
    log.critical(["a", "list"])
    log.log(25, "a level without a name")
    log.log(logging.INFO, "by number %r", b"bytes")
    log.info("extra", extra={"request_id": 7, "user": "ann"})
    log.info("stack", stack_info=True)
    log.info("a level up", stacklevel=2)
    log.info("far up", stacklevel=50)
    log.info("no exception", exc_info=True)
    try:
        raise ValueError("on purpose")
    except ValueError as error:
        log.exception("raised")
        log.info("given", exc_info=error)
        log.info("as a tuple", exc_info=(type(error), error, None))
        log.info("not asked", exc_info=0)


@scenario(STOCK)
def a_filter_sees_every_attribute(logging, folder):
    log, handler = to_file(logging, folder)
    handler.addFilter(note_record)
    log_all(log)


@scenario(STOCK)
def a_filter_of_the_logger_sees_every_attribute(logging, folder):
    log, _ = to_file(logging, folder)
    log.addFilter(note_record)
    log_all(log)


@scenario(STOCK)
def own_handlers_see_every_attribute(logging, folder):
    class Own(logging.Handler):
        def emit(self, record):
            note_record(record)

    log, _ = to_file(logging, folder)
    log.addHandler(Own())
    log_all(log)


@scenario(STOCK)
def a_record_shows_the_switches_of_logging(logging, folder):
    log, handler = to_file(logging, folder)
    handler.addFilter(note_record)
    for name in ("logThreads", "logMultiprocessing", "logProcesses", "logAsyncioTasks"):
        if not hasattr(logging, name):
            continue
        log.info("on: %s", name)
        setattr(logging, name, False)
        log.info("off: %s", name)
        log.info("off: %s", name)
        setattr(logging, name, True)
        log.info("on again: %s", name)


@scenario(STOCK)
def a_record_names_its_thread_process_and_task(logging, folder):
    log, handler = to_file(logging, folder)

    def names(record):
        note(f"{record.threadName} {record.processName} {getattr(record, 'taskName', 'no attribute')}")
        return True

    def call():
        log.info("called")

    async def main():
        call()
        await asyncio.create_task(coroutine(), name="named task")

    async def coroutine():
        call()

    handler.addFilter(names)
    call()
    thread = threading.Thread(target=call, name="named thread")
    thread.start()
    thread.join()
    threading.current_thread().name = "renamed"
    call()
    asyncio.run(main())
    multiprocessing.current_process().name = "named process"
    call()
    multiprocessing.current_process().name = "MainProcess"
    threading.current_thread().name = "MainThread"
    call()


@scenario(STOCK)
def records_of_one_site_keep_their_threads_apart(logging, folder):
    log, handler = to_file(logging, folder)
    other = logging.getLogger("app.other")
    mixed = []

    class Slow(threading.Thread):
        @property
        def name(self):
            time.sleep(0.0001)  # Another thread logs meanwhile.
            return self._name

        @name.setter
        def name(self, value):
            self._name = value

    def check(record):
        wanted = (threading.get_ident(), threading.current_thread()._name, local.logger, local.level)
        if (record.thread, record.threadName, record.name, record.levelno) != wanted:
            mixed.append((record.thread, record.threadName, record.name, record.levelno, wanted))
        return False

    def work(index):
        for number in range(200):
            chosen = (log, other)[(index + number) % 2]
            local.logger, local.level = chosen.name, (10, 20, 30)[(index * number) % 3]
            chosen.log(local.level, "number %d of %d", number, index)

    local = threading.local()
    handler.addFilter(check)
    threads = [Slow(target=work, args=(index,), name=f"slow {index}") for index in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    note(mixed)


@scenario(STOCK)
def a_record_is_copied_and_pickled(logging, folder):
    log, handler = to_file(logging, folder)

    def keep(record):
        for copied in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
            note(noted(copied) == noted(record) and vars(copied) is not vars(record))
        record.added = 1
        note(repr(record))
        return True

    handler.addFilter(keep)
    log.info("number %d", 1)
    log.info("number %d", 2)


@scenario(STOCK)
def records_of_one_call_share_nothing(logging, folder):
    log, handler = to_file(logging, folder)
    kept = []
    handler.addFilter(lambda record: kept.append(record) or True)
    for number in range(3):
        log.info("number %d", number)
        kept[-1].mark = number
        kept[-1].__dict__["name"] = f"name {number}"
    note([(record.mark, record.name, record.args) for record in kept])


# Filters that change records
def _changing(**values):
    def change(record):
        vars(record).update(values)
        return True

    return change


@scenario(STOCK)
def changes_of_a_filter_are_in_the_line(logging, folder):
    log, handler = to_file(
        logging, folder, fmt="%(levelname)s %(levelno)d %(name)s %(lineno)d %(funcName)s %(message)s"
    )
    for change in (
        {"msg": "another message %d"},
        {"msg": "no arguments", "args": None},
        {"msg": "a mapping %(a)s", "args": {"a": "value"}},
        {"args": ("too", "many")},
        {"levelname": "SHOUT"},
        {"levelno": 45},
        {"levelno": "text"},
        {"name": "another.name"},
        {"name": None},
        {"lineno": -1},
        {"lineno": "text"},
        {"funcName": "another"},
        {"exc_text": "a text of an exception"},
        {"stack_info": "a stack"},
        {"message": "is replaced by the formatter"},
        {1: "a key that is no text"},
    ):
        handler.filters[:] = [lambda record, change=change: vars(record).update(change) or True]
        log.info("number %d", 1)


@scenario(STOCK)
def fields_of_a_filter_are_in_the_line(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(request_id)s %(user)r %(message)s")
    for value in (7, 2.5, "text", "é" * 40, None, True, b"bytes", 10**30, ("a", 1), [1], {"a": 1}, ValueError("v")):
        handler.filters[:] = [_changing(request_id=value, user=value)]
        log.info("number %d", 1)
    handler.filters[:] = [_changing(request_id=1)]
    log.info("the user is missing")


@scenario(STOCK)
def a_dict_that_was_replaced_counts(logging, folder):
    log, handler = to_file(logging, folder)

    def replace(record):
        record.__dict__ = {**vars(record), "msg": "replaced"}
        return True

    def lacking(record):
        record.__dict__ = {"msg": "nothing else", "args": (), "levelno": 20}
        return True

    handler.addFilter(replace)
    log.info("number")
    handler.filters[:] = [lacking]
    log.info("number")


@scenario(STOCK)
def each_handler_sees_what_stands_when_it_runs(logging, folder):
    log, first = to_file(logging, folder)
    _, second = to_file(logging, folder, file="second.log")
    _, third = to_file(logging, folder, file="third.log")
    second.addFilter(lambda record: setattr(record, "msg", f"{record.msg}!") is None)
    third.addFilter(lambda record: note(sorted(set(vars(record)) & {"message", "asctime"})) is None)
    log.info("number %d", 1)
    log.info("number %d", 2)
    first.addFilter(lambda record: setattr(record, "args", (7,)) is None)
    log.info("number %d", 3)


@scenario(STOCK)
def a_kept_record_has_what_a_formatter_sets(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.datefmt = "date"
    kept = []
    handler.addFilter(lambda record: kept.append(record) or True)
    log.info("number %d", 1)
    note([getattr(kept[0], name, "nothing") for name in ("message", "asctime")])


# Return values of filters
@scenario(STOCK)
def any_answer_of_a_filter_counts_as_true_or_false(logging, folder):
    log, handler = to_file(logging, folder)

    class Answer:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            note(f"asked for {self.value}")
            return self.value

    for answer in (0, 1, "", "yes", None, [], [0], Answer(False), Answer(True)):
        handler.filters[:] = [lambda record, answer=answer: answer]
        log.info("answer %s", type(answer).__name__)
        log.filters[:] = handler.filters
        log.info("both %s", type(answer).__name__)
        log.filters[:] = []


@scenario(UNSAID)
def a_filter_of_the_logger_changes_what_follows(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(levelname)s %(levelno)s %(message)s")
    handler.setLevel(logging.INFO)
    for act in (
        lambda record: setattr(record, "levelno", 5),
        lambda record: setattr(record, "levelno", logging.ERROR),
        lambda record: setattr(record, "levelno", 20.0),
        lambda record: log.removeHandler(handler),
        lambda record: log.addHandler(handler),
        lambda record: handler.setLevel(logging.ERROR),
        lambda record: handler.setLevel(logging.DEBUG),
        lambda record: log.filters.append(lambda record: note("appended") or True),
        lambda record: setattr(log, "disabled", True),
    ):
        log.filters[:] = [lambda record, act=act: act(record) is None]
        log.info("number %d", 1)
        log.info("number %d", 2)
        log.filters.clear()
        log.info("without a filter")


@scenario(UNSAID)
def a_filter_reads_the_message(logging, folder):
    log, _ = to_file(logging, folder)
    log.addFilter(lambda record: note(record.getMessage()) or True)
    for _ in range(2):
        log.info("no arguments: 100%")
        log.info("text %s, number %d, float %.2f, none %s", "é", -5, 2.5, None)
        log.info("mapping %(a)d", {"a": 1})
        log.info(["a", "list"])
        log.info("%r of %s", ("a", "tuple"), ValueError("on purpose"))
        log.info("%5.1f|%-6s|%06d|%x|%c|%r|%%|%s", 2.25, "é", -42, 255, "x", "a'b", float("inf"))
        log.info("%s %s %s", True, None, 10**30)
        log.info("%d and %.3f", 2.5, -0.0)
        log.info("%s", "\ud800")
    for number in range(20):
        log.info(f"template {number} %d", number)
    for message, arguments in (
        ("%d", ("text",)),
        ("%s %s", (1,)),
        ("nothing", (1,)),
        ("%(a)s", (1,)),
        ("%z", (1,)),
        ("%*d", (3, 4)),
    ):
        try:
            log.info(message, *arguments)
        except Exception as error:
            note((type(error).__name__, str(error)))


@scenario(UNSAID)
def a_record_class_changes_the_message(logging, folder):
    class Shouting(logging.LogRecord):
        def getMessage(self):
            return super().getMessage().upper()

    class Fixed(logging.LogRecord):
        args = property(lambda self: ("fixed",), lambda self, value: None)

    for cls in (logging.LogRecord, Shouting, Fixed):
        record = cls("name", logging.INFO, "path.py", 1, "text %s", ("given",), None)
        note(record.getMessage())
        record.msg = "another %s"
        note(record.getMessage())
        record.args = None
        note(record.getMessage())
        del record.msg
        try:
            record.getMessage()
        except AttributeError as error:
            note(str(error))


@scenario(UNSAID)
def filters_run_in_order_until_one_refuses(logging, folder):
    log, handler = to_file(logging, folder)

    def named(name, answer):
        def run(record):
            note(f"{name}: {record.getMessage()}")
            return answer

        return run

    log.addFilter(named("logger 1", True))
    log.addFilter(named("logger 2", True))
    handler.addFilter(named("handler 1", True))
    handler.addFilter(named("handler 2", False))
    handler.addFilter(named("handler 3", True))
    log.info("number %d", 1)
    log.filters[1] = named("logger 2", False)
    log.info("number %d", 2)
    log.filters.clear()
    handler.filters.clear()
    log.info("number %d", 3)


@scenario(STOCK)
def filters_of_every_kind_run(logging, folder):
    log, handler = to_file(logging, folder)

    class WithMethod:
        def filter(self, record):
            note("method")
            return True

    class WithStatic:
        @staticmethod
        def filter(record):
            note("static method")
            return True

    class Callable:
        def __call__(self, record):
            note("call")
            return True

    class OnDemand:
        def __getattr__(self, name):
            if name != "filter":
                raise AttributeError(name)
            return lambda record: note("made on demand") is None

    class Derived(logging.Filter):
        def filter(self, record):
            note("derived")
            return super().filter(record)

    on_instance = logging.Filter()
    on_instance.filter = lambda record: note("on the instance") is None
    for each in (
        WithMethod(),
        WithStatic,
        WithStatic(),
        Callable(),
        OnDemand(),
        Derived("app"),
        on_instance,
        logging.Filter("app"),
    ):
        handler.addFilter(each)
    log.info("number %d", 1)


@scenario(STOCK)
def a_filter_that_raises_ends_the_call(logging, folder):
    log, handler = to_file(logging, folder)

    class Stop(BaseException):
        pass

    for error in (ValueError("of the filter"), AttributeError("filter"), KeyboardInterrupt(), Stop("base")):

        def fail(record, error=error):
            raise error

        for filterer in (log, handler):
            filterer.filters[:] = [fail]
            try:
                log.info("lost")
            except BaseException as raised:
                note(repr(raised))
            filterer.filters[:] = []
    handler.filters[:] = [object()]
    try:
        log.info("lost")
    except TypeError as raised:
        note(repr(raised))
    handler.filters[:] = []
    log.info("goes on")


@scenario(STOCK)
def an_answer_that_raises_ends_the_call(logging, folder):
    log, handler = to_file(logging, folder)

    class Answer:
        def __bool__(self):
            raise ValueError("neither")

    handler.addFilter(lambda record: Answer())
    try:
        log.info("lost")
    except ValueError as raised:
        note(repr(raised))


@scenario(STOCK, since=(3, 12))
def a_filter_may_return_another_record(logging, folder):
    log, handler = to_file(logging, folder)
    _, second = to_file(logging, folder, file="second.log")

    class Own(logging.LogRecord):
        def getMessage(self):
            return "of its class"

    def exchange(record):
        return logging.makeLogRecord({**vars(record), "msg": "exchanged", "args": None})

    def own(record):
        found = Own("app", 20, "path", 1, "own", (), None)
        vars(found).update(vars(record))
        return found

    handler.addFilter(exchange)
    log.info("number %d", 1)
    handler.filters[:] = [own]
    log.info("number %d", 2)
    log.addFilter(exchange)
    log.info("number %d", 3)
    second.addFilter(own)
    log.info("number %d", 4)


@scenario(UNSAID)
def a_filter_changes_the_filters_and_handlers(logging, folder):
    log, handler = to_file(logging, folder)
    _, second = to_file(logging, folder, file="second.log")
    log.removeHandler(second)

    def appends(record):
        handler.filters.append(lambda record: note("appended") is None)
        return True

    def removes(record):
        handler.filters.remove(removes)
        return True

    def adds(record):
        log.addHandler(second)
        return True

    for change in (appends, removes, adds):
        handler.filters[:] = [change]
        log.info("during %s", change.__name__)
        log.info("after %s", change.__name__)
        handler.filters[:] = []
    handler.filters[:] = [lambda record: log.removeHandler(handler) is None]
    log.info("removes the handler")
    log.info("without it")


@scenario(UNSAID)
def a_filter_adds_a_handler_that_sees_the_record(logging, folder):
    class Second(logging.Handler):
        def emit(self, record):
            note(sorted(set(vars(record)) & {"message", "asctime"}))

    added = Second()

    def add(record):
        log.addHandler(added)
        return True

    for place in ("logger", "handler"):
        log, handler = to_file(logging, folder, place, file=f"{place}.log")
        (log if place == "logger" else handler).addFilter(add)
        for number in range(2):
            log.info("number %d", number)
        log.removeHandler(added)


@scenario(UNSAID)
def a_filter_logs_itself(logging, folder):
    log, handler = to_file(logging, folder)
    other, _ = to_file(logging, folder, name="other", file="other.log")
    depth = []

    def logs(record):
        if len(depth) < 3:
            depth.append(1)
            log.info("from the filter %d", len(depth))
            other.info("to the other %d", len(depth))
            depth.pop()
        return True

    handler.addFilter(logs)
    log.info("outer")


@scenario(UNSAID)
def a_filter_that_logs_without_an_end_raises(logging, folder):
    log, handler = to_file(logging, folder)

    def logs(record):
        log.info("once more")
        return True

    def call():
        try:
            log.info("the first")
        except RecursionError:
            note("RecursionError")

    handler.addFilter(logs)
    call()
    size = threading.stack_size(1 << 20)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    threading.stack_size(size)
    handler.filters.clear()
    log.info("goes on")


@scenario(NATIVE)
def filters_by_name_need_no_record(logging, folder):
    for number, (logger, prefix) in enumerate(
        [("shop", "shop"), ("shop.cart", "shop"), ("shopping", "shop"), ("shop", "shop.cart"), ("a", ""), ("é.b", "é")]
    ):
        log, handler = to_file(logging, folder, name=logger, file=f"{number}.log")
        log.propagate = False
        handler.addFilter(logging.Filter(prefix))
        log.info("number %d", number)


@scenario(STOCK)
def filters_that_are_no_list_run(logging, folder):
    log, handler = to_file(logging, folder)
    for filterer in (log, handler):
        filterer.filters = (lambda record: note(record.getMessage()) is None, logging.Filter("app"))
        log.info("in a tuple")
        filterer.filters = {"app": 1}.keys()
        try:
            log.info("not callable")
        except TypeError as error:
            note(repr(error))
        filterer.filters = []


@scenario(UNSAID)
def a_filter_by_name_is_changed(logging, folder):
    log, handler = to_file(logging, folder, name="shop")
    by_name = logging.Filter("shop")
    handler.addFilter(by_name)
    log.info("passes")
    by_name.name = "other"
    log.info("length of the old name")
    by_name.nlen = 5
    log.info("dropped")
    by_name.nlen = 0
    log.info("passes all")
    by_name.filter = lambda record: False
    log.info("dropped by the instance")
    del by_name.filter
    log.info("passes again")
    stock = logging.Filter.filter
    logging.Filter.filter = lambda self, record: note("patched") is None
    log.info("by the patched class")
    logging.Filter.filter = stock
    by_name.__class__ = type("Other", (logging.Filter,), {"filter": lambda self, record: False})
    log.info("dropped by its class")


@scenario(UNSAID)
def a_handler_that_a_filter_refuses_opens_no_file(logging, folder):
    log, _ = to_file(logging, folder)
    late = logging.FileHandler("late.log", delay=True)
    late.addFilter(logging.Filter("other"))
    log.addHandler(late)
    log.info("not for the other")
    note(os.path.exists("late.log"))
    late.filters[:] = [lambda record: False]
    log.info("not either")
    note(os.path.exists("late.log"))
    late.filters[:] = [lambda record: True]
    log.info("for both")
    note(os.path.exists("late.log"))


# Record factories
@scenario(STOCK)
def own_formatters_run_in_the_caller(logging, folder):
    class Times(logging.Formatter):
        def formatTime(self, record, datefmt=None):
            return f"at {type(record.created).__name__} {datefmt}"

    class Colours(logging.Formatter):
        def format(self, record):
            note(threading.current_thread().name)
            return f"\x1b[32m{super().format(record)}\x1b[0m"

    class Broken(logging.Formatter):
        def format(self, record):
            return 7 if record.args else None

    class Raising(logging.Formatter):
        def format(self, record):
            raise ValueError("of the formatter")

    log, handler = to_file(logging, folder)
    for formatter in (Times("%(asctime)s %(message)s"), Colours("%(levelname)s %(message)s"), Broken(), Raising()):
        handler.setFormatter(formatter)
        log.info("number %d", 1)
        log.error("a text")


@scenario(STOCK)
def a_handler_holds_its_lock_while_it_emits(logging, folder):
    class Own(logging.Handler):
        def emit(self, record):
            free = []
            thread = threading.Thread(target=lambda: free.append(self.lock.acquire(blocking=False)))
            thread.start()
            thread.join()
            note(f"free for another thread: {free}")

    log, _ = to_file(logging, folder)
    log.addHandler(Own())
    log.info("number %d", 1)


@scenario(STOCK)
def levels_of_handlers_are_compared_when_they_run(logging, folder):
    log, handler = to_file(logging, folder)
    _, second = to_file(logging, folder, file="second.log")
    handler.addFilter(lambda record: second.setLevel(logging.ERROR) is None)
    log.info("number %d", 1)
    log.error("number %d", 2)
    handler.filters[:] = [lambda record: setattr(record, "levelno", 10) is None]
    log.error("number %d", 3)


@scenario(STOCK)
def a_disabled_logger_drops_what_its_filter_let_pass(logging, folder):
    log, _ = to_file(logging, folder)
    log.addFilter(lambda record: setattr(log, "disabled", True) is None)
    log.info("number %d", 1)
    log.info("number %d", 2)
    log.disabled = False
    log.info("number %d", 3)


@scenario(STOCK)
def without_a_handler_the_last_resort_answers(logging, folder):
    log = logging.getLogger("alone")
    log.propagate = False
    log.addFilter(lambda record: note(record.getMessage()) is None)
    log.warning("shown")
    log.info("too low")
    logging.lastResort = None
    log.warning("no handler could be found")
    log.warning("said once")


@scenario(STOCK)
def an_adapter_and_a_queue_handler_pass_records_on(logging, folder):
    import queue

    log, handler = to_file(logging, folder, fmt="%(user)s %(message)s")
    handler.addFilter(note_record)
    adapter = logging.LoggerAdapter(log, {"user": "ann"})
    adapter.info("number %d", 1)
    waiting = queue.SimpleQueue()
    other = logging.getLogger("queued")
    other.setLevel(10)
    other.addHandler(logging.handlers.QueueHandler(waiting))
    other.addFilter(lambda record: setattr(record, "user", "bob") is None)
    other.info("number %d", 2)
    handler.handle(waiting.get())
