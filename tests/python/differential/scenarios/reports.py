"""What stderr gets when a record cannot be formatted or written: the same text, the caller's stack included."""

# ruff: noqa: PLE1205, PLE1206

import sys

from differential.staging import FULL, STOCK, UNSAID, note, scenario, to_file, warm


@scenario(STOCK)
def too_few_arguments(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%s %s", "one")


@scenario(STOCK)
def too_many_arguments(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%s", "one", "two")


@scenario(STOCK)
def arguments_without_a_directive(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("none wanted", 1)


@scenario(STOCK)
def wrong_type(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%d", "text")
    log.info("%c", "two")
    log.info("%x", 1.5)
    log.info("%f", None)


@scenario(STOCK)
def unsupported_and_incomplete_directives(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%y", 1)
    log.info("100%", 1)
    log.info("%", 1)
    log.info("%(key", {"key": 1})


@scenario(STOCK)
def missing_key(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%(here)s %(gone)s", {"here": 1})
    log.info("%(key)s", "no dict")


@scenario(STOCK)
def star_width_without_an_integer(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%*d", "wide", 1)
    log.info("%.*f", 1.5, 2.0)


def _inner(log):
    log.warning("%d items", "many")


def _outer(log):
    _inner(log)


@scenario(STOCK)
def callers_stack_stands_in_the_report(logging, folder):
    log, _ = to_file(logging, folder)

    class Some:
        def method(self):
            _outer(log)

    Some().method()


@scenario(UNSAID)
def bad_call_after_a_thousand_good_ones_from_the_same_line(logging, folder):
    log, _ = to_file(logging, folder, fmt=FULL)
    for number in [*range(1000), "bad", 1001]:
        log.info("number %d", number)


@scenario(UNSAID)
def reports_keep_their_place_among_good_records(logging, folder):
    log, _ = to_file(logging, folder)
    for number in range(20):
        log.info("good %d", number)
        log.info("bad %d", None)


@scenario(STOCK)
def every_handler_reports(logging, folder):
    log, _ = to_file(logging, folder)
    to_file(logging, folder, file="second.log")
    log.error("%d", "text")


@scenario(UNSAID)
def format_field_that_no_record_has(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(nowhere)s %(message)s")
    log.info("x %d", 1)
    log.info("with it", extra={"nowhere": "here"})


@scenario(UNSAID)
def format_with_a_wrong_type(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(logging.Formatter("%(message)d", validate=False))
    log.info("x")


@scenario(UNSAID)
def text_that_the_encoding_cannot_take(logging, folder):
    log, _ = to_file(logging, folder, encoding="ascii")
    log.info("fine")
    log.info("grün")
    log.info("fine again")


@scenario(UNSAID)
def lone_surrogate_in_utf8(logging, folder):
    log, _ = to_file(logging, folder, encoding="utf-8")
    log.info("before")
    log.info("half \ud800 pair %s", "\udfff")
    log.info("after")


@scenario(UNSAID)
def closed_stream(logging, folder):
    log, handler = to_file(logging, folder)
    log.info("open")
    handler.flush()
    handler.stream.close()
    log.info("closed")
    log.info("closed again")


@scenario(UNSAID)
def directory_gone_before_a_delayed_open(logging, folder):
    (folder / "sub").mkdir()
    handler = logging.FileHandler(folder / "sub" / "app.log", delay=True)
    log = logging.getLogger("delayed")
    log.setLevel(10)
    log.addHandler(handler)
    (folder / "sub").rmdir()
    try:
        log.info("nowhere to go")
    except FileNotFoundError as error:
        note(type(error).__name__)
    (folder / "sub").mkdir()
    log.info("somewhere")


@scenario(UNSAID)
def raise_exceptions_decides(logging, folder):
    log, _ = to_file(logging, folder)
    warm(log, 50)
    for value in (True, False, True):
        logging.raiseExceptions = value
        log.info("%d", "text")


@scenario(UNSAID)
def standard_error_is_none(logging, folder):
    log, _ = to_file(logging, folder)
    err, sys.stderr = sys.stderr, None
    try:
        log.info("%d", "text")
        log.info("good")
    finally:
        sys.stderr = err


@scenario(STOCK)
def arguments_with_a_broken_repr(logging, folder):
    log, _ = to_file(logging, folder)

    class Broken:
        def __repr__(self):
            raise ValueError("no repr")

    log.info("%d", Broken())
    log.info("%d %d", 1, [Broken()])


@scenario(STOCK)
def report_from_module_functions_and_adapters(logging, folder):
    log, _ = to_file(logging, folder, name=None)
    logging.info("%d", "text")
    logging.LoggerAdapter(log, {}).error("%d", "text")
    log.exception("%d", "text")


@scenario(UNSAID)
def report_stands_after_what_was_logged_to_standard_error(logging, folder):
    log = logging.getLogger("errors")
    log.setLevel(10)
    log.addHandler(logging.StreamHandler())
    broken, _ = to_file(logging, folder, name="broken")
    for number in range(20):
        for inner in range(20):
            log.info("good %d %d", number, inner)
        broken.info("%d", "text")


@scenario(UNSAID)
def last_resort_stands_after_what_was_logged_to_standard_error(logging, folder):
    log = logging.getLogger("errors")
    log.setLevel(10)
    log.propagate = False
    log.addHandler(logging.StreamHandler())
    for number in range(20):
        for inner in range(20):
            log.info("good %d %d", number, inner)
        logging.getLogger("nobody").warning("last resort %d", number)


@scenario(UNSAID)
def report_with_standard_error_that_is_no_file(logging, folder):
    from unittest import mock

    log, _ = to_file(logging, folder)
    with mock.patch("sys.stderr") as stderr:
        log.info("%d", "text")
    note([call for call in stderr.mock_calls if "fileno" in str(call)])
