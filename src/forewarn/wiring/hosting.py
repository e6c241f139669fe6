"""Hosting: the libvirt fabric at work in a service, and the fleet kept in step with its hosts.

Who says what where a fleet file and libvirt both know a machine: which scope it is of, and whatever else
it says, is the file's word; where it runs and what it is made of is libvirt's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from forewarn.core.journal import SERVICE
from forewarn.core.names import ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Interface, Machine, Origin, ScopeKind
from forewarn.errors import ForewarnError, Refused, Unavailable
from forewarn.ports.clock import Clock
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.directories import DataDirectory

if TYPE_CHECKING:
    # Without the extra there is no such module, and no need of one.
    from forewarn.fabrics.libvirt.fabric import LibvirtFabric

# A service does not wait longer than this for hosts that do not answer.
FIRST_LOOK_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
# What was refused may be allowed by now, though nothing stirred on any host.
LOOK_AGAIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class LibvirtSettings:
    """The hosts of real machines, and how they are treated. Without hosts, machines are simulated."""

    # Of each a name, or "" for the host's own, and a libvirt URI.
    hosts: tuple[tuple[str, str], ...] = ()
    # How long a guest that is asked to stop may take.
    stop_within: timedelta = timedelta(seconds=60)


class Threads:
    """Runs what a fabric wants to have run; a bug there ends the service."""

    def __init__(self, log: logging.Logger, on_crash: Callable[[], object]) -> None:
        self._log = log
        self._on_crash = on_crash

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        self.start(name, work)

    def start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
        thread.start()
        return thread

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - whatever it was, nobody else would hear of it
            self._log.exception("a worker crashed: the service stops")
            self._on_crash()


class Hosting:
    """Keeps a service's fleet in step with what its hosts say, in a thread of its own."""

    def __init__(self, fabric: LibvirtFabric, threads: Threads, log: logging.Logger) -> None:
        self.fabric = fabric
        self._threads = threads
        self._log = log
        self._stopping = threading.Event()
        # What the fleet file in force declares, as it is written.
        self._written: tuple[Declaration, ...] = ()
        # What was applied last: looking again is no news.
        self._applied: tuple[object, ...] = ()
        # What was told last, so that each trouble is logged once.
        self._told: frozenset[str] = frozenset()
        self._refusal: str | None = None
        # Who cannot be in the fleet, as somebody who is not of the census has the same address.
        self._left_out: tuple[str, ...] = ()
        self._following: threading.Thread | None = None

    def begin(self, is_drained: Callable[[str], bool]) -> None:
        """Begin to look at the hosts; returns when all were seen, or some take their time."""
        self.fabric.is_drained = is_drained
        self.fabric.start()
        for _ in range(int(FIRST_LOOK_SECONDS / LOOK_SECONDS)):
            self.fabric.changed.clear()
            if self.fabric.has_seen_all:
                return
            self.fabric.changed.wait(LOOK_SECONDS)

    def follow(self, assembly: Assembly) -> None:
        """Keep the fleet in step from now on."""
        self.look(assembly)
        self._following = self._threads.start("census", partial(self._follow, assembly))

    def stop(self) -> None:
        """Finish the look under way. Whoever waits for a host is not waited for."""
        self._stopping.set()
        self.fabric.changed.set()
        self.fabric.stop()
        if self._following is not None:
            self._following.join()

    @property
    def trouble(self) -> str | None:
        """What is wrong with a host, or with what it says, if anything is."""
        return self._refusal or next(iter((*self.fabric.troubles, *self._left_out)), None)

    def keep(self, written: Sequence[Declaration]) -> None:
        """A fleet file is in force: its machines go on to be what libvirt says they are."""
        self._written = tuple(written)
        self.fabric.changed.set()

    def completed(self, written: Sequence[Declaration]) -> tuple[Declaration, ...]:
        """What a fleet file declares, with what libvirt knows of it."""
        return tuple(self._completed(declared) for declared in written)

    def look(self, assembly: Assembly) -> None:
        """Bring the fleet in step with the hosts, if they can be asked."""
        self._tell_troubles()
        try:
            found = tuple(self.fabric.census())
        except Unavailable:
            # It is among the troubles.
            return
        completed = self.completed(self._written)
        if (found, completed) == self._applied:
            return
        try:
            self._apply(assembly, completed, found)
        except ForewarnError as error:
            # Such as an address that two machines have; it is tried again.
            self._refusal = f"the census is not in force: {error}"
            return
        self._refusal = None
        self._applied = (found, completed)
        self._tell_troubles()

    def _apply(
        self, assembly: Assembly, completed: Sequence[Declaration], found: Sequence[Declaration]
    ) -> None:
        registrar = assembly.registrar
        changes: tuple[str, ...] = ()
        if self._written:
            changes = registrar.apply(completed, Origin.FILE, SERVICE)
        own, self._left_out = _without_taken(assembly, self._own(assembly, found))
        changes += registrar.apply(own, Origin.CENSUS, SERVICE)
        for change in changes:
            self._log.info(change, extra={"action": "census"})

    def _follow(self, assembly: Assembly) -> None:
        while not self._stopping.is_set():
            is_news = self.fabric.changed.wait(LOOK_AGAIN_SECONDS)
            self.fabric.changed.clear()
            if is_news or self._refusal is not None:
                self.look(assembly)

    def _tell_troubles(self) -> None:
        present = frozenset((*self.fabric.troubles, *self._left_out))
        if self._refusal is not None:
            present |= {self._refusal}
        for trouble in sorted(present - self._told):
            self._log.warning(trouble, extra={"action": "hosts"})
        for trouble in sorted(self._told - present):
            self._log.info("no longer: %s", trouble, extra={"action": "hosts"})
        self._told = present

    # --- Who says what -------------------------------------------------------------------------

    def _completed(self, declared: Declaration) -> Declaration:
        scope = declared.scope
        machines = tuple(self._with_facts(scope.id, machine) for machine in scope.machines)
        return Declaration(replace(scope, machines=machines), declared.settled)

    def _with_facts(self, scope: ScopeId, machine: Machine) -> Machine:
        found = self.fabric.machine(scope, machine.name)
        return machine if found is None else completed_by(machine, found)

    def _own(self, assembly: Assembly, found: Sequence[Declaration]) -> tuple[Declaration, ...]:
        """What is the census's to declare: the machines that nobody else has."""
        adopted = {
            facts.vm_id
            for declared in self._written
            for machine in declared.scope.machines
            if (facts := self.fabric.machine(declared.scope.id, machine.name)) is not None
        }
        own: list[Declaration] = []
        for declared in found:
            ledger = assembly.board.ledger(declared.scope.id)
            known = declared.scope if ledger is None else ledger.scope
            others = {m.name.lower() for m in known.machines if m.origin is not Origin.CENSUS}
            machines = tuple(
                machine
                for machine in declared.scope.machines
                if machine.vm_id not in adopted and machine.name.lower() not in others
            )
            if not machines or (others and known.kind is ScopeKind.STANDALONE):
                continue
            # What others declared of the scope is theirs to change.
            scope = known if known.origin not in (None, Origin.CENSUS) else declared.scope
            own.append(Declaration(replace(scope, machines=machines), declared.settled))
        return tuple(own)


def _without_taken(
    assembly: Assembly, own: Sequence[Declaration]
) -> tuple[tuple[Declaration, ...], tuple[str, ...]]:
    """What the census declares, but for those whose address another source's machine has; and why."""
    left: list[Declaration] = []
    left_out: list[str] = []
    for declared in own:
        machines: list[Machine] = []
        for machine in declared.scope.machines:
            why = next(filter(None, (_taken(assembly, one) for one in machine.addresses)), "")
            if why:
                left_out.append(f"{machine.name} on {machine.host} is left out: {why}")
            else:
                machines.append(machine)
        if machines:
            scope = replace(declared.scope, machines=tuple(machines))
            left.append(Declaration(scope, declared.settled))
    return tuple(left), tuple(left_out)


def _taken(assembly: Assembly, address: str) -> str:
    owner = assembly.identities.owner(address)
    ledger = None if owner is None else assembly.board.ledger(owner.scope)
    if owner is None or ledger is None:
        return ""
    for machine in ledger.scope.machines:
        if machine.name == owner.machine and machine.origin is not Origin.CENSUS:
            return (
                f"{address} is the address of {machine.name} of scope {owner.scope}: give it one of "
                "its own, or declare it there by its own name"
            )
    return ""


def completed_by(machine: Machine, found: Machine) -> Machine:
    """A machine as a file has it, and for the rest as libvirt does."""
    addresses = machine.addresses or found.addresses
    interfaces = found.interfaces
    if machine.addresses and len(interfaces) == 1:
        interfaces = (Interface(interfaces[0].mac, addresses),)
    return replace(
        machine,
        addresses=addresses,
        host=found.host,
        vm_id=machine.vm_id or found.vm_id,
        size=machine.size or found.size,
        zone=machine.zone or found.zone,
        tags=machine.tags or found.tags,
        interfaces=interfaces,
    )


def open_hosting(
    settings: LibvirtSettings,
    data: DataDirectory,
    clock: Clock,
    enabling: Enabling,
    threads: Threads,
    log: logging.Logger,
) -> Hosting:
    """A fabric over these hosts, not yet at work. Raises: Refused."""
    try:
        from forewarn.fabrics.libvirt.dockets import Dockets  # noqa: PLC0415 - an extra
        from forewarn.fabrics.libvirt.fabric import LibvirtFabric  # noqa: PLC0415
        from forewarn.fabrics.libvirt.link import Link  # noqa: PLC0415
        from forewarn.fabrics.libvirt.pursuits import Patience  # noqa: PLC0415
    except ImportError as error:
        raise Refused(
            f"--libvirt needs libvirt-python ({error}): install it with "
            "`pip install 'forewarn[libvirt]'`, which needs a compiler, pkg-config and libvirt-dev"
        ) from error
    fabric = LibvirtFabric(
        [Link(uri, name) for name, uri in settings.hosts],
        Dockets(data.path / "libvirt"),
        clock,
        spawn=threads.spawn,
        enabling=enabling,
        patience=Patience(stop=settings.stop_within),
    )
    return Hosting(fabric, threads, log)


def warn_without_hosts(assembly: Assembly, log: logging.Logger) -> None:
    """Say so if machines that came from libvirt are about to be simulated."""
    ledgers = (assembly.board.ledger(scope) for scope in assembly.directory.scopes())
    found = [
        machine.name
        for ledger in ledgers
        if ledger is not None
        for machine in ledger.scope.machines
        if machine.origin is Origin.CENSUS
    ]
    if found:
        log.warning(
            "%s VMs came from libvirt, such as %s, and without --libvirt what happens to them is only "
            "simulated: stop, and serve with --libvirt",
            len(found),
            found[0],
            extra={"action": "hosts"},
        )
