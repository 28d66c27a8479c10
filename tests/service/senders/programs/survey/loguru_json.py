"""loguru: its `serialize=True`, a JSON line for each record over TCP."""

import socket

import common
from loguru import logger

with socket.create_connection((common.HOST, common.TCP)) as connection:
    logger.remove()
    logger.add(lambda line: connection.sendall(line.encode()), serialize=True, level=0)
    named = logger.patch(lambda record: record.update(name="shop.cart"))
    for record in common.RECORDS:
        if record["raises"]:
            try:
                common.fail()
            except ValueError:
                named.opt(exception=True).log(record["level"], record["message"])
        else:
            named.bind(**record["fields"]).log(record["level"], record["message"])
