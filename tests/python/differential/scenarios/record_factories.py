"""Record factories, subclasses of `LogRecord`, and records that the program makes itself."""

# ruff: noqa: PLE1205

import time

from differential.scenarios.records import log_all, note_record
from differential.staging import PLAIN, STOCK, UNSAID, note, scenario, to_file


@scenario(STOCK)
def a_factory_makes_the_record(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(trace)s %(message)s")
    stock = logging.getLogRecordFactory()

    def factory(*args, **kwargs):
        note(f"{len(args)} {sorted(kwargs)} {args[:4]} {args[7]}")
        record = stock(*args, **kwargs)
        record.trace = "abc"
        return record

    logging.setLogRecordFactory(factory)
    handler.addFilter(note_record)
    log_all(log)
    logging.setLogRecordFactory(stock)
    handler.setFormatter(logging.Formatter(PLAIN))
    log.info("by the stock factory")


@scenario(STOCK)
def extra_over_an_attribute_of_a_factory_is_an_error(logging, folder):
    log, _ = to_file(logging, folder)
    stock = logging.getLogRecordFactory()

    def factory(*args, **kwargs):
        record = stock(*args, **kwargs)
        record.trace = "abc"
        return record

    logging.setLogRecordFactory(factory)
    try:
        log.info("lost", extra={"trace": 1})
    except KeyError as error:
        note(repr(error))
    log.info("kept", extra={"another": 1})


@scenario(UNSAID)
def a_factory_that_raises_ends_the_call(logging, folder):
    log, _ = to_file(logging, folder)
    stock = logging.getLogRecordFactory()

    def factory(*args, **kwargs):
        raise ValueError("of the factory")

    logging.setLogRecordFactory(factory)
    try:
        log.info("lost")
    except ValueError as error:
        note(repr(error))
    logging.setLogRecordFactory(lambda *args, **kwargs: None)
    try:
        log.info("lost")
    except AttributeError as error:
        note(repr(error))
    logging.setLogRecordFactory(stock)
    log.info("goes on")


@scenario(UNSAID)
def the_truth_value_of_a_record_is_asked_since_3_12(logging, folder):
    class Moody(logging.LogRecord):
        def __bool__(self):
            note(f"asked about {self.msg}")
            return self.args != (2,)

    log, handler = to_file(logging, folder)
    stock = logging.getLogRecordFactory()
    logging.setLogRecordFactory(Moody)
    for number in range(4):
        log.info("number %d", number)
    log.addFilter(lambda record: True)
    handler.addFilter(lambda record: True)
    for number in range(4):
        log.info("filtered %d", number)
    for number in range(4):
        record = Moody("app", 20, __file__, 1, "handled %d", (number,), None)
        answer = handler.handle(record)
        note("the record" if answer is record else answer)
    logging.setLogRecordFactory(stock)


@scenario(STOCK)
def a_subclass_of_the_record_is_the_factory(logging, folder):
    class Braces(logging.LogRecord):
        def getMessage(self):
            return str(self.msg).format(*self.args)

    log, _ = to_file(logging, folder)
    logging.setLogRecordFactory(Braces)
    log.info("number {} of {}", 1, "many")
    logging.setLogRecordFactory(logging.LogRecord)


# Own handlers and formatters
@scenario(UNSAID)
def records_made_by_the_program_are_those_of_the_class(logging, folder):
    usual = ("app", 20, "/a/b.c/file.tar.py", 7, "%s and %s", (1, 2), None, "work", None)
    changes = [
        {},
        {1: 25},
        {1: 99},
        {1: True},
        {1: "INFO"},
        {2: "no folder"},
        {2: "/ends/with/"},
        {2: "/a/.hidden"},
        {2: None},
        {2: b"/bytes/file.py"},
        {3: None},
        {3: -1},
        {3: 2**40},
        {4: ["list"]},
        {5: ()},
        {5: None},
        {5: ({"key": 1},)},
        {5: ({},)},
        {5: {"key": 1}},
        {5: [1, 2]},
        {6: (ValueError, ValueError("x"), None)},
        {6: True},
        {7: None},
        {7: 7},
        {8: "Stack (most recent call last):"},
    ]
    for change in changes:
        arguments = [change.get(index, value) for index, value in enumerate(usual)]
        for _ in range(2):
            try:
                note_record(logging.LogRecord(*arguments))
            except Exception as error:
                note(f"{change} raises {type(error).__name__}: {error}")
    note_record(logging.LogRecord(*usual[:7]))
    note_record(logging.LogRecord(*usual, unknown=1))
    note_record(logging.LogRecord(*usual[:6], exc_info=None, func="by keyword"))
    note_record(logging.makeLogRecord({"msg": "made", "more": 1}))
    for wrong in ((), usual[:3], (*usual, 1)):
        try:
            logging.LogRecord(*wrong)
            note("made")
        except TypeError as error:
            note(f"{len(wrong)}: {error}")
    again = logging.LogRecord(*usual)
    again.kept = "kept"
    again.__init__(*usual[:4], "again", (), None, "work")
    note_record(again)


@scenario(UNSAID)
def subclasses_of_the_record_set_their_own_attributes(logging, folder):
    class Property(logging.LogRecord):
        @property
        def levelname(self):
            return f"<{self.level}>"

        @levelname.setter
        def levelname(self, value):
            self.level = value

    class Sets(logging.LogRecord):
        def __setattr__(self, name, value):
            note(f"set {name}")
            super().__setattr__(name, value)

    class Slots(logging.LogRecord):
        __slots__ = ("mine", "msg")

    class Before(logging.LogRecord):
        def __init__(self, *args, **kwargs):
            self.before = True
            super().__init__(*args, **kwargs)
            self.after = self.getMessage()

    class Default(logging.LogRecord):
        request_id = "-"
        process = "of the class"

    class Plain(logging.LogRecord):
        pass

    log, _ = to_file(logging, folder, fmt="%(levelname)s %(message)s")
    for kind in (Property, Sets, Slots, Before, Default, Plain):
        logging.setLogRecordFactory(kind)
        for number in range(3):
            log.info("number %d", number)
        record = kind("app", 20, "/a/file.py", 7, "%d", (1,), None, "work", None)
        note(f"{kind.__name__} {list(vars(record))} {record.levelname} {record.getMessage()}")
    logging.setLogRecordFactory(logging.LogRecord)


@scenario(UNSAID)
def a_factory_reads_the_switches_and_the_clock(logging, folder):
    log, handler = to_file(logging, folder)
    handler.addFilter(note_record)
    logging.setLogRecordFactory(lambda *args, **kwargs: logging.LogRecord(*args, **kwargs))
    for name in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        for value in (False, True) if hasattr(logging, name) else ():
            setattr(logging, name, value)
            log.info("%s %s", name, value)
    stock = time.time, time.time_ns
    time.time, time.time_ns = lambda: 86_400.25, lambda: 86_400_250_000_000
    log.info("a patched clock")
    note(logging.LogRecord("app", 20, "file", 1, "", (), None, "work").created)
    time.time, time.time_ns = stock
    logging.addLevelName(20, "Information")
    log.info("a renamed level")
    logging.addLevelName(20, "INFO")
    logging.setLogRecordFactory(logging.LogRecord)
