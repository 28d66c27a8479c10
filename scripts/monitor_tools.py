"""Check that the tests find promtool, which checks the alert rules.

Where it is missing and the script runs as root on a system with apt, Debian's package prometheus is installed; its
service is not started. Otherwise the tests say that they are skipped, and with LOGSPOOL_TOOLS=required they fail.
"""

import shutil

import debian
import terminal


def main() -> None:
    """Find promtool; install it if it is missing."""
    if shutil.which("promtool"):
        return
    debian.install("prometheus", "promtool")
    if not shutil.which("promtool"):
        terminal.note("the alert rules are not checked: it needs promtool, of Debian's package prometheus")


if __name__ == "__main__":
    main()
