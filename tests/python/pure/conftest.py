"""A copy of the package without its native module, in the place of the tested one."""

import os
import shutil
from pathlib import Path

import pytest

import logspool
from service.conftest import receiver  # noqa: F401
from suite import package


@pytest.fixture(scope="session")
def pure_package(tmp_path_factory):
    """Give the folder with a copy of the package that has no native module."""
    folder = tmp_path_factory.mktemp("pure")
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(logspool.__file__).parent, folder / "logspool", ignore=ignored)
    return folder


@pytest.fixture
def run_pure(run_program, pure_package):
    """Give a function that runs a program with the copy."""

    def run(text: str, *arguments: str, **variables: str):
        path = os.pathsep.join([str(pure_package), str(package.TESTS)])
        return run_program(text, *arguments, PYTHONPATH=path, **variables)[0]

    return run
