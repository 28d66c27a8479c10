"""Time in records. Under a stopped clock all bytes are compared, under a running clock only those without a time."""

import os
import re
import sys
import time
from unittest import mock

from differential.staging import NATIVE, STOCK, UNSAID, expect, note, scenario, to_file, warm

STAMPED = "%(asctime)s %(created)f %(msecs)d %(message)s"
STOPPED = 1_700_000_000.123456


def _without_warm_lines(handler):
    """Close the handler and remove the lines that were stamped by the running clock."""
    handler.close()
    with open(handler.baseFilename, "rb+") as file:
        kept = [line for line in file.read().splitlines(keepends=True) if b"warm" not in line]
        file.seek(0)
        file.truncate()
        file.writelines(kept)


def _stopped():
    return mock.patch.multiple("time", time=lambda: STOPPED, time_ns=lambda: int(STOPPED * 1e9))


@scenario(UNSAID)
def time_patched(logging, folder):
    log, handler = to_file(logging, folder, fmt=STAMPED)
    with expect(NATIVE):
        warm(log)
    with _stopped(), expect(STOCK):
        log.info("stopped %d", 1)
        log.info("stopped %d", 2)
    with expect(NATIVE):
        warm(log, 3)
    _without_warm_lines(handler)


@scenario(UNSAID)
def time_patched_in_the_middle_of_each_pair_of_calls(logging, folder):
    log, handler = to_file(logging, folder, fmt=STAMPED)
    for second in range(100):
        warm(log, 1)
        now = 1_600_000_000 + second / 4
        with mock.patch.multiple("time", time=lambda now=now: now, time_ns=lambda now=now: int(now * 1e9)):
            log.info("second %d", second)
    _without_warm_lines(handler)


@scenario(UNSAID)
def time_module_of_logging_replaced(logging, folder):
    log, handler = to_file(logging, folder, fmt=STAMPED)
    warm(log)
    fake = mock.Mock(wraps=time)
    fake.time.side_effect = None
    fake.time.return_value = STOPPED
    fake.time_ns.side_effect = None
    fake.time_ns.return_value = int(STOPPED * 1e9)
    with mock.patch.object(logging, "time", fake):
        log.info("module replaced")
    warm(log, 3)
    _without_warm_lines(handler)


@scenario(UNSAID, requires=("freezegun",))
def freezegun(logging, folder):
    import freezegun

    log, handler = to_file(logging, folder, fmt="%(asctime)s %(created)f %(msecs)d %(message)s")
    warm(log)
    with freezegun.freeze_time("2012-01-14 03:21:34.567", tz_offset=0) as frozen:
        log.info("frozen %d", 1)
        frozen.tick(61)
        log.info("ticked %d", 2)
    warm(log, 3)
    _without_warm_lines(handler)


@scenario(UNSAID, requires=("time_machine",))
def time_machine(logging, folder):
    # It replaces the C code of `time.time` and others in place, so the objects of the module `time` do not change.
    import time_machine

    log, handler = to_file(logging, folder, fmt="%(asctime)s %(created)f %(msecs)d %(message)s")
    seen = []
    for destination in (0, 1_326_511_294.5):
        with expect(NATIVE):
            warm(log)
        with time_machine.travel(destination, tick=False) as traveller:
            with expect(STOCK):
                log.info("there %d", 1)
            traveller.shift(61)
            log.info("shifted %d", 2)
            handler.handle(logging.LogRecord("own", 20, "path", 1, "made %d", (3,), None))
            handler.addFilter(lambda record: not seen.append(record.created))
            log.info("seen by a filter")
            handler.filters.clear()
        note(abs(logging.makeLogRecord({}).created - time.time()) < 60)
    with expect(NATIVE):
        warm(log, 3)
    note(seen)
    _without_warm_lines(handler)


@scenario(UNSAID)
def localtime_patched(logging, folder):
    # Formatter.converter was bound when the class was made: the patch has no effect, with stock logging or installed.
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.datefmt = "%Y"
    log.info("warm")
    with mock.patch("time.localtime", lambda seconds=None: time.struct_time((1999, 1, 1, 1, 1, 1, 1, 1, 0))):
        log.info("not from 1999")
    handler.flush()
    note("1999" in (folder / "app.log").read_text().split("not from")[0])
    _without_warm_lines(handler)


@scenario(UNSAID)
def strftime_patched(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.default_msec_format = None
    warm(log)
    with mock.patch("time.strftime", lambda fmt, value: f"patched {fmt}"):
        log.info("by the patch")
    warm(log, 3)
    _without_warm_lines(handler)


def _with_zone(name):
    """Set TZ for the process; the caller restores it by a call with None."""
    if name is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = name
    time.tzset()


@scenario(NATIVE)
def time_zone_changed_by_tzset(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.datefmt = "%Z %z"
    try:
        for zone in ("UTC", "XXX-05:45", "YYY+03:30", "UTC", "ZZZ-14"):
            _with_zone(zone)
            for number in range(300):
                log.info("in %s %d", zone, number)
    finally:
        _with_zone(None)


@scenario(UNSAID)
def environment_changed_without_tzset(logging, folder):
    # The C library reads TZ only in tzset(): nothing changes until then.
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.datefmt = "%Z %z"
    try:
        _with_zone("AAA-1")
        log.info("in AAA")
        os.environ["TZ"] = "BBB-2"
        log.info("still whatever stock says")
        time.tzset()
        log.info("in BBB")
    finally:
        _with_zone(None)


@scenario(NATIVE)
def gmtime_as_the_converter(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    handler.formatter.datefmt = "%Z"
    handler.formatter.converter = time.gmtime
    try:
        _with_zone("AAA-9")
        log.info("not in AAA")
        handler.formatter.converter = time.localtime
        log.info("in AAA")
    finally:
        _with_zone(None)


@scenario(NATIVE)
def date_format_of_many_kinds(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s %(message)s")
    for datefmt in ("", "plain", "%%", "%Z%%Y", "grüße %Z", "%Q", "%", "\n%Z\t", "%C", "x" * 300):
        handler.formatter.datefmt = datefmt
        if datefmt:
            log.info("%s", datefmt)


_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d),(\d{3}) (\d+\.\d+) (\d+) (.*)")


@scenario(NATIVE)
def running_clock_agrees_with_itself(logging, folder):
    # asctime, created and msecs of one line are one moment, between the moments before and after the call.
    log, handler = to_file(logging, folder, fmt=STAMPED)
    before = time.time()
    until = time.monotonic() + 1.2  # over the edge of a second
    number = 0
    while time.monotonic() < until:
        log.info("line %d", number)
        number += 1
    after = time.time()
    handler.close()
    wrong = []
    last = before - 0.001
    for line in (folder / "app.log").read_text().splitlines():
        match = _STAMP.fullmatch(line)
        created, msecs = float(match[8]), int(match[9])
        at = time.localtime(created)
        shown = tuple(map(int, match.groups()[:6]))
        near_an_edge = min(created * 1000 % 1, -created * 1000 % 1) < 0.002
        if not near_an_edge and (
            shown != tuple(at)[:6] or int(match[7]) != msecs or msecs != int(created * 1000) % 1000
        ):
            wrong.append(line)
        if not last - 0.001 <= created <= after + 0.001:
            wrong.append(f"not in order: {line}")
        last = created
    note(f"wrong: {wrong[:5]}")
    (folder / "app.log").unlink()


@scenario(NATIVE)
def relative_created_counts_from_the_start_of_the_process(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(relativeCreated)f %(created)f")
    log.info("x")
    handler.close()
    relative, created = map(float, (folder / "app.log").read_text().split())
    start = logging._startTime / (1e9 if sys.version_info >= (3, 13) else 1)
    note(abs((created - start) * 1000 - relative) < 0.01)
    (folder / "app.log").unlink()


@scenario(UNSAID)
def start_time_assigned(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(relativeCreated)d %(message)s")
    warm(log)
    logging._startTime = 0
    log.info("x")
    handler.close()
    relative = int((folder / "app.log").read_text().splitlines()[-1].split()[0])
    note(abs(relative / 1000 - time.time()) < 60)
    (folder / "app.log").unlink()


@scenario(NATIVE)
def default_time_formats_of_an_instance(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(asctime)s|%(message)s")
    _with_zone("AAA-1")
    try:
        for time_format, msec_format in (("%Z", None), ("%Z", "%s#%.0s"), ("at", "%s and%.0s"), ("%%", None)):
            handler.formatter.default_time_format = time_format
            handler.formatter.default_msec_format = msec_format
            log.info("%s", time_format)
    finally:
        _with_zone(None)
