"""A private queue folder (L0) for each test, on tmpfs where there is one."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def private() -> Iterator[Path]:
    """Yield an empty folder of mode 0700 for `LOGSPOOL_QUEUE_DIR`, removed afterwards."""
    parent = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="logspool-test-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def left_in(folder: Path) -> list[str]:
    """Return the files left in a queue folder, as relative names with their sizes; folders do not count."""
    left = []
    for path in folder.rglob("*"):
        # A process that still works may remove it meanwhile.
        with suppress(FileNotFoundError):
            if not path.is_dir():
                left.append(f"{path.relative_to(folder)} ({path.lstat().st_size} bytes)")
    return sorted(left)
