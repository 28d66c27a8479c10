"""A disk whose power can be cut and that can be frozen: an ext4 image on a loop device."""

import contextlib
import fcntl
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

#: EXT4_IOC_SHUTDOWN, `_IOR('X', 125, __u32)`, and its flag for "write nothing from now on, not even the journal".
_SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
_NO_LOG_FLUSH = 2

#: FIFREEZE and FITHAW, `_IOWR('X', 119, int)` and `_IOWR('X', 120, int)`.
_FREEZE, _THAW = (3 << 30 | 4 << 16 | ord("X") << 8 | number for number in (119, 120))

_IMAGE_BYTES = 64 * 1024 * 1024
_TOOLS = ("mkfs.ext4", "losetup", "mount", "umount")


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=60)


class Disk:
    """The mounted image."""

    def __init__(self, folder: Path) -> None:
        self._image, self.mount = folder / "disk.img", folder / "disk"
        with self._image.open("wb") as image:
            image.truncate(_IMAGE_BYTES)
        self.mount.mkdir()
        _run("mkfs.ext4", "-q", self._image)

    def plug_in(self) -> None:
        """Mount it. Raises CalledProcessError if this is not allowed."""
        _run("mount", "-o", "loop", self._image, self.mount)

    def cut(self) -> None:
        """Cut the power: from now on no write reaches the disk."""
        self._ask(_SHUTDOWN, _NO_LOG_FLUSH)

    def freeze(self) -> None:
        """Block all writers, as during a snapshot."""
        self._ask(_FREEZE, 0)

    def thaw(self) -> None:
        """Let the waiting writers continue."""
        self._ask(_THAW, 0)

    def _ask(self, request: int, argument: int) -> None:
        folder = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, request, struct.pack("I", argument))
        finally:
            os.close(folder)

    def holds(self, text: bytes) -> bool:
        """Return whether these bytes have reached the disk."""
        with self._image.open("rb") as image, mmap.mmap(image.fileno(), 0, prot=mmap.PROT_READ) as content:
            return content.find(text) >= 0

    def unplug(self) -> None:
        """Unmount it; every process that had files open has ended by now."""
        _run("umount", self.mount)


@contextlib.contextmanager
def disk(folder: Path):
    """Give a mounted disk, or skip the test with the reason."""
    missing = [tool for tool in _TOOLS if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if os.geteuid() != 0:
        pytest.skip("a disk of its own needs root: it mounts a loop device")
    if missing:
        pytest.skip(f"a disk of its own needs {', '.join(missing)}")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    made = Disk(folder)
    try:
        made.plug_in()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a loop device cannot be mounted here: {error.stderr.decode().strip()}")
    try:
        yield made
    finally:
        subprocess.run(["umount", made.mount], capture_output=True)
