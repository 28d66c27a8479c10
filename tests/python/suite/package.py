"""Selects the package that the tests import as `logspool`.

`SUITE_PACKAGE` is read once, here:

- unset or `real`: the package installed in the interpreter that runs pytest.
- `pure`: a copy of the package without its native module, which `scripts/pure_tests.py` makes and names in `PURE`;
  `suite/without_core.py` lists what differs there.
- `stand-in`: the folder `stand_in/`, whose `install()` does nothing. Both sides are then stock logging,
  so every comparison must be green; tests that need the real package are skipped with a reason.
- `stand-in:PLANT`: the same with a difference planted on purpose (see `stand_in/logspool/plants.py`);
  `suite_checks/` uses these to show that the suite turns red.
- `stand-in:threaded`: a queue with a thread in plain Python, to run the fault tests of `tests/e2e` without the
  package (`stand_in/logspool/threaded.py` says which tests fail with it).
"""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
STAND_IN = TESTS / "stand_in"

#: The folder with the copy without a native module.
PURE_FOLDER = TESTS.parents[1] / "build" / "pure"

REAL = "real"
STAND_IN_NAME = "stand-in"
PURE = "pure"


def chosen() -> str:
    """Return the package that this run of pytest tests."""
    return os.environ.get("SUITE_PACKAGE", REAL)


def is_real(package: str | None = None) -> bool:
    """Return whether `package` (default: the chosen one) is the built logspool."""
    return (package or chosen()) == REAL


def is_pure() -> bool:
    """Return whether the chosen package has no native module."""
    return chosen() == PURE


def has_a_queue() -> bool:
    """Return whether the chosen package is logspool, or writes output on another thread as it does."""
    return chosen() in (REAL, PURE, f"{STAND_IN_NAME}:threaded")


def environment(package: str) -> dict[str, str]:
    """Return the variables that make a child process import `package` as `logspool`."""
    if is_real(package):
        return {"PYTHONPATH": str(TESTS)}
    if package == PURE:
        return {"PYTHONPATH": os.pathsep.join([str(PURE_FOLDER), str(TESTS)])}
    name, _, plant = package.partition(":")
    if name != STAND_IN_NAME:
        raise ValueError(f"SUITE_PACKAGE is {package!r}, expected 'real', 'pure', 'stand-in' or 'stand-in:PLANT'")
    return {"PYTHONPATH": os.pathsep.join([str(STAND_IN), str(TESTS)]), "SUITE_PLANT": plant}
