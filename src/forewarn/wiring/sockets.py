"""The control plane's socket, and how many descriptors there may be."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from forewarn.errors import Refused

CONTROL_BACKLOG: Final = 128


def allow_descriptors() -> None:
    """Have as many descriptors as we may: the usual 1024 would be too few guests."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A bound control socket. Raises: Refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as control:
        control.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            control.bind((host, port))
            # From here on callers wait instead of being refused: nobody is told an address too soon.
            control.listen(CONTROL_BACKLOG)
        except OSError as error:
            raise Refused(
                f"cannot listen on {host}:{port} for --control ({error.strerror}): "
                "choose another address, or port 0 for any free one"
            ) from error
        yield control
