"""Starts a program to which the kernel names no socket owners: `without_socket_owners.py PROGRAM ARGUMENT...`.

A seccomp(2) filter makes socket(AF_NETLINK, ..., NETLINK_SOCK_DIAG) fail, as on systems without that protocol.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

_NETLINK_SOCK_DIAG = 4
_SOCKET_CALL = {"x86_64": 41, "aarch64": 198}[platform.machine()]

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 22, 38, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EPROTONOSUPPORT
# Offsets in struct seccomp_data: the system call's number, its first argument, its third argument.
_NUMBER, _FAMILY, _PROTOCOL = 0, 16, 32


def _instruction(code: int, value: int, skip_if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, 0, skip_if_not, value)


_PROGRAM = b"".join(
    [
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_IF_EQUAL, _SOCKET_CALL, 5),
        _instruction(_LOAD, _FAMILY),
        _instruction(_JUMP_IF_EQUAL, socket.AF_NETLINK, 3),
        _instruction(_LOAD, _PROTOCOL),
        _instruction(_JUMP_IF_EQUAL, _NETLINK_SOCK_DIAG, 1),
        _instruction(_RETURN, _FAIL),
        _instruction(_RETURN, _ALLOW),
    ]
)


def main() -> None:
    """Installs the filter and executes the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(_PROGRAM, len(_PROGRAM))
    program = struct.pack("HxxxxxxP", len(_PROGRAM) // 8, ctypes.addressof(code))
    for option, argument, more in (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0)),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.c_char_p(program)),
    ):
        if libc.prctl(option, argument, more, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option})")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
