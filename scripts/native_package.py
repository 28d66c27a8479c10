"""Fill a folder with what C and C++ programs need: headers, libraries, pkg-config and CMake files.

`make native` fills `target/native`. The folder may be moved: its files name each other by relative paths.
`make native NATIVE="--target x86_64-unknown-linux-musl"` fills a folder with the static library for musl, where a
program needs no library of the system at all.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
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
Libs: {libraries}
Libs.private: {system}
"""
#: For a program that links the static library: `pkg-config --libs logspool-static`.
PKG_CONFIG_STATIC = """\
prefix=${{pcfiledir}}/../..

Name: logspool-static
Description: Logging that costs a program nothing and loses nothing; the static library
Version: {version}
Cflags: -I${{prefix}}/include
Libs: ${{prefix}}/lib/liblogspool.a {system}
"""
#: Link options of a program: for the shared library, and for the static library, the only library for musl.
SHARED_LIBRARIES = "-L${prefix}/lib -llogspool -Wl,-rpath,${prefix}/lib"
STATIC_LIBRARIES = "${prefix}/lib/liblogspool.a"

CMAKE = """\
# logspool::logspool is the shared library, logspool::static the static one.
get_filename_component(_logspool "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)

if(NOT TARGET logspool::static)
{shared}  add_library(logspool::static STATIC IMPORTED)
  set_target_properties(logspool::static PROPERTIES
    IMPORTED_LOCATION "${{_logspool}}/lib/liblogspool.a"
    INTERFACE_INCLUDE_DIRECTORIES "${{_logspool}}/include"
    INTERFACE_LINK_LIBRARIES "{system}")
endif()
unset(_logspool)
"""
CMAKE_SHARED = f"""\
  add_library(logspool::logspool SHARED IMPORTED)
  set_target_properties(logspool::logspool PROPERTIES
    IMPORTED_LOCATION "${{_logspool}}/lib/{SONAME}"
    IMPORTED_SONAME "{SONAME}"
    INTERFACE_INCLUDE_DIRECTORIES "${{_logspool}}/include")
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


def build(profile: str, target: str | None, features: str) -> Path:
    """Build the libraries and return their folder."""
    options = [] if profile == "dev" else ["--release"] if profile == "release" else ["--profile", profile]
    if target is not None:
        options += ["--target", target]
    if features:
        options += ["--features", features]
    subprocess.run(executables.cargo_build("logspool-c", "--lib", *options), cwd=ROOT, check=True)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / (target or "")
    return folder / ("debug" if profile == "dev" else profile)


def rust_libraries(target: str) -> Path:
    """Return the folder of Rust's own libraries for a target, whether it exists or not."""
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    return Path(root) / "lib/rustlib" / target / "lib"


def missing(target: str) -> str | None:
    """Return the missing requirement of a build for another target, with its remedy; None: nothing is missing."""
    if not rust_libraries(target).is_dir():
        return f"Rust has no standard library for {target}: rustup target add {target}"
    if "musl" in target and shutil.which("musl-gcc") is None:
        return "musl-gcc is missing: apt-get install musl-tools"
    return None


def add_unwinder(archive: Path, target: str) -> None:
    """Add the unwinder that Rust has for musl. gcc's unwinder calls functions of glibc."""
    unwinder = rust_libraries(target) / "self-contained/libunwind.a"
    with tempfile.TemporaryDirectory() as name:
        # The script of ar allows few characters in paths.
        for link, to in {"core.a": archive, "unwind.a": unwinder}.items():
            (Path(name) / link).symlink_to(to.absolute())
        script = "create all.a\naddlib core.a\naddlib unwind.a\nsave\nend\n"
        subprocess.run(["ar", "-M"], cwd=name, input=script, text=True, check=True)
        shutil.copyfile(Path(name) / "all.a", archive)


def fill(folder: Path, built: Path, target: str | None) -> None:
    """Copy headers and libraries, and write the files for pkg-config and CMake."""
    is_musl = target is not None and "musl" in target
    shutil.rmtree(folder, ignore_errors=True)
    for headers in HEADERS:
        shutil.copytree(headers, folder / "include", dirs_exist_ok=True)
    libraries = folder / "lib"
    libraries.mkdir()
    shutil.copy2(built / "liblogspool_c.a", libraries / "liblogspool.a")
    if is_musl:
        add_unwinder(libraries / "liblogspool.a", target)
    else:
        shutil.copy2(built / "liblogspool_c.so", libraries / SONAME)
        (libraries / "liblogspool.so").symlink_to(SONAME)
    strip = shutil.which("strip")
    if strip is None:
        terminal.step("the libraries keep their debug data: strip is missing (apt-get install binutils)")
    else:
        subprocess.run([strip, "--strip-debug", libraries / "liblogspool.a"], check=True)
        if not is_musl:
            subprocess.run([strip, "--strip-unneeded", libraries / SONAME], check=True)
    values = {
        "version": version(),
        "system": SYSTEM_LIBRARIES,
        "libraries": STATIC_LIBRARIES if is_musl else SHARED_LIBRARIES,
        "shared": "" if is_musl else CMAKE_SHARED,
    }
    for name, text in {
        "pkgconfig/logspool.pc": PKG_CONFIG,
        "pkgconfig/logspool-static.pc": PKG_CONFIG_STATIC,
        "cmake/logspool/logspoolConfig.cmake": CMAKE,
        "cmake/logspool/logspoolConfigVersion.cmake": CMAKE_VERSION,
    }.items():
        (libraries / name).parent.mkdir(parents=True, exist_ok=True)
        (libraries / name).write_text(text.format(**values), encoding="utf-8")


def main() -> None:
    """Build and fill the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder to fill anew; default: target/native or target/native-musl")
    parser.add_argument("--target", help="target of Rust, for example x86_64-unknown-linux-musl")
    parser.add_argument("--profile", default="release", help="cargo's profile: release or dev")
    parser.add_argument("--features", default="", help="features of cargo, for example sqlite,http")
    options = parser.parse_args()
    if options.folder is None:
        options.folder = ROOT / "target" / ("native-musl" if "musl" in (options.target or "") else "native")
    is_ours = (options.folder / "lib" / "liblogspool.a").exists()
    if options.folder.exists() and not is_ours and any(options.folder.iterdir()):
        parser.error(f"{options.folder} holds other files: name a new folder")
    if options.target is not None and (lack := missing(options.target)) is not None:
        raise terminal.fail(lack)
    fill(options.folder, build(options.profile, options.target, options.features), options.target)
    print(f"{options.folder}: include, lib")
    print(f"    export PKG_CONFIG_PATH={options.folder / 'lib' / 'pkgconfig'}")
    print(f"    cmake -DCMAKE_PREFIX_PATH={options.folder}")


if __name__ == "__main__":
    main()
