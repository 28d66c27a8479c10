"""Python and the C++ of `shop_native` log into one file, in one order."""

import logging

import shop_native

import logspool

logging.basicConfig(
    filename="shop.log", format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO, force=True
)
logspool.install()
shop_native.open_till("shop.log")

log = logging.getLogger("shop")
log.info("open")
for count, what in enumerate(["apples", "pears"], start=2):
    log.info("a customer wants %s", what)
    shop_native.sell(what, count)
log.info("closed")
