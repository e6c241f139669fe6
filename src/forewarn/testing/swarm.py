"""Many guests, each in a network namespace of its own, that poll the real address once a second.

    python -m forewarn.testing.swarm --guests 200 --seconds 60

Every guest has an event of its own: an answer with another's event, or without one, is wrong. Needs
root.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from forewarn.networks.links import ENDPOINT
from forewarn.testing.networks import PATH, Namespace, NamespaceGuest, plug
from forewarn.testing.processes import ServiceProcess

GUESTS_MAX: Final = 250 * 250
EVERY_SECONDS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 10.0

_REQUEST: Final = (
    f"GET {PATH} HTTP/1.1\r\nHost: {ENDPOINT}\r\nMetadata: true\r\nConnection: close\r\n\r\n"
).encode()


@dataclass(slots=True)
class Tally:
    """What became of all polls."""

    polls: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # How long each answer took, from the first packet to the last.
    seconds: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.wrong

    def percentile(self, share: float) -> float:
        """How many seconds that share of the answers took at most."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.polls} polls, none of them answered"
        millis = [1000 * self.percentile(share) for share in (0.5, 0.99, 1)]
        return (
            f"{self.polls} polls: {sum(self.lost.values())} lost, {len(self.wrong)} wrong; "
            "answers took {:.1f} ms (median), {:.1f} ms (p99), {:.1f} ms (longest)".format(*millis)
        )


def swarm(folder: Path, count: int, seconds: float) -> Tally:
    """Let that many guests poll for so long, each once a second."""
    assert 0 < count <= GUESTS_MAX, "there are no more addresses"
    with ExitStack() as stack:
        host = stack.enter_context(Namespace())
        host.ip("link set lo up")
        guests = [stack.enter_context(_guest(number)) for number in range(count)]
        plug(host, *guests)
        network = folder / "network.toml"
        network.write_text("".join(map(_tap, guests)), encoding="utf-8")
        done = host.forewarn("host", "prepare", str(network))
        assert done.returncode == 0, done.stderr
        service = ServiceProcess(
            folder / "data",
            "".join(map(_scope, guests)),
            *("--network", str(network)),
            inside=tuple(host.inside),
        )
        with service:
            data = ("--data", str(folder / "data"))
            names = [guest.device for guest in guests]
            done = host.forewarn("announce", "Freeze", *names, "--notice", "1d", *data)
            assert done.returncode == 0, done.stderr
            return asyncio.run(_poll_all(guests, seconds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, say what became of it, and fail if an answer was lost or wrong."""
    parser = argparse.ArgumentParser(prog="python -m forewarn.testing.swarm", description=__doc__)
    parser.add_argument("--guests", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        tally = swarm(Path(folder), told.guests, told.seconds)
    lines = [f"{told.guests} guests: {tally}"]
    lines += [f"lost: {count} of {reason}" for reason, count in tally.lost.most_common()]
    lines += [f"wrong: {one}" for one in tally.wrong[:10]]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if tally.is_clean else 1


async def _poll_all(guests: Sequence[NamespaceGuest], seconds: float) -> Tally:
    tally = Tally()
    loop = asyncio.get_running_loop()
    begin = loop.time() + EVERY_SECONDS

    async def live(guest: NamespaceGuest, offset: float) -> None:
        for number in range(int(seconds / EVERY_SECONDS)):
            # Like clocks, not like waits: whoever is answered late asks no less often.
            due = begin + offset + number * EVERY_SECONDS
            await asyncio.sleep(due - loop.time())
            await _poll(guest, tally)

    offsets = (EVERY_SECONDS * number / len(guests) for number in range(len(guests)))
    lives = (live(guest, offset) for guest, offset in zip(guests, offsets, strict=True))
    await asyncio.gather(*lives)
    return tally


async def _poll(guest: NamespaceGuest, tally: Tally) -> None:
    loop = asyncio.get_running_loop()
    tally.polls += 1
    begin = loop.time()
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            said = await _ask(guest)
    except OSError as error:
        tally.lost[type(error).__name__] += 1
        return
    tally.seconds.append(loop.time() - begin)
    head, _, body = said.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or _named(body) != [[guest.device]]:
        tally.wrong.append(f"{guest.device} was told {said!r}")


async def _ask(guest: NamespaceGuest) -> bytes:
    loop = asyncio.get_running_loop()
    kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    with guest.do(lambda: socket.socket(socket.AF_INET, kind)) as asking:
        await loop.sock_connect(asking, (ENDPOINT, 80))
        await loop.sock_sendall(asking, _REQUEST)
        said = b""
        while part := await loop.sock_recv(asking, 65536):
            said += part
        return said


def _named(body: bytes) -> list[list[str]]:
    """Whom the events of a document concern."""
    return [event["Resources"] for event in json.loads(body)["Events"]]


def _guest(number: int) -> NamespaceGuest:
    high, low = divmod(number, 250)
    return NamespaceGuest(
        f"vm-{number}", f"52:54:00:78:{high:02x}:{low:02x}", f"10.78.{high}.{low + 1}"
    )


def _tap(guest: NamespaceGuest) -> str:
    return f'[[tap]]\ndevice = "{guest.device}"\nmac = "{guest.mac}"\naddress = "{guest.address}"\n'


def _scope(guest: NamespaceGuest) -> str:
    return (
        f'[[scope]]\nname = "{guest.device}"\nenabled = "always"\n'
        f'  [[scope.machine]]\n  name = "{guest.device}"\n  address = "{guest.address}"\n'
    )


if __name__ == "__main__":
    sys.exit(main())
