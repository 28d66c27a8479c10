"""Reads a file that nobody named and that would rule this program. It must be written by this user or root alone.

The walk begins at the root folder and follows each link, so no folder of the path escapes the check. A folder that
passes can only be changed by this user and root. So the path names the same file until it is open.
"""

from __future__ import annotations

import os
import stat

_MAX_BYTES = 1 << 20

#: Links on one path, as in Linux.
_MAX_LINKS = 40

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


class Refusal(Exception):
    """Why a file is not used.

    Attributes:
        why: the reason.
        fix: the action to take.
    """

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.why, self.fix = why, fix


def content(path: str) -> bytes:
    """Return what a regular file contains. Never waits for a writer, as opening a pipe would.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read.
        Refusal: it is another kind of file, or too large.
    """
    # Before it is open: to open a device may have an effect.
    _check_kind(path, os.stat(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        _check_kind(path, os.fstat(descriptor))
        parts = []
        while part := file.read(_MAX_BYTES + 1):
            parts.append(part)
            if sum(map(len, parts)) > _MAX_BYTES:
                raise Refusal(f"it is longer than {_MAX_BYTES} bytes", "make it shorter, or remove it")
    return b"".join(parts)


def _check_kind(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("it is not a regular file", f"remove {path}")


def trusted_content(path: str) -> bytes:
    """Return what a file contains that only this user and root can have written.

    Raises:
        OSError: as `content`.
        Refusal: as `content`, or another user owns the file, a link or a folder of its path, or may write to it.
    """
    return content(_checked(path))


def _checked(path: str) -> str:
    """Check the file, and each folder and link on the way to it. Return its path without links."""
    current, rest, links = "/", path.split("/")[::-1], 0
    status = os.lstat(current)
    while True:
        while rest and rest[-1] in ("", "."):
            rest.pop()
        _check_owner(current, status)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise Refusal("its path has too many links", f"remove the links of {path}")
            target = os.readlink(current)
            current = "/" if target.startswith("/") else os.path.dirname(current)
            rest.extend(target.split("/")[::-1])
        elif status.st_mode & _WRITABLE and not (status.st_mode & stat.S_ISVTX and len(rest) > 1):
            # In a folder with the sticky bit, others cannot replace the folders and links of this user. Its files
            # may be hard links that others have made.
            who = "every user" if status.st_mode & stat.S_IWOTH else "a group"
            kind = "the folder " if stat.S_ISDIR(status.st_mode) else ""
            raise Refusal(f"{who} may write to {kind}{current}", f"chmod go-w {current}")
        while rest and rest[-1] in ("", "."):
            rest.pop()
        if not rest:
            return current
        name = rest.pop()
        current = os.path.dirname(current) if name == ".." else os.path.join(current, name)
        status = os.lstat(current)


def _check_owner(path: str, status: os.stat_result) -> None:
    if hasattr(os, "geteuid") and status.st_uid not in (os.geteuid(), 0):
        raise Refusal(f"user {status.st_uid} owns {path}", "use a file and folders of this user or of root")
