"""Parts for tests of the libvirt fabric: hosts of libvirt's own test driver, and who counts what is felt.

A pretended host is in this process and on no disk; it has a file of its own, and so shares nothing with
another test's. It does everything that needs no machine: it starts, pauses, stops and forgets domains,
and tells of it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import libvirt

from forewarn.clocks import SystemClock
from forewarn.core.events import EventType
from forewarn.core.orders import Order, Progress
from forewarn.core.scopes import Enabling
from forewarn.errors import Unavailable
from forewarn.fabrics.libvirt.descriptions import NAMESPACE
from forewarn.fabrics.libvirt.dockets import Dockets
from forewarn.fabrics.libvirt.fabric import LibvirtFabric
from forewarn.fabrics.libvirt.link import Link
from forewarn.fabrics.libvirt.pursuits import Patience
from forewarn.ports.fabric import Fabric

# Quick enough for tests, and still in the same proportions.
HASTE: Final = Patience(
    stop=timedelta(seconds=1),
    look=timedelta(milliseconds=20),
    again=timedelta(milliseconds=50),
    survey=timedelta(milliseconds=500),
)
# Within which a host tells what happened there.
TOLD_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 60.0

_STARTED: Final = libvirt.VIR_DOMAIN_EVENT_STARTED
_STOPPED: Final = libvirt.VIR_DOMAIN_EVENT_STOPPED
# By which of libvirt's events an impact shows, once for each time that it is felt.
FELT_BY: Final = {
    EventType.FREEZE: libvirt.VIR_DOMAIN_EVENT_SUSPENDED,
    EventType.REBOOT: _STARTED,
    EventType.REDEPLOY: _STARTED,
    EventType.PREEMPT: _STOPPED,
    EventType.TERMINATE: _STOPPED,
    EventType.POWER_OFF: _STOPPED,
    EventType.START: _STARTED,
    EventType.DEALLOCATE: _STOPPED,
    EventType.REIMAGE: _STARTED,
}


def uuid_of(name: str) -> str:
    """The same id for the same name, always."""
    return str(uuid5(NAMESPACE_URL, f"forewarn:test:{name}"))


def ours(attributes: str = "", content: str = "") -> str:
    """Our element, as it lies in a domain's metadata."""
    return (
        f"<metadata><forewarn:machine xmlns:forewarn='{NAMESPACE}' {attributes}>{content}"
        "</forewarn:machine></metadata>"
    )


def domain_xml(
    name: str, *, metadata: str = "", devices: str = "", kind: str = "test", mebibytes: int = 64
) -> str:
    """A domain that asks for little."""
    return (
        f"<domain type='{kind}'><name>{name}</name><uuid>{uuid_of(name)}</uuid>"
        f"<memory unit='MiB'>{mebibytes}</memory><vcpu>1</vcpu>{metadata}"
        f"<os><type>hvm</type></os><devices>{devices}</devices></domain>"
    )


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something that others do. Raises: AssertionError."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)  # noqa: TID251 - what is waited for happens in real time


class Feelings:
    """Counts what happened to domains, as their hosts tell it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()

    def attach(self, connection: Any) -> None:  # noqa: ANN401 - libvirt has no types
        """Listen to a host."""
        # The older way: the newer one lets only one listen on a connection, and that is the fabric.
        connection.domainEventRegister(self._hear, None)

    def count(self, machine: str, event: int) -> int:
        with self._lock:
            return self._counts[machine, event]

    def impacts(self, _: Fabric, order: Order) -> int:
        """How often a machine felt what an order is about, for the contract."""
        # It is told a moment after it happened.
        until = time.monotonic() + TOLD_SECONDS
        while time.monotonic() < until and not self.count(order.machine, FELT_BY[order.impact]):
            time.sleep(0.01)  # noqa: TID251 - what is waited for happens in real time
        return self.count(order.machine, FELT_BY[order.impact])

    def _hear(self, _connection: object, domain: Any, event: int, *_: object) -> None:  # noqa: ANN401
        with self._lock:
            self._counts[domain.name(), event] += 1


class PretendedHost:
    """A host of libvirt's test driver, with some domains that run."""

    def __init__(self, directory: Path, name: str, *content: str, uri: str = "") -> None:
        """Besides domains, the content may have storage pools; `uri` is what it is called by."""
        self.name = name
        file = directory / f"{name}.xml"
        file.write_text(f"<node>{''.join(content)}</node>", encoding="utf-8")
        self.link = Link(uri or f"test://{file}", name, open_connection=self._open)
        self.connection = libvirt.open(f"test://{file}")
        self._is_away = False

    def names(self) -> list[str]:
        """The domains that run."""
        return sorted(domain.name() for domain in self.connection.listAllDomains(1))

    def domain(self, name: str) -> Any:  # noqa: ANN401 - libvirt has no types
        return self.connection.lookupByName(name)

    def go_away(self) -> None:
        """Be out of reach for whoever connects from now on."""
        self._is_away = True

    def come_back(self) -> None:
        self._is_away = False

    def _open(self, _: str) -> Any:  # noqa: ANN401 - libvirt has no types
        # Two connections to one file would be two hosts.
        if self._is_away:
            return libvirt.open(f"test+unix:///default?socket=/nonexistent/{self.name}")
        return self.connection


class Threads:
    """Runs what a fabric wants to have run, and remembers what went wrong there."""

    def __init__(self) -> None:
        self.crashes: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all of them. Raises: AssertionError."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), f"{thread.name} did not end"
        assert not self.crashes, self.crashes

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told in join
            self.crashes.append(error)


class Fabrics:
    """Makes fabrics over the same dockets, one after the other as after a restart."""

    def __init__(self, directory: Path, links: Sequence[Link], patience: Patience = HASTE) -> None:
        self._directory = directory
        self._links = links
        self._patience = patience
        self._running: list[tuple[LibvirtFabric, Threads]] = []

    def start(self, *, looks: bool = True) -> LibvirtFabric:
        """A fabric at work; with `looks`, one that has seen its hosts."""
        threads = Threads()
        fabric = LibvirtFabric(
            self._links,
            Dockets(self._directory),
            SystemClock(),
            spawn=threads.spawn,
            enabling=Enabling.ALWAYS,
            patience=self._patience,
        )
        fabric.start()
        self._running.append((fabric, threads))
        if looks:
            wait_until(lambda: fabric.has_seen_all)
        return fabric

    def stop(self) -> None:
        """End the last one, as a process ends: whatever is under way stays where it is."""
        fabric, threads = self._running.pop()
        fabric.stop()
        threads.join()

    def close(self) -> None:
        while self._running:
            self.stop()


def wait_until_over(fabric: Fabric, order: Order) -> None:
    """Let time pass until an order is over; a moment, if it was never begun."""
    with suppress(Unavailable):
        if fabric.observe(order).progress is Progress.UNKNOWN:
            time.sleep(0.3)  # noqa: TID251 - as above
            return
    wait_until(lambda: is_over(fabric, order))


def is_over(fabric: Fabric, order: Order) -> bool:
    """Whether an order has come to its end, as far as the fabric can tell at the moment."""
    try:
        return fabric.observe(order).progress in (Progress.DONE, Progress.FAILED)
    except Unavailable:
        return False
