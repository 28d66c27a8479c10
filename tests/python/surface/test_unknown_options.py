"""An option that does not exist is an error that names the nearest one, in every function that has options."""

import pytest

pytestmark = pytest.mark.real

PROGRAM = """\
import logging, os
import logspool
from logspool.pool import Pool

for make in (
    lambda: logspool.install(queue_byte=1),
    lambda: logspool.install("memory"),
    lambda: logspool.StreamHandler(streem=None),
    lambda: logspool.FileHandler("made.log", mod="w"),
    lambda: logspool.FileHandler("made.log", flush_recods=1),
    lambda: logspool.RotatingFileHandler("made.log", maxBytes=10, backupCout=3),
    lambda: logspool.RotatingFileHandler("made.log", compres="gzip"),
    lambda: logspool.TimedRotatingFileHandler("made.log", whn="D"),
    lambda: logspool.ServiceHandler("tcp://127.0.0.1:9", servername="a"),
    lambda: logspool.ThreadHandler(logging.NullHandler(), queue_sise=5),
    lambda: logspool.JSONFormatter(fiels={}),
    lambda: Pool(max_worker=3),
):
    try:
        make()
    except TypeError as error:
        print(error)
print(os.listdir())
"""


def test_an_unknown_option_is_an_error_that_names_the_nearest_and_has_no_effect(run_program):
    told = run_program(PROGRAM)[0].expect_success().out.decode().splitlines()

    assert told == [
        "install() has no option 'queue_byte'; the nearest one is 'queue_bytes'",
        "install() takes options by name, as durability=..., not 'memory'",
        "StreamHandler has no option 'streem'; the nearest one is 'stream'",
        "FileHandler has no option 'mod'; the nearest one is 'mode'",
        "FileHandler has no option 'flush_recods'; the nearest one is 'flush_records'",
        "RotatingFileHandler has no option 'backupCout'; the nearest one is 'backupCount'",
        "RotatingFileHandler has no option 'compres'; the nearest one is 'compress'",
        "TimedRotatingFileHandler has no option 'whn'; the nearest one is 'when'",
        "ServiceHandler has no option 'servername'; the nearest one is 'server_name'",
        "ThreadHandler has no option 'queue_sise'; the nearest one is 'queue_size'",
        "JSONFormatter has no option 'fiels'; the nearest one is 'fields'",
        "Pool has no option 'max_worker'; the nearest one is 'max_workers'",
        "[]",
    ], told
