"""Imported by programs under test: the same program runs as `stock` and as `installed`.

On the stock side nothing here imports logspool, so stock means stock.
"""

import os

INSTALLED = os.environ.get("SUITE_SIDE") == "installed"


def install(**options: object) -> None:
    """Call `logspool.install(**options)` on the installed side, nothing on the stock side."""
    if INSTALLED:
        import logspool

        logspool.install(**options)


def uninstall() -> None:
    """Call `logspool.uninstall()` on the installed side."""
    if INSTALLED:
        import logspool

        logspool.uninstall()


def settle(timeout: float = 20.0) -> None:
    """Wait until all records logged before are at their sinks; raise if that takes longer than `timeout` seconds."""
    if INSTALLED:
        import logspool

        if not logspool.flush(timeout):
            raise TimeoutError(f"logspool.flush({timeout}) returned False")
