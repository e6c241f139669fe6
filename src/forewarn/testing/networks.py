"""Network namespaces that tests make: a host, and guests at its links. Needs root.

They have no names, and are gone when nobody holds them any more: with the process that made them, at
the latest. So whatever has the address 169.254.169.254 in there, nobody outside is ever asked.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from forewarn.networks.links import ENDPOINT
from forewarn.networks.namespaces import inside

PATH: Final = "/metadata/scheduledevents?api-version=2020-07-01"
NAME_PATH: Final = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
# Somebody who is not answered within this is not answered at all: here everything is near.
NO_ANSWER_SECONDS: Final = 1.5

_NEW_NETWORK: Final = 0x40000000
_SECONDS_MAX: Final = 120

_Result = TypeVar("_Result")


class Namespace:
    """A network namespace of our own."""

    def __init__(self) -> None:
        self._descriptor = _new_network()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it: it ends with the last process that is in there."""
        os.close(self._descriptor)

    @property
    def path(self) -> str:
        """A file that stands for it, as `ip` and `nsenter` want one."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def inside(self) -> Sequence[str]:
        """The command that runs another one in there."""
        return ("nsenter", f"--net={self.path}", "--")

    def run(self, *words: str, told: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in there; it may fail."""
        return subprocess.run(  # noqa: S603 - our own commands
            [*self.inside, *words],
            input=told,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )

    def tell(self, *words: str, told: str = "") -> str:
        """Run a command in there, which must not fail."""
        done = self.run(*words, told=told)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ip(self, *lines: str) -> None:
        """Have `ip` do this, line by line."""
        self.tell("ip", "-batch", "-", told="".join(f"{line}\n" for line in lines))

    def forewarn(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run forewarn's command line in there."""
        return self.run(sys.executable, "-m", "forewarn", *words)

    def do(self, step: Callable[[], _Result]) -> _Result:
        """Take a step in there. Sockets that it makes stay there."""
        with inside(self.path):
            return step()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a guest was told."""

    status: int
    body: bytes


class NamespaceGuest(Namespace):
    """A guest: one card, called eth0, whose other end is a device of the host."""

    def __init__(self, device: str, mac: str, address: str) -> None:
        super().__init__()
        self.device, self.mac, self.address = device, mac, address

    def speak_from(self, address: str, endpoint: str = ENDPOINT) -> None:
        """Have this address and no other, and a way to the endpoint."""
        self.ip(*_addressed(address, endpoint))

    def take_card(self, mac: str) -> None:
        """Speak with another card's address from now on."""
        self.ip("link set eth0 down", f"link set eth0 address {mac}", "link set eth0 up")

    def get(
        self,
        path: str = PATH,
        *,
        endpoint: str = ENDPOINT,
        port: int = 80,
        seconds_max: float = 10,
    ) -> Reply | None:
        """Ask; None if nobody answers."""
        head = f"GET {path} HTTP/1.1\r\nHost: {endpoint}\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        with self.do(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as asking:
            asking.settimeout(seconds_max)
            try:
                asking.connect((endpoint, port))
                asking.sendall(head.encode())
                said = b"".join(iter(lambda: asking.recv(65536), b""))
            except OSError:
                return None
        head_said, _, body = said.partition(b"\r\n\r\n")
        return Reply(int(head_said.split()[1]), body) if head_said else None

    @property
    def name(self) -> str | None:
        """Who the endpoint says that this is; None if it says nothing."""
        reply = self.get(NAME_PATH, seconds_max=NO_ANSWER_SECONDS)
        return None if reply is None else reply.body.decode()


def plug(host: Namespace, *guests: NamespaceGuest) -> None:
    """Give guests their cards, with the other ends on the host."""
    pairs = (f"link add {one.device} type veth peer name eth0 netns {one.path}" for one in guests)
    host.ip(*pairs)
    for one in guests:
        card = f"link set eth0 address {one.mac}"
        one.ip("link set lo up", card, *_addressed(one.address, ENDPOINT))
    host.ip(*(f"link set {one.device} up" for one in guests))


def guest_at(host: Namespace, device: str, mac: str, address: str) -> NamespaceGuest:
    """A guest that is plugged in."""
    guest = NamespaceGuest(device, mac, address)
    plug(host, guest)
    return guest


def _addressed(address: str, endpoint: str) -> tuple[str, ...]:
    return (
        "address flush dev eth0",
        f"address add {address}/32 dev eth0",
        "link set eth0 up",
        f"route replace {endpoint} dev eth0 src {address}",
    )


def _new_network() -> int:
    """A descriptor of a new network namespace."""
    made: list[int] = []

    def make() -> None:
        # This thread alone leaves ours, and ends at once.
        assert ctypes.CDLL(None).unshare(_NEW_NETWORK) == 0, "that takes root"
        made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    maker = threading.Thread(target=make)
    maker.start()
    maker.join()
    assert made, "making network namespaces needs root"
    return made[0]
