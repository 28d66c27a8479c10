"""structlog: its JSONRenderer, lines over TCP."""

import logging
import socket

import common
import structlog

with socket.create_connection((common.HOST, common.TCP)) as connection:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(connection.makefile("w", buffering=1, encoding="utf-8")),
    )
    log = structlog.get_logger().bind(logger="shop.cart")
    for record in common.RECORDS:
        level = getattr(logging, record["level"])
        if record["raises"]:
            try:
                common.fail()
            except ValueError:
                log.log(level, record["message"], exc_info=True)
        else:
            log.log(level, record["message"], **record["fields"])
