"""Recipe for Conan 2: `conan create packaging/conan`. It builds the source tree with cargo and Python 3.10 or later."""

import os
import re
import sys

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load


class LogspoolConan(ConanFile):
    """Headers for C and C++, and the library: shared, or static."""

    name = "logspool"
    description = "Logging that costs a program nothing and loses nothing"
    homepage = "https://github.com/logspool/logspool"
    license = ("MIT", "Apache-2.0")
    topics = ("logging", "crash-safe")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "cargo_profile": ["release", "dev"]}
    default_options = {"shared": False, "cargo_profile": "release"}

    def set_version(self):
        """Take the version of the workspace."""
        manifest = load(self, os.path.join(self._root(), "Cargo.toml"))
        self.version = re.search(r'^version = "(.+)"', manifest, re.MULTILINE)[1]

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def export_sources(self):
        """Export the sources of the libraries."""
        for pattern in ("Cargo.toml", "Cargo.lock", "LICENSE-*", "crates/*", "bindings/cpp/*", "scripts/*.py"):
            copy(self, pattern, src=self._root(), dst=self.export_sources_folder)

    def validate(self):
        """Refuse other systems."""
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("logspool works on Linux on x86_64 and ARM64 only")

    def package_id(self):
        """One library serves all compilers of C++ and all build types: its interface is C."""
        del self.info.settings.compiler
        del self.info.settings.build_type

    def build(self):
        """Fill a folder as `make native` does."""
        script = os.path.join(self.source_folder, "scripts", "native_package.py")
        made = os.path.join(self.build_folder, "native")
        self.run(f'"{sys.executable}" "{script}" --profile {self.options.cargo_profile} --folder "{made}"')

    def package(self):
        """Copy headers and the wanted library."""
        made = os.path.join(self.build_folder, "native")
        copy(self, "LICENSE-*", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        copy(self, "*", src=os.path.join(made, "include"), dst=os.path.join(self.package_folder, "include"))
        pattern = "liblogspool.so*" if self.options.shared else "liblogspool.a"
        copy(self, pattern, src=os.path.join(made, "lib"), dst=os.path.join(self.package_folder, "lib"))

    def package_info(self):
        """Name the library and the libraries of the system that it needs."""
        self.cpp_info.libs = ["logspool"]
        self.cpp_info.set_property("cmake_file_name", "logspool")
        self.cpp_info.set_property("cmake_target_name", "logspool::logspool")
        self.cpp_info.set_property("pkg_config_name", "logspool")
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "dl", "m"]
