"""Being in a network namespace for a moment: a host may keep its guests' links in one of their own."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from forewarn.errors import Refused

NAMED: Final = "/run/netns"

_NETWORK: Final = 0x40000000
_HERE: Final = "/proc/thread-self/ns/net"


def path_of(namespace: str) -> str:
    """The file that stands for a namespace, which is given by its name or by such a file."""
    return namespace if "/" in namespace else f"{NAMED}/{namespace}"


@contextmanager
def inside(namespace: str | None) -> Iterator[None]:
    """Be in a network namespace, as far as this thread goes; None: stay. Raises: Refused.

    Sockets and programs that are made there stay there.
    """
    if namespace is None:
        yield
        return
    here = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(namespace)
        try:
            yield
        finally:
            _set(here)
    finally:
        os.close(here)


def _enter(namespace: str) -> None:
    path = path_of(namespace)
    try:
        there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(
            f"there is no network namespace {namespace} ({path}: {error.strerror}): make it with "
            f"`ip netns add {namespace}`, or correct the network file"
        ) from error
    try:
        _set(there)
    except OSError as error:
        raise Refused(
            f"cannot enter the network namespace {namespace} ({error.strerror}): that takes root, or "
            "CAP_SYS_ADMIN"
        ) from error
    finally:
        os.close(there)


def _set(descriptor: int) -> None:
    # `os.setns` came with Python 3.12.
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
