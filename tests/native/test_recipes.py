"""The recipes of packaging: vcpkg's and Conan's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging/vcpkg/ports/logspool"
CONAN = ROOT / "packaging/conan"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

#: vcpkg runs a port with these variables and functions. vcpkg itself is a checkout of its repository.
VCPKG = """\
cmake_minimum_required(VERSION 3.18)
function(vcpkg_execute_required_process)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "WORKING_DIRECTORY;LOGNAME" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}" RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${arg_COMMAND}: ${code}")
  endif()
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/logspool")
endfunction()
set(LOGSPOOL_PROFILE dev)
include("${CURRENT_PORT_DIR}/portfile.cmake")
"""

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(hello LANGUAGES C CXX)
find_package(logspool CONFIG REQUIRED)
add_executable(hello {root}/examples/c/hello.c)
target_link_libraries(hello logspool::logspool)
"""


def run(*command, folder=None):
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_port_has_the_version_of_the_workspace():
    assert json.loads((PORT / "vcpkg.json").read_text())["version"] == VERSION


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is missing: apt-get install cmake")
@pytest.mark.parametrize("linkage", ["dynamic", "static"])
def test_cmake_finds_the_package_of_the_port(tmp_path, linkage):
    (tmp_path / "run.cmake").write_text(VCPKG)
    packages = tmp_path / "packages"
    values = {
        "CURRENT_PORT_DIR": PORT,
        "CURRENT_BUILDTREES_DIR": tmp_path / "trees",
        "CURRENT_PACKAGES_DIR": packages,
        "TARGET_TRIPLET": "x64-linux",
        "VCPKG_LIBRARY_LINKAGE": linkage,
    }
    environment = {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    variables = [f"-D{name}={value}" for name, value in values.items()]
    run("env", *(f"{name}={value}" for name, value in environment.items()), "cmake", *variables, "-P", "run.cmake",
        folder=tmp_path)  # fmt: skip

    shared = ["liblogspool.so", "liblogspool.so.1"] if linkage == "dynamic" else []
    assert ["liblogspool.a", *shared] == sorted(path.name for path in (packages / "lib").glob("liblogspool*"))
    share = {path.name for path in (packages / "share/logspool").iterdir()}
    assert {"logspoolConfig.cmake", "logspoolConfigVersion.cmake", "usage", "LICENSE-MIT", "LICENSE-APACHE"} == share
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS.format(root=ROOT))
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={packages}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build/hello", folder=tmp_path)
    assert (tmp_path / "hello.log").read_text().endswith(" INFO hello start took 1.250 ms\n")
    assert ("liblogspool" in run("ldd", tmp_path / "build/hello")) == (linkage == "dynamic")


def test_the_conan_recipe_uses_the_current_version_and_existing_files(tmp_path):
    """Runs the parts of the recipe that need no Conan, with fakes of its modules."""
    (tmp_path / "conan/tools").mkdir(parents=True)
    (tmp_path / "conan/__init__.py").write_text("class ConanFile:\n    pass\n")
    (tmp_path / "conan/errors.py").write_text("class ConanInvalidConfiguration(Exception):\n    pass\n")
    (tmp_path / "conan/tools/__init__.py").write_text("")
    (tmp_path / "conan/tools/files.py").write_text(
        "from pathlib import Path\n"
        "patterns = []\n"
        "def load(recipe, path):\n    return Path(path).read_text()\n"
        "def copy(recipe, pattern, src, dst):\n    patterns.append((pattern, len(list(Path(src).glob(pattern)))))\n"
    )
    script = (
        "import conanfile, json\n"
        "from conan.tools import files\n"
        "recipe = conanfile.LogspoolConan()\n"
        f"recipe.recipe_folder, recipe.export_sources_folder = {str(CONAN)!r}, '/nonexistent'\n"
        "recipe.set_version()\n"
        "recipe.export_sources()\n"
        "print(json.dumps([recipe.name, recipe.version, files.patterns]))\n"
    )
    environment = [f"PYTHONPATH={tmp_path}:{CONAN}", "PYTHONDONTWRITEBYTECODE=1"]
    name, version, patterns = json.loads(run("env", *environment, sys.executable, "-c", script))

    assert ("logspool", VERSION) == (name, version)
    assert "crates/*" in dict(patterns)
    assert [] == [pattern for pattern, count in patterns if count == 0]


@pytest.mark.skipif(shutil.which("conan") is None, reason="conan is missing: pip install conan")
def test_the_conan_package_works():
    run("conan", "create", CONAN, "-o", "&:cargo_profile=dev", "-s", "compiler.cppstd=20")
