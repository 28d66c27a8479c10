"""Run CPython's own `test.test_logging` of this interpreter and write the outcome of each test.

Usage: run_test_logging.py RESULT.json. On the installed side `logspool.install()` is called first, as
`python -m logspool run` would. The result has `outcomes` (test id -> passed, failed, skipped) and `texts`
(test id -> traceback of a failure).
"""

import json
import sys
import unittest
from importlib.util import find_spec

from suite import side


class Recording(unittest.TextTestResult):
    """Keeps one word per test; a test with a failing subtest has failed."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.outcomes: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def _record(self, test, outcome, text=""):
        name = test.id().split(" ")[0].replace("__main__.", "")
        if self.outcomes.get(name) != "failed":
            self.outcomes[name] = outcome
        if text:
            self.texts[name] = text

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._record(test, "failed", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._record(test, "failed", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._record(test, "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._record(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._record(test, "failed", "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._record(test, "failed", self._exc_info_to_string(err, test))


def main(path: str) -> None:
    side.install()
    suite = unittest.defaultTestLoader.loadTestsFromName("test.test_logging")
    result = unittest.TextTestRunner(resultclass=Recording, verbosity=2).run(suite)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"outcomes": result.outcomes, "texts": result.texts, "run": result.testsRun}, file)


if __name__ == "__main__":
    if find_spec("test") is None or find_spec("test.test_logging") is None:
        sys.exit(77)
    main(sys.argv[1])
