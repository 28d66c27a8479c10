"""StreamHandlers on pipes and terminals: bytes, order with print, tracebacks."""

import functools
import sys
import threading

from differential.staging import (
    FULL,
    NATIVE,
    PIPE,
    TERMINAL,
    UNSAID,
    Scenario,
    register,
    speak,
)


def on_both(path, **options):
    """Register the decorated scenario once with pipes and once with terminals."""

    def add(function):
        for streams in (PIPE, TERMINAL):
            register(Scenario(f"console.{streams}.{function.__name__}", function, path, streams=streams, **options))
        return function

    return add


def _console(logging, stream=None, fmt=FULL):
    log = logging.getLogger("console")
    log.setLevel(logging.DEBUG)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(fmt))
    log.addHandler(handler)
    return log, handler


@on_both(NATIVE)
def standard_error(logging, folder):
    speak(_console(logging)[0])


@on_both(NATIVE)
def standard_output(logging, folder):
    speak(_console(logging, sys.stdout)[0])


@on_both(NATIVE)
def both_streams_by_level(logging, folder):
    log, _out = _console(logging, sys.stdout)
    _, err = _console(logging, sys.stderr)
    err.setLevel(logging.ERROR)
    speak(log)


@on_both(NATIVE)
def basic_config(logging, folder):
    logging.basicConfig(level=logging.DEBUG, format="%(levelname)s:%(name)s:%(message)s")
    speak(logging.getLogger("basic"))
    logging.info("by the module")


@on_both(NATIVE)
def print_then_log_on_one_stream(logging, folder):
    # Log, then print without a flush between them, is the other order: a documented surprise on pipes.
    log, handler = _console(logging, sys.stdout)
    for number in range(200):
        print("printed", number, end="; ")
        log.info("logged %d", number)
        handler.flush()


@on_both(NATIVE)
def log_flush_print_on_one_stream(logging, folder):
    log, handler = _console(logging, sys.stdout)
    for number in range(50):
        log.info("logged %d", number)
        handler.flush()
        print("printed", number, flush=True)


@on_both(NATIVE)
def many_lines_and_a_long_one(logging, folder):
    log, _ = _console(logging)
    for number in range(2000):
        log.info("line %d", number)
    log.info("long %s", "x" * 9000)
    log.info("after")


@on_both(NATIVE)
def text_beyond_ascii(logging, folder):
    log, _ = _console(logging)
    log.info("grüße, мир, 世界, 🎉")
    log.info("tab\there, bell\a, escape \x1b[1mbold\x1b[0m, lines\r\nand\vmore")


@on_both(UNSAID)
def lone_surrogates_take_the_streams_error_handler(logging, folder):
    # stderr is opened with backslashreplace, stdout strictly.
    log, _ = _console(logging)
    log.info("half %s", "\ud800")
    log.removeHandler(log.handlers[0])
    out, _ = _console(logging, sys.stdout)
    out.info("half %s", "\ud800")
    out.info("whole")


@on_both(NATIVE)
def terminator_and_empty_messages(logging, folder):
    log, handler = _console(logging, fmt="%(message)s")
    handler.terminator = ""
    log.info("no end, ")
    handler.terminator = "|\n"
    log.info("")
    log.info("end")


@on_both(NATIVE)
def exceptions(logging, folder):
    log, _ = _console(logging)
    try:
        raise ValueError("on purpose")
    except ValueError:
        log.exception("caught")
    log.info("after")


@on_both(UNSAID)
def bad_arguments(logging, folder):
    log, _ = _console(logging)
    log.info("before")
    log.info("%d", "text")
    log.info("after")


@on_both(UNSAID)
def captured_last_resort(logging, folder):
    log = logging.getLogger("nobody")
    for number in range(20):
        log.warning("number %d", number)
        print("printed", number, file=sys.stderr, flush=True)


@on_both(NATIVE)
def thread_traceback_after_log(logging, folder):
    log, _ = _console(logging)

    def fail():
        for number in range(20):
            log.info("before the traceback %d", number)
        raise ValueError("in a thread")

    thread = threading.Thread(target=fail, name="failing")
    thread.start()
    thread.join()


@on_both(NATIVE)
def two_handlers_on_one_stream(logging, folder):
    log, _ = _console(logging, fmt="first %(message)s")
    _console(logging, fmt="second %(message)s")
    for number in range(100):
        log.info("number %d", number)


@on_both(NATIVE)
def set_stream_to_the_other(logging, folder):
    log, handler = _console(logging, sys.stdout)
    log.info("to stdout")
    old = handler.setStream(sys.stderr)
    log.info("to stderr, before it %s", old.name)
    handler.setStream(sys.stdout)
    log.info("to stdout again")


@on_both(UNSAID)
def streams_made_by_open(logging, folder):
    file = open(folder / "plain.txt", "w", encoding="latin-1", newline="\r\n")
    log, _ = _console(logging, file, fmt="%(message)s")
    log.info("grün")
    log.info("second")
    log.handlers[0].flush()
    file.write("written by the program\n")
    log.info("third")
    log.handlers[0].flush()
    file.close()


@on_both(UNSAID)
def stream_that_is_no_file(logging, folder):
    class Collecting:
        def __init__(self):
            self.parts = []

        def write(self, text):
            self.parts.append(text)

    stream = Collecting()
    log, _ = _console(logging, stream)
    speak(log)
    (folder / "collected.txt").write_text("".join(stream.parts))


@on_both(UNSAID)
def subclass_with_its_own_emit(logging, folder):
    class Shouting(logging.StreamHandler):
        def emit(self, record):
            self.stream.write(f"{record.getMessage().upper()}\n")
            self.flush()

    log = logging.getLogger("shouting")
    log.setLevel(10)
    log.addHandler(Shouting(sys.stdout))
    speak(log)


def _ending(logging, folder, end):
    log, _ = _console(logging)
    for number in range(100):
        log.info("line %d", number)
    end()


def _fail():
    raise SystemError("not caught")


@on_both(UNSAID, isolated=True)
def traceback_of_the_main_thread_comes_last(logging, folder):
    # The driver would catch the exception: print it as the interpreter does at the end.
    try:
        _ending(logging, folder, _fail)
    except SystemError:
        sys.excepthook(*sys.exc_info())


@on_both(NATIVE)
def partial_write_bound_to_print(logging, folder):
    log, handler = _console(logging, sys.stdout)
    say = functools.partial(print, sep="-")
    say("a", "b")
    log.info("after a print")
    handler.flush()
    say("c", "d", flush=True)
