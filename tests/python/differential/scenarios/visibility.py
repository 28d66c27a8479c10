"""When output can be seen: barriers, descriptors, options of files."""

import gc
import io
import os
import shutil
import time

from differential.staging import FULL, NATIVE, STOCK, UNSAID, expect, note, note_file, scenario, speak, to_file, warm


def _lines(log, calls=300):
    for number in range(calls):
        log.info("number %d", number)


@scenario(NATIVE)
def flush_is_exact(logging, folder):
    log, handler = to_file(logging, folder)
    for _ in range(20):
        _lines(log, 50)
        handler.flush()
        note_file("app.log")


@scenario(NATIVE)
def close_is_exact(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log)
    handler.close()
    note_file("app.log")


@scenario(NATIVE)
def remove_handler_is_exact(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log)
    log.removeHandler(handler)
    note_file("app.log")


@scenario(NATIVE)
def shutdown_is_exact_and_logging_goes_on(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log)
    logging.shutdown()
    note_file("app.log")
    note(handler.stream is None)
    with expect(UNSAID):
        log.info("after shutdown")
    handler.flush()
    note_file("app.log")


@scenario(UNSAID)
def direct_emit_and_handle_are_in_order_and_exact_after_a_flush(logging, folder):
    log, handler = to_file(logging, folder)
    for number in range(30):
        _lines(log, 20)
        record = logging.makeLogRecord(
            {"msg": "direct %d", "args": (number,), "levelname": "INFO", "levelno": 20, "name": "direct"}
        )
        handler.emit(record)
        handler.handle(record)
        handler.flush()
        note_file("app.log")
        log.handle(record)


@scenario(NATIVE)
def set_stream_is_exact(logging, folder):
    first, second = open("first.txt", "w"), open("second.txt", "w")
    log = logging.getLogger("streams")
    log.setLevel(10)
    handler = logging.StreamHandler(first)
    log.addHandler(handler)
    _lines(log)
    handler.setStream(second)
    note_file("first.txt")
    _lines(log, 3)
    handler.setStream(first)
    note_file("second.txt")
    first.close()
    second.close()


@scenario(NATIVE)
def same_stream_set_again_returns_none(logging, folder):
    with open("first.txt", "w") as first:
        handler = logging.StreamHandler(first)
        log = logging.getLogger("streams")
        log.setLevel(10)
        log.addHandler(handler)
        log.info("x")
        note(handler.setStream(first))
        handler.flush()


@scenario(NATIVE)
def close_then_log_opens_again(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log, 3)
    handler.close()
    with expect(UNSAID):
        log.info("after close")
    handler.flush()
    note_file("app.log")


@scenario(NATIVE)
def mode_w_closed_and_logged_to_again(logging, folder):
    (folder / "app.log").write_text("old content\n")
    log, handler = to_file(logging, folder, mode="w")
    note_file("app.log")
    _lines(log, 3)
    handler.close()
    with expect(UNSAID):
        log.info("after close")
    handler.flush()
    note_file("app.log")


@scenario(NATIVE)
def mode_a_keeps_what_is_there(logging, folder):
    (folder / "app.log").write_text("old content without an end")
    log, _ = to_file(logging, folder, mode="a")
    speak(log)


@scenario(UNSAID)
def mode_x_fails_on_an_existing_file(logging, folder):
    log, handler = to_file(logging, folder, mode="x")
    log.info("new")
    handler.close()
    try:
        logging.FileHandler(folder / "app.log", mode="x")
    except FileExistsError as error:
        note(type(error).__name__)


@scenario(NATIVE)
def delay_opens_at_the_first_record(logging, folder):
    log, handler = to_file(logging, folder, delay=True)
    note((os.path.exists("app.log"), handler.stream is None))
    with expect(UNSAID):
        log.debug("first")
    log.debug("second")
    handler.flush()
    note((os.path.exists("app.log"), handler.stream is None))


@scenario(NATIVE)
def delay_and_nothing_logged_makes_no_file(logging, folder):
    log, handler = to_file(logging, folder, delay=True, level=logging.ERROR)
    _, _other = to_file(logging, folder, file="other.log")
    log.setLevel(logging.ERROR)
    log.info("too low")
    handler.close()
    log.removeHandler(handler)
    log.error("only in the other file")


@scenario(NATIVE)
def utf_8_by_its_names(logging, folder):
    for encoding in ("utf-8", "UTF8", "utf_8"):
        log, handler = to_file(logging, folder, name=encoding, file=f"{encoding}.log", encoding=encoding)
        log.info("plain")
        handler.close()


@scenario(UNSAID)
def encodings_of_every_kind(logging, folder):
    for encoding in ("utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252", "koi8-r", "shift_jis", "idna", "utf-7"):
        log, handler = to_file(
            logging, folder, name=encoding, file=f"{encoding}.log", encoding=encoding, errors="namereplace"
        )
        for number in range(3):
            log.info("грüße %d 世界", number)
        handler.close()
        log.info("opened again")
        handler.close()


@scenario(UNSAID)
def error_handlers_of_every_kind(logging, folder):
    for errors in (
        "strict",
        "replace",
        "ignore",
        "backslashreplace",
        "xmlcharrefreplace",
        "surrogateescape",
        "surrogatepass",
    ):
        log, _handler = to_file(logging, folder, name=errors, file=f"{errors}.log", encoding="utf-8", errors=errors)
        log.info("before")
        log.info("half \ud800 and %s and grün", "\udc80")
        log.info("after")


@scenario(NATIVE)
def file_truncated_by_somebody_else(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log, 20)
    handler.flush()
    os.truncate("app.log", 0)
    log.info("first after the truncation")


@scenario(NATIVE)
def file_renamed_by_somebody_else(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log, 20)
    handler.flush()
    os.rename("app.log", "renamed.log")
    log.info("still into the renamed one")


@scenario(NATIVE)
def file_removed_by_somebody_else(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log, 20)
    handler.flush()
    os.remove("app.log")
    log.info("into nowhere")
    handler.flush()
    note(os.path.exists("app.log"))


@scenario(NATIVE)
def two_programs_append_in_turn(logging, folder):
    log, handler = to_file(logging, folder)
    for number in range(10):
        log.info("number %d", number)
        handler.flush()
        with open("app.log", "a") as other:
            other.write(f"other program {number}\n")


@scenario(UNSAID)
def stream_written_to_by_the_program(logging, folder):
    log, handler = to_file(logging, folder)
    for number in range(10):
        log.info("number %d", number)
        handler.flush()
        handler.stream.write(f"by hand {number}\n")
        handler.stream.flush()


def _note_descriptors_left(before):
    """Note the number of additional descriptors; the collector and the writers get up to 5 s to close theirs."""
    until = time.monotonic() + 5
    while (left := len(os.listdir("/proc/self/fd")) - before) > 0 and time.monotonic() < until:
        time.sleep(0.005)
    note(left)


@scenario(UNSAID)
def descriptors_are_released(logging, folder):
    log, handler = to_file(logging, folder)
    log.info("the threads have started")
    handler.flush()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        log, handler = to_file(logging, folder, name=f"logger{number}", file=f"{number % 3}.log")
        log.info("number %d", number)
        log.removeHandler(handler)
        handler.close()
    _note_descriptors_left(before)


@scenario(UNSAID)
def descriptors_are_released_with_a_forgotten_handler(logging, folder):
    log, handler = to_file(logging, folder)
    log.info("the threads have started")
    handler.flush()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(10):
        with open(f"{number % 3}.txt", "a") as stream:
            log = logging.getLogger(f"logger{number}")
            log.setLevel(10)
            handler = logging.StreamHandler(stream)
            log.addHandler(handler)
            log.info("number %d", number)
            handler.flush()
            log.removeHandler(handler)
            del handler
    gc.collect()
    _note_descriptors_left(before)


@scenario(NATIVE)
def native_path_outlives_many_handlers_that_come_and_go(logging, folder):
    for number in range(400):
        log, handler = to_file(logging, folder, file=f"{number % 7}.log", fmt=f"{number % 50} %(message)s")
        log.info("number %d", number)
        log.removeHandler(handler)
        handler.close()


@scenario(NATIVE)
def descriptor_number_reused_after_close(logging, folder):
    log, handler = to_file(logging, folder)
    _lines(log, 200)
    number = handler.stream.fileno()
    handler.close()
    log.removeHandler(handler)
    other = os.open("other.txt", os.O_CREAT | os.O_WRONLY)
    note(other == number)
    os.close(other)
    to_file(logging, folder, file="next.log")
    log.info("only here")


@scenario(UNSAID)
def folder_removed_and_made_again(logging, folder):
    (folder / "sub").mkdir()
    log, handler = to_file(logging, folder, file="sub/app.log")
    log.info("first")
    handler.flush()
    shutil.rmtree("sub")
    log.info("into the unlinked file")
    handler.close()
    (folder / "sub").mkdir()
    log.info("into the new one")


@scenario(UNSAID)
def memory_handler_in_front_of_a_file(logging, folder):
    from logging.handlers import MemoryHandler

    target = logging.FileHandler(folder / "target.log")
    target.setFormatter(logging.Formatter(FULL))
    handler = MemoryHandler(5, flushLevel=logging.ERROR, target=target)
    log = logging.getLogger("memory")
    log.setLevel(10)
    log.addHandler(handler)
    for number in range(12):
        log.info("number %d", number)
        # The MemoryHandler calls its target inside a logging call; that alone is no barrier.
        target.flush()
        note_file("target.log")
    log.error("flushes")
    target.flush()
    note_file("target.log")


@scenario(UNSAID)
def queue_handler_and_listener(logging, folder):
    import queue
    from logging.handlers import QueueHandler, QueueListener

    target = logging.FileHandler(folder / "target.log")
    target.setFormatter(logging.Formatter(FULL))
    channel = queue.Queue()
    log = logging.getLogger("queued")
    log.setLevel(10)
    log.addHandler(QueueHandler(channel))
    listener = QueueListener(channel, target)
    listener.start()
    speak(log)
    listener.stop()
    target.flush()
    note_file("target.log")


@scenario(UNSAID)
def handler_used_by_itself(logging, folder):
    handler = logging.FileHandler(folder / "alone.log")
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    for number in range(20):
        note(bool(handler.handle(logging.makeLogRecord({"msg": "alone %d", "args": (number,)}))))
        handler.flush()
        note_file("alone.log")
    handler.setLevel(logging.ERROR)
    handler.handle(logging.makeLogRecord({"msg": "handle does not look at levels"}))
    handler.flush()
    note_file("alone.log")


@scenario(STOCK)
def string_io_is_visible_at_once(logging, folder):
    memory = io.StringIO()
    log = logging.getLogger("memory")
    log.setLevel(10)
    log.addHandler(logging.StreamHandler(memory))
    for number in range(100):
        log.info("number %d", number)
        note(memory.getvalue()[-10:])


@scenario(STOCK)
def bytes_io_behind_a_text_wrapper(logging, folder):
    raw = io.BytesIO()
    log = logging.getLogger("wrapped")
    log.setLevel(10)
    log.addHandler(logging.StreamHandler(io.TextIOWrapper(raw, encoding="utf-16-le", newline="\r\n")))
    log.info("grün %d", 1)
    note(raw.getvalue())


@scenario(UNSAID)
def handlers_that_are_kept_by_name(logging, folder):
    _log, handler = to_file(logging, folder)
    handler.set_name("kept")
    note((handler.get_name(), handler.name, "kept" in logging._handlers))
    handler.close()
    note("kept" in logging._handlers)


@scenario(UNSAID)
def context_of_the_handlers_lock(logging, folder):
    log, handler = to_file(logging, folder)
    warm(log, 10)
    handler.acquire()
    try:
        log.info("the lock is reentrant")
    finally:
        handler.release()
    with handler.lock:
        log.info("also by with")


@scenario(UNSAID)
def is_enabled_for_of_ones_own_is_asked_once_a_call(logging, folder):
    class Asking(logging.Logger):
        def isEnabledFor(self, level):
            note(f"class asked {level}")
            return level != logging.ERROR

        # A second override: the first reason found for the stock path must not hide `isEnabledFor`.
        def _log(self, level, msg, args, **keywords):
            super()._log(level, f"own {msg}", args, **keywords)

    plain, handler = to_file(logging, folder, level=logging.WARNING)
    asking = Asking("asking", logging.CRITICAL)
    asking.addHandler(handler)
    for _ in range(2):
        for log in (plain, asking):
            log.info("info %d", 1)
            log.info("info", extra={"a": 1})
            log.error("error", exc_info=False)
            log.log(25, "log")
        # In the second round this answer contradicts the cached one.
        plain.isEnabledFor = lambda level: note(f"asked {level}") or level <= logging.INFO


@scenario(UNSAID)
def lines_of_a_forgotten_handler_come_before_those_of_the_next_on_its_file(logging, folder):
    log = logging.getLogger("forgotten")
    log.setLevel(10)
    for _turn in range(4):
        handler = logging.FileHandler(folder / "app.log")
        log.addHandler(handler)
        _lines(log, 100)
        log.handlers.clear()
        handler.stream.close()
        del handler


@scenario(UNSAID)
def streams_of_a_forgotten_file_handler_are_closed(logging, folder):
    import warnings
    import weakref

    log, handler = to_file(logging, folder)
    log.info("opened")
    handler.flush()
    stream = weakref.ref(handler.stream)
    log.handlers.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del handler
        gc.collect()
    note(stream() is None)
