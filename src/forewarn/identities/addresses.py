"""AddressBook: machines known by the address they speak from.

Theory: every connection is looked up here, so a lookup is one reading of one dict whose values
were made when the roster was enrolled. Readers take no lock: reading, setting and deleting one
key of a dict are each atomic. A writer sets what is new before it deletes what is gone, so
that a machine which keeps its address is never a stranger in between.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from forewarn.core.names import ScopeId
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.ports.identities import Caller


def canonical(address: str) -> str | None:
    """The one spelling of an address; None if it is none.

    An IPv4 address that was mapped into IPv6, as sockets for both see it, is an IPv4 address; the
    zone of an IPv6 address names an interface of this host and says nothing about the machine.
    """
    # Nearly all addresses are IPv4, which has no other spelling that anybody accepts; this asks
    # the C library, twenty times as fast, which counts for a million machines.
    with suppress(OSError, ValueError):
        socket.inet_pton(socket.AF_INET, address)
        return address
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed)))
    return str(parsed)


class AddressBook:
    """Knows every machine by its addresses, and whoever comes to a pinned listener by that."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._callers: dict[str, Caller] = {}
        # The keys of _callers, by the scope that brought them.
        self._addresses: dict[ScopeId, tuple[str, ...]] = {}
        # By pinned listener: the machine as it was named, all that this may mean, and the one
        # that it does mean.
        self._targets: dict[str, tuple[str, ...]] = {}
        self._candidates: dict[str, dict[ScopeId, Caller]] = {}
        self._pinned: dict[str, Caller | None] = {}
        # By listener: those who can come there in truth.
        self._confined: dict[str, frozenset[str]] = {}

    def confine(self, listener: str, addresses: Iterable[str]) -> None:
        """Know nobody at a listener but who speaks from one of these addresses.

        This is meant for listeners on a device of which is known who is at its other end: whoever
        comes there from another address pretends to be a neighbor. May be said again, with others.
        """
        known = (canonical(address) for address in addresses)
        self._confined[listener] = frozenset(one for one in known if one is not None)

    def pin(self, listener: str, machine: str) -> None:
        """Take whoever comes to a listener for a machine; call this before any scope is enrolled.

        The machine is "web-0", "rg1/web-0" or "rg1/web/web-0". This is meant for listeners on
        loopback, where any process of this host may play that machine, and for those on a device
        that leads to that machine alone.
        """
        assert not self._addresses, "rosters enrolled before are not searched"
        self._targets[listener] = tuple(machine.lower().split("/"))
        self._candidates[listener] = {}
        self._pinned[listener] = None

    def identify(self, listener: str, address: str) -> Caller | None:
        if listener in self._pinned:
            return self._pinned[listener]
        confined = self._confined.get(listener)
        if confined is not None and canonical(address) not in confined:
            return None
        # Nearly every address arrives in its one spelling.
        return self._callers.get(address) or self.owner(address)

    def glance(self, listener: str) -> Callable[[str], Caller | None]:
        if listener in self._pinned:
            return lambda _: self._pinned[listener]
        if listener not in self._confined:
            return self._callers.get
        return lambda address: (
            self._callers.get(address) if address in self._confined[listener] else None
        )

    def owner(self, address: str) -> Caller | None:
        spelled = canonical(address)
        return None if spelled is None else self._callers.get(spelled)

    def enroll(self, scope: Scope) -> None:
        scope_id = scope.id
        callers = {caller.address: caller for caller in _callers(scope, scope_id)}
        with self._writing:
            self._callers.update(callers)
            for address in self._addresses.pop(scope_id, ()):
                caller = self._callers.get(address)
                # An address may have moved to another scope, and that scope was enrolled first.
                if address not in callers and caller is not None and caller.scope == scope_id:
                    del self._callers[address]
            if callers:
                self._addresses[scope_id] = tuple(callers)
            for listener, target in self._targets.items():
                self._pin(listener, target, scope, scope_id)

    def _pin(self, listener: str, target: tuple[str, ...], scope: Scope, scope_id: ScopeId) -> None:
        candidates = self._candidates[listener]
        candidates.pop(scope_id, None)
        for machine in _present(scope):
            if target in _spellings(scope, machine):
                # The source address says nothing here; the listener is what tells the machine.
                candidates[scope_id] = Caller(scope_id, machine.name, listener)
        # Two machines of one name: nobody is known for certain.
        certain = len(candidates) == 1
        self._pinned[listener] = next(iter(candidates.values())) if certain else None


def _present(scope: Scope) -> Iterator[Machine]:
    return (machine for machine in scope.machines if machine.presence is not Presence.DELETED)


def _callers(scope: Scope, scope_id: ScopeId) -> Iterator[Caller]:
    for machine in _present(scope):
        for address in machine.addresses:
            spelled = canonical(address)
            if spelled is not None:
                yield Caller(scope_id, machine.name, spelled)


def _spellings(scope: Scope, machine: Machine) -> tuple[tuple[str, ...], ...]:
    """The ways to name a machine, in lower case, part by part."""
    group, name, own = scope.resource_group.lower(), scope.name.lower(), machine.name.lower()
    return (own,), (group, own), (group, name, own)
