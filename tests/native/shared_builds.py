"""Builds that the workers of one run of pytest share: a program is compiled once, not once by each worker."""

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest


class SharedBuilds:
    """A folder with what was built in this run."""

    def __init__(self, factory: pytest.TempPathFactory):
        """Find the folder: the base folders of all workers are in it."""
        base = factory.getbasetemp()
        self.folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-builds"
        self.folder.mkdir(exist_ok=True)

    def get(self, name: str, key: object, build: Callable[[Path], object]) -> Path:
        """Return the path of a build. Where no worker has made it, `build` makes it there; others wait meanwhile.

        `key`: all that the build depends on. `build` raises an error if it fails.
        """
        path = self.folder / f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
        done = path.with_name(f"{path.name}.done")
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                build(path)
                done.touch()
        return path
