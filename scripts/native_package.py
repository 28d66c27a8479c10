"""Fill a folder with what C and C++ programs need: headers, libraries, pkg-config and CMake files.

`make native` fills `target/native`. The folder may be moved: its files name each other by relative paths.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

import executables
import terminal

ROOT = Path(__file__).resolve().parent.parent
HEADERS = (ROOT / "crates/logspool-c/include", ROOT / "bindings/cpp")
SONAME = "liblogspool.so.1"

#: Libraries of the system that the static library needs.
SYSTEM_LIBRARIES = "-pthread -ldl -lm"

PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..

Name: logspool
Description: Logging that costs a program nothing and loses nothing
Version: {version}
Cflags: -I${{prefix}}/include
Libs: -L${{prefix}}/lib -llogspool -Wl,-rpath,${{prefix}}/lib
Libs.private: {system}
"""

CMAKE = """\
# logspool::logspool is the shared library, logspool::static the static one.
get_filename_component(_logspool "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)

if(NOT TARGET logspool::logspool)
  add_library(logspool::logspool SHARED IMPORTED)
  set_target_properties(logspool::logspool PROPERTIES
    IMPORTED_LOCATION "${{_logspool}}/lib/{soname}"
    IMPORTED_SONAME "{soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${{_logspool}}/include")
  add_library(logspool::static STATIC IMPORTED)
  set_target_properties(logspool::static PROPERTIES
    IMPORTED_LOCATION "${{_logspool}}/lib/liblogspool.a"
    INTERFACE_INCLUDE_DIRECTORIES "${{_logspool}}/include"
    INTERFACE_LINK_LIBRARIES "{system}")
endif()
unset(_logspool)
"""

CMAKE_VERSION = """\
set(PACKAGE_VERSION "{version}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""


def version() -> str:
    """Return the version of the workspace."""
    return re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]


def build(profile: str) -> Path:
    """Build the libraries and return their folder."""
    options = [] if profile == "dev" else ["--release"] if profile == "release" else ["--profile", profile]
    subprocess.run(executables.cargo_build("logspool-c", "--lib", *options), cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / ("debug" if profile == "dev" else profile)


def fill(folder: Path, built: Path) -> None:
    """Copy headers and libraries, and write the files for pkg-config and CMake."""
    shutil.rmtree(folder, ignore_errors=True)
    for headers in HEADERS:
        shutil.copytree(headers, folder / "include", dirs_exist_ok=True)
    libraries = folder / "lib"
    libraries.mkdir()
    shutil.copy2(built / "liblogspool_c.so", libraries / SONAME)
    shutil.copy2(built / "liblogspool_c.a", libraries / "liblogspool.a")
    (libraries / "liblogspool.so").symlink_to(SONAME)
    strip = shutil.which("strip")
    if strip is None:
        terminal.step("the libraries keep their debug data: strip is missing (apt-get install binutils)")
    else:
        subprocess.run([strip, "--strip-unneeded", libraries / SONAME], check=True)
        subprocess.run([strip, "--strip-debug", libraries / "liblogspool.a"], check=True)
    values = {"version": version(), "system": SYSTEM_LIBRARIES, "soname": SONAME}
    for name, text in {
        "pkgconfig/logspool.pc": PKG_CONFIG,
        "cmake/logspool/logspoolConfig.cmake": CMAKE,
        "cmake/logspool/logspoolConfigVersion.cmake": CMAKE_VERSION,
    }.items():
        (libraries / name).parent.mkdir(parents=True, exist_ok=True)
        (libraries / name).write_text(text.format(**values), encoding="utf-8")


def main() -> None:
    """Build and fill the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "native", help="folder to fill anew")
    parser.add_argument("--profile", default="release", help="cargo's profile: release or dev")
    options = parser.parse_args()
    if options.folder.exists() and not (options.folder / "lib" / SONAME).exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} holds other files: name a new folder")
    fill(options.folder, build(options.profile))
    print(f"{options.folder}: include, lib")
    print(f"    export PKG_CONFIG_PATH={options.folder / 'lib' / 'pkgconfig'}")
    print(f"    cmake -DCMAKE_PREFIX_PATH={options.folder}")


if __name__ == "__main__":
    main()
