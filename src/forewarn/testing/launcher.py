"""Becomes a command, in a network of its own in which 169.254.169.254 is somebody else's socket.

Run as a script, by a bare interpreter, which is all that is quick and certain to be there:
`python -I -S launcher.py DESCRIPTOR COMMAND...`. What it says, over the unix socket of that descriptor:

1. the listening socket, bound in the new network (SCM_RIGHTS); or why there is none;
2. after it was told to go on: nothing, when it has become the command; or why it has not.

Law: the standard library only, one thread (a process with several cannot leave its user namespace), and
the user stays who it was: it is root of nothing once the command runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Final

ADDRESS: Final = "169.254.169.254"
PORT: Final = 80
# The exit status of shells for what cannot be run.
CANNOT_RUN: Final = 127

# linux/sched.h, linux/sockios.h, linux/if.h
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_IFF_UP: Final = 1


def main(descriptor: int, command: list[str]) -> None:
    with socket.socket(fileno=descriptor) as asked_by:
        # It closes when this process becomes the command, and tells of that so.
        asked_by.set_inheritable(inheritable=False)
        try:
            leave()
            raise_loopback()
            listening = listen()
        except OSError as error:
            asked_by.send(str(error).encode())
            sys.exit(CANNOT_RUN)
        socket.send_fds(asked_by, [b"\0"], [listening.fileno()])
        listening.close()
        if not asked_by.recv(1):
            # Whoever wanted this has gone.
            sys.exit(CANNOT_RUN)
        # An interpreter ignores these, and what is ignored stays so in whatever it becomes.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)  # noqa: S606 - the command is the purpose
        except OSError as error:
            asked_by.send(f"{command[0]}: {error.strerror}".encode())
            sys.exit(CANNOT_RUN)


def leave() -> None:
    """Be in a network of our own from now on, under the same names for user and group."""
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    own = Path("/proc/self")
    # Without this nobody but root may say which group is which.
    own.joinpath("setgroups").write_bytes(b"deny")
    own.joinpath("uid_map").write_bytes(b"%d %d 1" % (uid, uid))
    own.joinpath("gid_map").write_bytes(b"%d %d 1" % (gid, gid))


def raise_loopback() -> None:
    """Give the new network its loopback, and that the address of the metadata service as well."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        _configure(any_socket, _SIOCSIFFLAGS, _flags("lo", _flags_of(any_socket, "lo") | _IFF_UP))
        # Another address for the same interface is another name for it.
        _configure(any_socket, _SIOCSIFADDR, _addressed("lo:0", ADDRESS))
        # This address alone, and no others that begin like it.
        _configure(any_socket, _SIOCSIFNETMASK, _addressed("lo:0", "255.255.255.255"))


def listen() -> socket.socket:
    """The metadata service's own address, taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((ADDRESS, PORT))
    return listening


def _flags_of(any_socket: socket.socket, interface: str) -> int:
    found = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, _flags(interface, 0))
    return int(struct.unpack_from("=H", found, 16)[0])


def _configure(any_socket: socket.socket, what: int, request: bytes) -> None:
    fcntl.ioctl(any_socket, what, request)


def _flags(interface: str, flags: int) -> bytes:
    # struct ifreq: the name, then a union of 24 bytes.
    return struct.pack("=16sH22x", interface.encode(), flags)


def _addressed(interface: str, address: str) -> bytes:
    # The union holds a sockaddr_in: family, port, address.
    packed = socket.inet_aton(address)
    return struct.pack("=16sHH4s16x", interface.encode(), socket.AF_INET, 0, packed)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
