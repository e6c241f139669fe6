"""Listening on a host's links: each device of the network file has listeners of its own.

Devices come and go with machines, and a listener belongs to the device it was made on, not to its
name. So they are looked at again every few seconds: whichever is new gets its listeners, and what
was on one that is gone is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forewarn.config.networks import load_network
from forewarn.errors import ForewarnError, Refused
from forewarn.identities.addresses import AddressBook
from forewarn.networks.links import Bridge, Network
from forewarn.networks.namespaces import inside
from forewarn.networks.responder import Responder, link_of
from forewarn.ports.identities import Identities
from forewarn.web import listeners
from forewarn.web.listeners import Bound, Listener
from forewarn.wiring.running import Running

LOOK_SECONDS: Final = 2.0
PORT: Final = 80
OLD_PORT: Final = 8080


@dataclass(frozen=True, slots=True)
class _Stand:
    """What we have on a device: it is of no use when the device is another one of that name."""

    index: int
    close: Callable[[], None]
    place: Bound | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A listener on a device, or a bridge on which DHCP is answered."""

    namespace: str | None
    device: str
    what: Listener | Bridge


# The networks of this host, by the files they are from.
Networks = Mapping[Path, Network]


def load_links(files: Sequence[Path], others: Sequence[Listener] = ()) -> Networks:
    """The links of this host, some of which are there, beside other listeners.

    Raises: Malformed, Refused.
    """
    return {file: _load(file, others) for file in files}


def _load(file: Path, others: Sequence[Listener]) -> Network:
    network = load_network(file)
    if not network.devices:
        raise Refused(f"{file} declares no links: add a [[tap]] or a [[bridge]], or leave it out")
    if not _indexes(network):
        raise Refused(
            f"this host has none of the devices in {file}: run `forewarn host prepare {file}` first"
        )
    taken = {(one.host, one.port) for one in wanted_listeners(network)}
    for other in others:
        # In another namespace, the same address is another place.
        if (network.namespace or other.device) is None and (other.host, other.port) in taken:
            where = listeners.spell(other.host, other.port)
            raise Refused(
                f"{where} is on the links of {file} already: leave out `--metadata {where}`"
            )
    return network


def wanted_listeners(network: Network) -> Iterator[Listener]:
    """Where guests of a network ask: at each endpoint, on each link, by themselves."""
    for device in network.devices:
        bridge = network.bridge(device)
        ports = (PORT, OLD_PORT) if bridge is not None and bridge.port_8080 else (PORT,)
        for endpoint in network.endpoints:
            for port in ports:
                yield Listener(endpoint, port, device=device, namespace=network.namespace)


class Links:
    """The listeners on a host's links. All of it happens in the loop's thread."""

    def __init__(self, networks: Networks, running: Running, log: logging.Logger) -> None:
        book = running.assembly.identities
        assert isinstance(book, AddressBook), "the network alone says who calls"
        self._networks = networks
        self._book = book
        self._guests = running.guests
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._stands: dict[_Wanted, _Stand] = {}
        # What was said already of what cannot be had.
        self._troubles: dict[_Wanted, str] = {}
        self._looking: asyncio.TimerHandle | None = None

    @property
    def places(self) -> tuple[Bound, ...]:
        """Where guests are answered at the moment."""
        return tuple(stand.place for stand in self._stands.values() if stand.place is not None)

    def open(self) -> None:
        """Listen on the links there are, and from now on look for others."""
        if self._networks:
            self._keep_looking()

    def close(self) -> None:
        """Listen no more."""
        if self._looking is not None:
            self._looking.cancel()
        for wanted in tuple(self._stands):
            self._stands.pop(wanted).close()

    def reload(self) -> None:
        """Read the network files again; one with errors changes nothing."""
        if not self._networks:
            return
        try:
            self._networks = load_links(tuple(self._networks))
        except ForewarnError as error:
            self._log.error(str(error), extra={"action": "reload_refused"})
            return
        self._troubles.clear()
        self.look()
        for wanted, stand in self._stands.items():
            if stand.place is not None:
                self._confine(wanted, stand.place)

    def look(self) -> None:
        """Open what is missing, and close what is of no use any more."""
        indexes: dict[tuple[str | None, str], int] = {}
        for network in self._networks.values():
            found = _indexes(network).items()
            indexes |= {(network.namespace, device): index for device, index in found}
        wanted = dict.fromkeys(self._wanted())
        for one, stand in tuple(self._stands.items()):
            if one not in wanted or indexes.get((one.namespace, one.device)) != stand.index:
                del self._stands[one]
                stand.close()
        for one in wanted:
            if one not in self._stands:
                self._try(one, indexes.get((one.namespace, one.device)))

    def _keep_looking(self) -> None:
        self.look()
        self._looking = self._loop.call_later(LOOK_SECONDS, self._keep_looking)

    def _wanted(self) -> Iterator[_Wanted]:
        for network in self._networks.values():
            for listener in wanted_listeners(network):
                assert listener.device is not None, "links are devices"
                yield _Wanted(network.namespace, listener.device, listener)
            for bridge in network.bridges:
                if bridge.dhcp_245 is not None:
                    yield _Wanted(network.namespace, bridge.device, bridge)

    def _try(self, wanted: _Wanted, index: int | None) -> None:
        device = wanted.device
        try:
            if index is None:
                raise Refused(f"there is no device {device}: its guests are not answered yet")
            if isinstance(wanted.what, Listener):
                stand = self._listen(wanted, wanted.what, index)
            else:
                stand = self._respond(wanted, wanted.what, index)
        except ForewarnError as error:
            if self._troubles.get(wanted) != str(error):
                self._troubles[wanted] = str(error)
                self._log.warning(str(error), extra={"action": "no_link", "device": device})
            return
        self._troubles.pop(wanted, None)
        self._stands[wanted] = stand

    def _listen(self, wanted: _Wanted, listener: Listener, index: int) -> _Stand:
        with inside(wanted.namespace):
            (place,) = listeners.bind((listener,))
        self._confine(wanted, place)
        door = self._guests.open(place)

        def close() -> None:
            door.close()
            extra = {"action": "shut", "listener": place.name}
            self._log.info("no longer listening on %s", place.name, extra=extra)

        return _Stand(index, close, place)

    def _confine(self, wanted: _Wanted, place: Bound) -> None:
        known = [
            address
            for network in self._networks.values()
            if network.namespace == wanted.namespace
            for address in network.addresses_at(wanted.device)
        ]
        self._book.confine(place.name, known)

    def _respond(self, wanted: _Wanted, bridge: Bridge, index: int) -> _Stand:
        device = wanted.device
        assert bridge.dhcp_245 is not None, "others tell their guests nothing"
        with inside(wanted.namespace):
            responder = Responder(device, link_of(bridge, bridge.dhcp_245))
        self._loop.add_reader(responder.fileno(), responder.answer)
        told = {"action": "dhcp", "device": device, "endpoint": bridge.dhcp_245}
        self._log.info("telling guests on %s of %s", device, bridge.dhcp_245, extra=told)

        def close() -> None:
            self._loop.remove_reader(responder.fileno())
            responder.close()

        return _Stand(index, close)


def warn_of_strangers(identities: Identities, bound: Sequence[Bound], log: logging.Logger) -> None:
    """Say which listeners play a machine that nobody knows."""
    for place in bound:
        known = identities.identify(place.name, place.host) is not None
        if place.machine is not None and not known:
            log.warning(
                "%s plays %s, which is no VM of the fleet, or several: its callers get 403",
                place.name,
                place.machine,
                extra={"action": "nobody_played", "listener": place.name},
            )


def _indexes(network: Network) -> Mapping[str, int]:
    """The devices that are there, by their numbers, of which none is ever given twice."""
    found: dict[str, int] = {}
    try:
        with inside(network.namespace):
            for device in network.devices:
                # To list them all would take a kind of socket that a hardened service may not have.
                with suppress(OSError):
                    found[device] = socket.if_nametoindex(device)
    except Refused:
        # The namespace is gone, and all that was in it.
        return {}
    return found
