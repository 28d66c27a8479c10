"""The standard library's SysLogHandler: syslog in datagrams."""

import logging.handlers

import common

common.log_all(logging.handlers.SysLogHandler((common.HOST, common.UDP)))
