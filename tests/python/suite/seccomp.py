"""Lets the kernel refuse one system call to this process and its children, as a container's filter does."""

import ctypes
import errno
import os
import platform
import struct

_NUMBERS = {
    "x86_64": {
        "membarrier": 324,
        "memfd_create": 319,
        "madvise": 28,
        "fcntl": 72,
        "futex": 202,
        "close_range": 436,
        "unshare": 272,
    },
    "aarch64": {
        "membarrier": 283,
        "memfd_create": 279,
        "madvise": 233,
        "fcntl": 25,
        "futex": 98,
        "close_range": 436,
        "unshare": 97,
    },
}

#: By name: the system call, and the argument and the values for which it is refused. Without an argument, every call.
REFUSABLE = {
    "membarrier": ("membarrier", None, ()),
    "memfd_create": ("memfd_create", None, ()),
    "MADV_WIPEONFORK": ("madvise", 2, (18,)),
    "MADV_DONTFORK": ("madvise", 2, (10,)),
    "record locks": ("fcntl", 1, (5, 6, 7)),
    # FUTEX_WAIT and FUTEX_WAKE without FUTEX_PRIVATE_FLAG.
    "shared futex": ("futex", 1, (0, 1)),
    "close_range": ("close_range", None, ()),
    "unshare": ("unshare", None, ()),
}

_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def can_refuse() -> bool:
    """Return whether this module has the call numbers of this machine's processor."""
    return platform.machine() in _NUMBERS


def refuse(what: str, error: int = errno.EPERM) -> None:
    """Let the entry `what` of `REFUSABLE` fail with `error` from now on. Cannot be undone."""
    name, argument, values = REFUSABLE[what]
    number = _NUMBERS[platform.machine()][name]
    # Offsets in seccomp_data: the call's number is at byte 0, the low half of argument n at byte 16 + 8 n.
    program = [(_LOAD_WORD, 0, 0, 0)]
    if argument is None:
        program.append((_JUMP_IF_EQUAL, 0, 1, number))
    else:
        program.append((_JUMP_IF_EQUAL, 0, len(values) + 2, number))
        program.append((_LOAD_WORD, 0, 0, 16 + 8 * argument))
        program += [(_JUMP_IF_EQUAL, len(values) - 1 - at, 0, value) for at, value in enumerate(values[:-1])]
        program.append((_JUMP_IF_EQUAL, 0, 1, values[-1]))
    program += [(_RETURN, 0, 0, _REFUSE | error), (_RETURN, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    text = ctypes.create_string_buffer(code, len(code))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    # The arguments are unsigned longs; without this, ctypes would pass ints.
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(filter_), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), f"cannot refuse {what}: {os.strerror(ctypes.get_errno())}")
