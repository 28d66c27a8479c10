"""Make ready the programs of others that the tests in tests/e2e use: rsyslog and an emulator.

Root on Debian gets the packages installed; elsewhere this says why not. Tests that use them are skipped then;
with LOGSPOOL_TOOLS=required, as in CI, they fail.
"""

import platform

import service_tools
import terminal


def emulator() -> str:
    """Return the user-mode emulator for programs of this machine."""
    return service_tools.program_of_debian(f"qemu-{platform.machine()}-static", "qemu-user-static")


def main() -> None:
    """Install them, or say why they cannot be installed."""
    for make_ready, tests in (
        (emulator, "tests under an emulator"),
        (service_tools.rsyslogd, "tests of syslog"),
        (service_tools.ossl, "tests of syslog over TLS"),
    ):
        try:
            make_ready()
        except service_tools.Missing as missing:
            terminal.note(terminal.paint(f"{tests} are skipped: {missing}", "yellow"))


if __name__ == "__main__":
    main()
