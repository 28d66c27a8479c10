"""Make ready the programs of others that the tests in tests/e2e use: the emulator of this machine's own processor.

Root on Debian gets the package installed; elsewhere this says why it cannot be had. Tests that use it are skipped then;
with LOGSPOOL_TOOLS=required, as in CI, they fail.
"""

import platform

import service_tools
import terminal


def emulator() -> str:
    """Return the user-mode emulator for programs of this machine."""
    return service_tools.program_of_debian(f"qemu-{platform.machine()}-static", "qemu-user-static")


def main() -> None:
    """Make it ready, or say why it cannot be had."""
    try:
        emulator()
    except service_tools.Missing as missing:
        terminal.note(terminal.paint(f"tests under an emulator are skipped: {missing}", "yellow"))


if __name__ == "__main__":
    main()
