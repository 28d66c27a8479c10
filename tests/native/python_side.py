"""The side of Python in programs that also log in C or C++."""

PYTHON_LOGGER = """\
import logging, os, sys

def python_logger():
    import logspool
    logspool.install()
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("python")
    log.setLevel(20)
    log.addHandler(handler)
    return log

"""
