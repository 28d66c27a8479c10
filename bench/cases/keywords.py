"""Calls with keywords: fields of `extra`, given at the call and by a LoggerAdapter, stock and installed."""

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from case import CALL, LATENCY, LINE_FORMAT, STOCK_LAYOUT, THROUGHPUT, Case, Session
from cases.installed import installed
from cases.stock import file_handler, with_handler

FIELDS = {"request_id": "r-17", "user": "ann"}
LAYOUT = re.compile(STOCK_LAYOUT.pattern + r" r-17 ann")
EXTRA_CALL = CALL[:-1] + ', extra={"request_id": "r-17", "user": "ann"})'


def _showing_fields(path: Path) -> logging.Handler:
    return file_handler(path, logging.Formatter(LINE_FORMAT + " %(request_id)s %(user)s"))


def _adapted(open_session: Callable[[Path], Session]) -> Callable[[Path], Session]:
    def adapted(path: Path) -> Session:
        session = open_session(path)
        session.log = logging.LoggerAdapter(session.log, FIELDS)
        return session

    return adapted


def _cases() -> Iterator[Case]:
    sides = [
        ("stdlib", "stdlib", with_handler(_showing_fields), ()),
        ("logspool", "logspool, installed", installed(_showing_fields), ("logspool",)),
    ]
    for side, title, opener, needs in sides:
        common = {"group": "keywords", "needs": needs, "layout": LAYOUT, "modes": (THROUGHPUT, LATENCY)}
        yield Case(f"{side}-extra", f"{title}, extra=", open=opener, call=EXTRA_CALL, **common)
        yield Case(f"{side}-adapter", f"{title}, LoggerAdapter", open=_adapted(opener), **common)


CASES = list(_cases())
