"""Runs CPython's own tests of thread pools with `logspool.pool.Pool` in place of `ThreadPoolExecutor`.

Writes one JSON object to the given path: the number of tests that ran and that were skipped, and the last 300
characters of the report of each test that failed.
"""

import concurrent.futures.thread
import importlib
import json
import sys
import unittest
import warnings

from logspool.pool import Pool

# The modules with these tests; since 3.12 `test_concurrent_futures` is a package.
MODULES = ("test_thread_pool", "test_wait", "test_as_completed", "test_shutdown", "test_init")


def modules():
    found = importlib.import_module("test.test_concurrent_futures")
    if not hasattr(found, "__path__"):
        return [found]
    return [importlib.import_module(f"test.test_concurrent_futures.{name}") for name in MODULES]


def tests(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests(each)
        else:
            yield each


def main() -> None:
    concurrent.futures.ThreadPoolExecutor = concurrent.futures.thread.ThreadPoolExecutor = Pool
    warnings.simplefilter("ignore")
    chosen = unittest.TestSuite()
    for module in modules():
        for test in tests(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if type(test).__name__.startswith("ThreadPool"):
                chosen.addTest(test)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(chosen)
    failed = {test.id().split(".")[-1]: report.strip()[-300:] for test, report in result.failures + result.errors}
    with open(sys.argv[1], "w") as file:
        json.dump({"ran": result.testsRun, "skipped": len(result.skipped), "failed": failed}, file)


if __name__ == "__main__":
    main()
