"""Builds and runs a program against the package that was just made."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class LogspoolTest(ConanFile):
    """One program."""

    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        """Use the package."""
        self.requires(self.tested_reference_str)

    def layout(self):
        """Build in a folder of its own."""
        cmake_layout(self)

    def build(self):
        """Build it with CMake."""
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        """Run it."""
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "program"), env="conanrun")
