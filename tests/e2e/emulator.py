"""The user-mode emulator of this machine's processor; it answers some system calls differently from the kernel."""

import platform
import shutil

from suite import tools


def command() -> tuple[str, ...]:
    """Return the command that runs a program under the emulator, or skip the test; fail it where all are required."""
    name = f"qemu-{platform.machine()}-static"
    if program := shutil.which(name):
        return (program,)
    tools.missing(f"there is no program {name} on the PATH (in Debian's package qemu-user-static)")
