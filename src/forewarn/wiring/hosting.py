"""Hosting: the libvirt fabric at work in a service, and the fleet kept in step with its hosts.

Who says what where a fleet file and libvirt both know a machine: which scope it is of, and whatever else
it says, is the file's word; where it runs and what it is made of is libvirt's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from forewarn.core.journal import SERVICE
from forewarn.core.names import MachineName, ScopeId
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


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has an address: a machine of the census, or one that others declared."""

    scope: ScopeId
    machine: str
    is_found: bool


def admit(
    declared: Sequence[Declaration],
    holder: Callable[[str], Holder | None],
    is_leased: Callable[[ScopeId, MachineName], bool],
) -> tuple[tuple[Declaration, ...], tuple[str, ...]]:
    """Those of a census who can all be at once, and of the others why they cannot.

    An address is one machine's. Who was leased it yields to whom it was written down for, since a guest
    may ask for any; among those alike, who had it keeps it, however the newcomer is called.
    """
    everybody = [(d.scope.id, machine) for d in declared for machine in d.scope.machines]
    owners: dict[str, tuple[ScopeId, str]] = {}
    keepers: set[tuple[ScopeId, str]] = set()
    for address in (one for _, machine in everybody for one in machine.addresses):
        had = holder(address)
        if had is not None:
            keepers.add((had.scope, had.machine))
            if not had.is_found:
                owners[address] = (had.scope, had.machine)
    everybody.sort(
        key=lambda one: (is_leased(one[0], one[1].name), (one[0], one[1].name) not in keepers)
    )
    turned_away: dict[tuple[ScopeId, str], str] = {}
    for scope, machine in everybody:
        me = (scope, machine.name)
        taken = [one for one in machine.addresses if owners.get(one, me) != me]
        if taken:
            other_scope, other = owners[taken[0]]
            turned_away[me] = (
                f"{machine.name} on {machine.host} is left out: {taken[0]} is the address of {other} of "
                f"scope {other_scope} already: give one of them another"
            )
        else:
            owners.update(dict.fromkeys(machine.addresses, me))
    return tuple(_without(declared, turned_away)), tuple(turned_away.values())


def _without(
    declared: Sequence[Declaration], some: Collection[tuple[ScopeId, str]]
) -> Iterator[Declaration]:
    for one in declared:
        machines = tuple(m for m in one.scope.machines if (one.scope.id, m.name) not in some)
        if machines:
            yield replace(one, scope=replace(one.scope, machines=machines))


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
        # Who was not let in at the last look, and why.
        self._turned_away: tuple[str, ...] = ()
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
            # Whoever watches the start learns at once what it waits for.
            self._tell_troubles()

    def follow(self, assembly: Assembly) -> None:
        """Keep the fleet in step from now on."""
        # Without a file at this start, what one declared before goes on to be as libvirt has it.
        self._written = self._written or _remembered(assembly)
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
        return self._refusal or next(iter((*self.fabric.troubles, *self._turned_away)), None)

    def keep(self, written: Sequence[Declaration]) -> None:
        """A fleet file is in force: its machines go on to be what libvirt says they are."""
        self._written = tuple(written)
        self.fabric.changed.set()

    def completed(self, written: Sequence[Declaration]) -> tuple[Declaration, ...]:
        """What a fleet file declares, with what libvirt knows of it."""
        return tuple(self._completed(declared) for declared in written)

    def look(self, assembly: Assembly) -> None:
        """Bring the fleet in step with the hosts, if they can be asked."""
        try:
            found = tuple(self.fabric.census())
        except Unavailable:
            # It is among the troubles.
            self._tell_troubles()
            return
        completed = self.completed(self._written)
        if (found, completed) != self._applied or self._turned_away:
            try:
                self._apply(assembly, completed, found)
                self._refusal = None
                self._applied = (found, completed)
            except ForewarnError as error:
                # It is tried again.
                self._refusal = f"the census is not in force: {error}"
        self._tell_troubles()

    def _apply(
        self, assembly: Assembly, completed: Sequence[Declaration], found: Sequence[Declaration]
    ) -> None:
        registrar = assembly.registrar
        changes: tuple[str, ...] = ()
        if self._written:
            changes = registrar.apply(completed, Origin.FILE, SERVICE)
        changes += registrar.apply(self._own(assembly, found), Origin.CENSUS, SERVICE)
        for change in changes:
            self._log.info(change, extra={"action": "census"})

    def _follow(self, assembly: Assembly) -> None:
        while not self._stopping.is_set():
            is_news = self.fabric.changed.wait(LOOK_AGAIN_SECONDS)
            self.fabric.changed.clear()
            if is_news or self._refusal is not None or self._turned_away:
                self.look(assembly)

    def _tell_troubles(self) -> None:
        present = frozenset((*self.fabric.troubles, *self._turned_away))
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
        facts = {m.name: self.fabric.machine(scope.id, m.name) for m in scope.machines}
        machines = tuple(
            machine if (found := facts[machine.name]) is None else completed_by(machine, found)
            for machine in scope.machines
        )
        seen = frozenset(name for name, found in facts.items() if found is not None)
        return Declaration(replace(scope, machines=machines), declared.settled, seen)

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
        admitted, self._turned_away = admit(own, partial(_holder, assembly), self.fabric.is_leased)
        return admitted


def _remembered(assembly: Assembly) -> tuple[Declaration, ...]:
    """What a fleet file declared when one was in force last."""
    found: list[Declaration] = []
    for scope in assembly.directory.scopes():
        ledger = assembly.board.ledger(scope)
        known = () if ledger is None else ledger.scope.machines
        machines = tuple(machine for machine in known if machine.origin is Origin.FILE)
        if ledger is not None and machines:
            settled = frozenset(machine.name for machine in machines)
            found.append(Declaration(replace(ledger.scope, machines=machines), settled))
    return tuple(found)


def _holder(assembly: Assembly, address: str) -> Holder | None:
    """Who has an address in the fleet as it is."""
    caller = assembly.identities.owner(address)
    ledger = None if caller is None else assembly.board.ledger(caller.scope)
    machine = None if caller is None or ledger is None else ledger.scope.machine(caller.machine)
    if caller is None or machine is None:
        return None
    return Holder(caller.scope, machine.name, machine.origin is Origin.CENSUS)


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
        presence=found.presence,
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
