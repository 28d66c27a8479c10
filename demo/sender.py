"""A program that logs to a service: with an unchanged handler of the standard library, or with logspool installed.

python sender.py stdlib|logspool HOST PORT RECORDS NUMBER
"""

import logging
import logging.handlers
import random
import sys

LEVELS = [logging.DEBUG, logging.INFO, logging.INFO, logging.INFO, logging.WARNING, logging.ERROR]


def main() -> None:
    """Log the given number of records about orders of a shop."""
    kind, host, port, records, number = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    if kind == "logspool":
        import logspool

        handler: logging.Handler = logspool.ServiceHandler(f"tcp://{host}:{port}", shutdown_timeout=60)
        logging.basicConfig(level=logging.DEBUG, handlers=[handler])
        logspool.install(shutdown_timeout=60)
    else:
        logging.basicConfig(level=logging.DEBUG, handlers=[logging.handlers.SocketHandler(host, port)])
    logger = logging.getLogger(("shop.cart", "shop.payment", "shop.stock")[number % 3])
    chance = random.Random(number)
    for place in range(records):
        order = number * records + place
        level = chance.choice(LEVELS)
        extra = {"order": order, "customer": chance.randrange(1000)}
        if level == logging.ERROR:
            logger.error("order %d: payment refused by bank %d", order, chance.randrange(9), extra=extra)
        else:
            logger.log(level, "order %d took %.3f ms", order, chance.expovariate(0.2), extra=extra)


if __name__ == "__main__":
    main()
