"""`QueueHandler`, `QueueListener` and handlers that are called directly: written lines, and attributes of records."""

import copyreg
import queue
import sys
from logging.handlers import QueueHandler, QueueListener

from differential.staging import FULL, UNSAID, note, note_file, scenario

# Attributes that differ from run to run.
_CHANGING = ("asctime", "created", "msecs", "relativeCreated", "thread", "process")


class _Counted:
    """Counts the calls of its `__str__`."""

    asked = 0

    def __str__(self):
        self.asked += 1
        return f"asked {self.asked}"


def _queued(logging, channel):
    log = logging.getLogger("queued")
    log.setLevel(10)
    log.propagate = False
    handler = QueueHandler(channel)
    log.addHandler(handler)
    log.info("the first one")
    channel.get()
    return log, handler


def _record(logging, message, arguments=(), **attributes):
    record = logging.LogRecord("name", logging.INFO, "path", 7, message, arguments, None, "function")
    vars(record).update(attributes)
    return record


def _note_attributes(record):
    note({name: value for name, value in sorted(vars(record).items()) if name not in _CHANGING})


def _prepare(handler, record):
    try:
        prepared = handler.prepare(record)
    except Exception as error:
        note((type(error).__name__, str(error)))
    else:
        note((type(prepared).__name__, prepared is record))
        _note_attributes(prepared)
    _note_attributes(record)


def _prepare_many(logging, handler):
    _prepare(handler, _record(logging, "plain"))
    _prepare(handler, _record(logging, "%s %d %.2f", ("text", 1, 2.5)))
    _prepare(handler, _record(logging, "100 %"))
    _prepare(handler, _record(logging, "%(a)s", ({"a": 1},)))
    _prepare(handler, _record(logging, "too few %s %s", ("one",)))
    _prepare(handler, _record(logging, "no number %d", ("text",)))
    _prepare(handler, _record(logging, 42))
    _prepare(handler, _record(logging, "with %s", (None,)))
    _prepare(handler, _record(logging, "extra", (), extra_field="kept"))
    _prepare(handler, _record(logging, "text of a traceback", exc_text="Traceback: made before"))
    _prepare(handler, _record(logging, "stack", stack_info="Stack: made before"))


@scenario(UNSAID)
def records_are_prepared_for_a_queue(logging, folder):
    _, handler = _queued(logging, queue.Queue())
    _prepare_many(logging, handler)
    counted = _Counted()
    handler.prepare(_record(logging, "%s", (counted,)))
    note(counted.asked)


@scenario(UNSAID)
def a_formatter_of_the_queue_handler_is_used(logging, folder):
    _, handler = _queued(logging, queue.Queue())
    _prepare(handler, _record(logging, "before %s", ("it",)))
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    _prepare_many(logging, handler)
    handler.setFormatter(None)
    _prepare(handler, _record(logging, "after %s", ("it",)))
    handler.format = lambda record: "replaced on the handler"
    _prepare(handler, _record(logging, "never shown"))


@scenario(UNSAID, isolated=True)
def changes_of_what_prepares_records_are_seen(logging, folder):
    _, handler = _queued(logging, queue.Queue())
    _prepare(handler, _record(logging, "before %s", ("it",)))
    default = logging._defaultFormatter
    logging._defaultFormatter = logging.Formatter("<%(message)s>")
    _prepare(handler, _record(logging, "another default formatter"))
    logging._defaultFormatter = default
    default._style = logging.PercentStyle("[%(message)s]")
    _prepare(handler, _record(logging, "another style"))
    default._style = logging.PercentStyle("%(message)s")
    genuine = logging.LogRecord.getMessage
    logging.LogRecord.getMessage = lambda self: "patched"
    _prepare(handler, _record(logging, "never shown"))
    logging.LogRecord.getMessage = genuine
    logging.LogRecord.__copy__ = lambda self: logging.makeLogRecord({"msg": "copied"})
    _prepare(handler, _record(logging, "copied by its class"))
    del logging.LogRecord.__copy__
    QueueHandler.format = lambda self, record: "of the class"
    _prepare(handler, _record(logging, "never shown"))
    del QueueHandler.format
    genuine = QueueHandler.prepare
    QueueHandler.prepare = lambda self, record: genuine(self, record)
    _prepare(handler, _record(logging, "through a patch"))
    QueueHandler.prepare = genuine
    _prepare(handler, _record(logging, "after %s", ("it",)))


@scenario(UNSAID)
def a_subclass_of_the_queue_handler_is_asked(logging, folder):
    class Own(QueueHandler):
        def format(self, record):
            return f"own {record.getMessage()}"

    _queued(logging, queue.Queue())
    _prepare_many(logging, Own(queue.Queue()))


def _hand_on(logging, handler, channel):
    record = _record(logging, "handed %s", ("on",))
    answer = handler.handle(record)
    note((type(answer).__name__, answer is record, channel.qsize()))
    while not channel.empty():
        _note_attributes(channel.get_nowait())
    _note_attributes(record)


@scenario(UNSAID)
def records_are_handed_on_to_queues_of_the_standard_library(logging, folder):
    class Own(queue.Queue):
        def put_nowait(self, item):
            item.msg += " by a queue of its own"
            super().put_nowait(item)

    for channel in (queue.Queue(), queue.SimpleQueue(), queue.LifoQueue(), Own()):
        log, handler = _queued(logging, channel)
        _hand_on(logging, handler, channel)
        log.removeHandler(handler)


@scenario(UNSAID)
def a_queue_that_is_full_is_reported(logging, folder):
    channel = queue.Queue(maxsize=1)
    log, handler = _queued(logging, channel)
    reported = []
    handler.handleError = lambda record: reported.append((record.getMessage(), sys.exc_info()[0].__name__))
    for number in range(3):
        log.info("number %d", number)
    note(reported)
    _hand_on(logging, handler, channel)
    note(handler.lock.acquire(blocking=False))


@scenario(UNSAID, isolated=True)
def changes_of_what_hands_records_on_are_seen(logging, folder):
    channel = queue.Queue()
    _, handler = _queued(logging, channel)
    _hand_on(logging, handler, channel)
    for name in ("emit", "enqueue", "prepare", "filter", "acquire", "release"):
        genuine = getattr(handler, name)

        def replaced(*arguments, name=name, genuine=genuine):
            note(name)
            return genuine(*arguments)

        setattr(handler, name, replaced)
        _hand_on(logging, handler, channel)
        delattr(handler, name)
    for cls, name in ((QueueHandler, "emit"), (QueueHandler, "enqueue"), (logging.Handler, "acquire")):
        genuine = getattr(cls, name)

        def patched(self, *arguments, name=name, genuine=genuine):
            if self is handler:
                note(name)
            return genuine(self, *arguments)

        setattr(cls, name, patched)
        _hand_on(logging, handler, channel)
        setattr(cls, name, genuine)
    genuine = queue.Queue.put_nowait
    queue.Queue.put_nowait = lambda self, item: note("put_nowait") or genuine(self, item)
    _hand_on(logging, handler, channel)
    queue.Queue.put_nowait = genuine
    handler.addFilter(lambda record: note("filter") or False)
    _hand_on(logging, handler, channel)
    handler.filters.clear()
    handler.createLock()
    _hand_on(logging, handler, channel)


@scenario(UNSAID)
def handlers_behind_a_listener_see_what_the_first_one_left(logging, folder):
    class Second(logging.Handler):
        def emit(self, record):
            left = getattr(record, "asctime", None)
            note((record.getMessage(), record.message, left == first.formatter.formatTime(record)))

    first = logging.FileHandler(folder / "first.log")
    first.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    channel = queue.Queue()
    log, _ = _queued(logging, channel)
    listener = QueueListener(channel, first, Second())
    for number in range(20):
        log.info("number %d of %s", number, "many")
        log.info("plain")
        listener.handle(channel.get())
        listener.handle(channel.get())
    first.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.info("without a time")
    listener.handle(channel.get())
    record = _record(logging, "passed %s", ("by itself",))
    first.handle(record)
    _note_attributes(record)
    first.close()
    # Without the times.
    note([line.split(",", 1)[-1][4:] for line in (folder / "first.log").read_text().splitlines()])
    (folder / "first.log").unlink()


@scenario(UNSAID)
def filters_of_a_handler_behind_a_listener_are_asked(logging, folder):
    target = logging.FileHandler(folder / "target.log")
    target.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    for number in range(5):
        note(bool(target.handle(_record(logging, "without a filter %d", (number,)))))
    target.addFilter(lambda record: record.args != (2,))
    for number in range(5):
        note(bool(target.handle(_record(logging, "with a filter %d", (number,)))))
    target.filters.clear()
    note(bool(target.handle(_record(logging, "without it"))))
    target.flush()
    note_file("target.log")


@scenario(UNSAID)
def logging_calls_and_direct_calls_of_a_thread_keep_their_order(logging, folder):
    target = logging.FileHandler(folder / "target.log")
    target.setFormatter(logging.Formatter(FULL))
    log = logging.getLogger("both")
    log.setLevel(10)
    log.addHandler(target)
    for number in range(200):
        log.info("logged %d", number)
        target.handle(_record(logging, "handled %d", (number,)))
        target.emit(_record(logging, "emitted %d", (number,)))
        log.handle(_record(logging, "handled by the logger %d", (number,)))
    target.flush()
    note(len((folder / "target.log").read_text().splitlines()))


@scenario(UNSAID)
def errors_of_direct_calls_are_reported_as_stock_logging_does(logging, folder):
    target = logging.FileHandler(folder / "target.log")
    target.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    reported = []
    target.handleError = reported.append
    for record in (_record(logging, "%d", ("text",)), _record(logging, "%s %s", ("one",))):
        target.handle(record)
        target.emit(record)
    note(len(reported))
    target.handle(_record(logging, "a good one"))
    target.flush()
    note_file("target.log")


@scenario(UNSAID)
def records_of_a_class_registered_for_copying_are_prepared_so(logging, folder):
    _, handler = _queued(logging, queue.Queue())
    copyreg.pickle(logging.LogRecord, lambda record: (logging.makeLogRecord, ({"msg": "reduced"},)))
    try:
        handler.setLevel(10)
        _prepare(handler, _record(logging, "copied %s", ("by a function",)))
    finally:
        del copyreg.dispatch_table[logging.LogRecord]
