"""A small web service that takes orders and logs as such services do.

It knows nothing of logspool; both halves of the demonstration run this file as it is.
"""

import logging
import time
from array import array

from fastapi import FastAPI

log = logging.getLogger("shop.orders")
app = FastAPI()

ITEMS = ("lamp", "chair", "table", "shelf", "rug")

# What one logging call of each request took, so that the demonstration can show it.
call_ns = array("q")


@app.get("/orders/{number}")
async def order(number: int) -> dict[str, object]:
    """Take one order."""
    begin = time.perf_counter()
    item, count = ITEMS[number % len(ITEMS)], 1 + number % 7
    log.info("order %d received: %d x %s", number, count, item)
    log.debug("order %d: customer %r, basket %r", number, number % 97, (item, count))
    if number % 50 == 0:
        log.warning("order %d: %s is running out", number, item)
    price = count * 19.99
    before = time.perf_counter_ns()
    log.info("order %d priced at %.2f %s", number, price, "EUR")
    call_ns.append(time.perf_counter_ns() - before)
    log.info("order %d: stock of %s reserved until %s", number, item, "tomorrow")
    log.info("order %d accepted in %.3f ms", number, (time.perf_counter() - begin) * 1000)
    return {"order": number, "item": item, "count": count, "price": price}


@app.get("/health")
async def health() -> dict[str, str]:
    """Report that the service is up."""
    return {"status": "up"}


@app.get("/call-times")
async def call_times() -> list[int]:
    """Return the durations of the measured logging calls, in nanoseconds."""
    return call_ns.tolist()
