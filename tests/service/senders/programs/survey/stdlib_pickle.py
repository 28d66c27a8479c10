"""The standard library's SocketHandler: pickles over TCP."""

import logging.handlers

import common

common.log_all(logging.handlers.SocketHandler(common.HOST, common.TCP))
