"""LibvirtFabric: begins orders, says how far they are, and tells who is there.

Threads are the owner's to give: `spawn` is asked for one per host, one for libvirt's callbacks, and one
for each order while it is under way. A host that hangs keeps nobody waiting but its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.hosts import Standing
from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Machine
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt import census, placement
from forewarn.fabrics.libvirt.census import Census, Lodger
from forewarn.fabrics.libvirt.descriptions import Lull
from forewarn.fabrics.libvirt.dockets import Docket, Dockets, Key, Overtaken, key_of
from forewarn.fabrics.libvirt.link import Link, run_callbacks
from forewarn.fabrics.libvirt.lookouts import Lookout
from forewarn.fabrics.libvirt.placement import Berth, Mover
from forewarn.fabrics.libvirt.plans import MIGRATION, PLANS, in_hand, inherit, refuse_unfit
from forewarn.fabrics.libvirt.pursuits import Patience, Pursuit
from forewarn.fabrics.libvirt.surveys import Resident, Survey
from forewarn.ports.clock import Clock

# A name for the thread, and what it does.
Spawn = Callable[[str, Callable[[], None]], None]

USUAL: Final = Patience()


class LibvirtFabric:
    """The machines of several hosts. `start` it before it is asked anything."""

    def __init__(
        self,
        links: Sequence[Link],
        dockets: Dockets,
        clock: Clock,
        *,
        spawn: Spawn,
        enabling: Enabling = Enabling.ON_REQUEST,
        patience: Patience = USUAL,
    ) -> None:
        """`enabling` is for scopes whose metadata does not say."""
        self._lookout = Lookout(links, self._count_anew)
        self._dockets = dockets
        self._clock = clock
        self._spawn = spawn
        self._enabling = enabling
        self._patience = patience
        self._stopping = threading.Event()
        # Guards the rest.
        self._lock = threading.Lock()
        # The last census, and how often something has changed since the start.
        self._counted: Census | None = None
        self._generation = 0
        # One order at a time has a domain in its hands.
        self._turns: dict[str, threading.Lock] = {}
        # Why an order does not get on, while it does not.
        self._stuck: dict[Key, str] = {}
        # Who is there may have changed: whoever keeps the fleet asks again, and clears it.
        self.changed = threading.Event()
        # Whether nobody is to be placed on a host; its owner's to say, before it is started.
        self.is_drained: Callable[[str], bool] = lambda _: False

    def start(self) -> None:
        """Begin to look at the hosts, and go on with what was under way."""
        self._spawn("libvirt-callbacks", lambda: run_callbacks(self._stopping))
        for link in self._lookout.links:
            self._spawn(f"libvirt-{link.host}", partial(self._attend, link))
        for docket in self._dockets.all().values():
            if docket.is_open:
                self._pursue(docket)

    def stop(self) -> None:
        """Let the threads come to their end, and do not wait for it: a host may hang."""
        self._stopping.set()
        for link in self._lookout.links:
            link.stirred.set()

    @property
    def troubles(self) -> tuple[str, ...]:
        """What cannot be reached or understood at the moment."""
        unread = (line for survey in self._lookout.surveys() for line in survey.unread)
        return (*self._lookout.away().values(), *self._census().left_out, *unread)

    @property
    def has_seen_all(self) -> bool:
        """Whether every host was looked at since the start."""
        return self._lookout.has_seen_all

    def begin(self, order: Order) -> None:
        if self._dockets.get(key_of(order)) is not None:
            return
        plan = PLANS.get(order.impact)
        if plan is None:
            raise Refused(
                f"{order.machine} cannot undergo {order.impact.value}: libvirt keeps no image that "
                "its disks could be made from"
            )
        lodger = self._lodger(order)
        refuse_unfit(order, lodger)
        resident, target = lodger.resident, None
        if order.impact is EventType.FREEZE and resident.description.lull is Lull.MIGRATE:
            plan, target = MIGRATION, self._reachable(self._elsewhere(lodger))
        elif order.impact is EventType.REDEPLOY:
            target = self._elsewhere(lodger)
        assert lodger.machine.host is not None, "a census knows where everybody is"
        docket = Docket(
            event=order.event,
            scope=order.scope,
            machine=order.machine,
            impact=order.impact,
            duration=order.duration,
            domain=resident.description.uuid,
            host=lodger.machine.host,
            target=target,
            number=resident.sight.number,
            is_persistent=resident.sight.is_persistent,
            starts_with_host=resident.starts_with_host,
            xml=resident.xml,
            steps=plan,
            since=self._clock.now(),
        )
        opened = self._dockets.open(docket, inherit)
        if opened is not None:
            self._count_anew()
            self._pursue(opened)

    def observe(self, order: Order) -> Report:
        docket = self._dockets.get(key_of(order))
        if docket is None:
            return Report(Progress.UNKNOWN)
        with self._lock:
            why = self._stuck.get(docket.key)
        if why is not None and docket.is_open:
            raise Unavailable(why)
        return Report(docket.progress, "" if docket.is_open else docket.detail)

    def census(self) -> Sequence[Declaration]:
        if not self.has_seen_all:
            # Half a census would take the other half out of the fleet.
            away = "; ".join(self._lookout.away().values())
            raise Unavailable(f"not every host was seen yet: {away}")
        return self._census().declarations()

    def machine(self, scope: ScopeId, name: str) -> Machine | None:
        """What is known of a machine that others declared; None if it is not on any host."""
        try:
            return census.find(self._census(), scope, name).machine
        except Refused:
            return None

    def is_leased(self, scope: ScopeId, machine: MachineName) -> bool:
        """Whether a machine of the census has an address that nobody wrote down for it."""
        lodger = self._census().by_key.get((scope, machine.lower()))
        return lodger is not None and lodger.is_leased

    def standings(self) -> Sequence[Standing]:
        return self._lookout.standings()

    def is_moved_live(self, scope: ScopeId, machine: MachineName) -> bool:
        try:
            lodger = census.find(self._census(), scope, machine)
        except Refused:
            return False
        return lodger.resident.description.lull is Lull.MIGRATE

    # --- Who is there --------------------------------------------------------------------------

    def _lodger(self, order: Order) -> Lodger:
        away = self._lookout.away()
        try:
            lodger = census.find(self._census(), order.scope, order.machine)
        except Refused as refusal:
            if away:
                # It may be there.
                raise Unavailable(f"{refusal}; {'; '.join(away.values())}") from refusal
            raise
        assert lodger.machine.host is not None, "a census knows where everybody is"
        if lodger.machine.host in away:
            raise Unavailable(away[lodger.machine.host])
        return lodger

    def _census(self) -> Census:
        """Who is there; counted anew when something has changed."""
        with self._lock:
            generation, counted = self._generation, self._counted
        if counted is not None:
            return counted
        counted = census.count(self._residents().values(), self._enabling)
        with self._lock:
            if self._generation == generation:
                self._counted = counted
        return counted

    def _count_anew(self) -> None:
        with self._lock:
            self._generation += 1
            self._counted = None
        self.changed.set()

    def _residents(self) -> Mapping[str, tuple[HostName, Resident]]:
        """Every domain once: where it runs, if it is known in two places."""
        found: dict[str, tuple[HostName, Resident]] = {}
        # What is out of reach is what it was, unless it turns up elsewhere.
        for survey in self._lookout.surveys():
            for resident in survey.residents:
                uuid = resident.description.uuid
                if uuid not in found or (resident.is_active and not found[uuid][1].is_active):
                    found[uuid] = (survey.host, resident)
        for docket in self._dockets.all().values():
            if docket.is_open:
                # Between two runs or two hosts it is neither stopped nor gone.
                host, seen = found.get(docket.domain, (docket.host, None))
                found[docket.domain] = (host, in_hand(docket, seen))
        return found

    def _elsewhere(self, lodger: Lodger) -> HostName:
        """The host to move to. Raises: Refused."""
        surveys, away = self._lookout.within_reach(), self._lookout.away()
        assert lodger.machine.host is not None, "a census knows where everybody is"
        mover = Mover(
            name=lodger.machine.name,
            host=lodger.machine.host,
            kind=next(s.kind for s in surveys if s.host == lodger.machine.host),
            memory_kib=lodger.resident.description.memory_kib,
            scope=lodger.scope.id,
            update_domain=lodger.machine.update_domain,
        )
        return placement.choose(mover, self._berths(surveys), away)

    def _reachable(self, host: HostName) -> HostName:
        """A host that others can send a running machine to. Raises: Refused, Unavailable."""
        link = self._lookout.link(host)
        if not link.is_known_elsewhere:
            raise Refused(
                f"host {host} was given as {link.uri}, by which other hosts reach themselves: give "
                "--libvirt as they would reach it, such as qemu+ssh://root@HOST/system"
            )
        return host

    def _berths(self, surveys: Iterable[Survey]) -> Iterable[Berth]:
        """The hosts, with those on their way to them counted in."""
        coming = [d for d in self._dockets.all().values() if d.is_open and d.target is not None]
        bound = {docket.domain: docket.target for docket in coming}
        lodgers = self._census().lodgers
        for survey in surveys:
            here = [
                lodger
                for lodger in lodgers
                if bound.get(lodger.resident.description.uuid, lodger.machine.host) == survey.host
            ]
            promised = sum(
                lodger.resident.description.memory_kib
                for lodger in here
                if lodger.machine.host != survey.host
            )
            taken = tuple((one.scope.id, one.machine.update_domain) for one in here)
            free = survey.memory_free_kib - promised
            is_drained = self.is_drained(survey.host)
            yield Berth(survey.host, survey.kind, free, taken, is_drained)

    # --- In threads ------------------------------------------------------------------------------

    def _attend(self, link: Link) -> None:
        patience = self._patience
        self._lookout.attend(link, self._stopping, patience.survey, patience.again)

    def _pursue(self, docket: Docket) -> None:
        pursuit = Pursuit(
            docket,
            self._lookout.link,
            self._clock,
            self._patience,
            self._keep,
            finds=self._lookout.find,
        )
        self._spawn(f"order-{docket.machine}", lambda: self._carry_out(pursuit))

    def _carry_out(self, pursuit: Pursuit) -> None:
        key, domain = pursuit.docket.key, pursuit.docket.domain
        with self._lock:
            turn = self._turns.setdefault(domain, threading.Lock())
        is_over = False
        while not is_over and not self._stopping.is_set():
            pause, why = self._patience.look, None
            try:
                with turn:
                    is_over = self._is_overtaken(key) or pursuit.look()
            except Overtaken:
                is_over = True
            except Unavailable as error:
                why, pause = str(error), self._patience.again
            self._note_stuck(key, why)
            if not is_over:
                self._stopping.wait(pause.total_seconds())

    def _is_overtaken(self, key: Key) -> bool:
        docket = self._dockets.get(key)
        return docket is None or not docket.is_open

    def _note_stuck(self, key: Key, why: str | None) -> None:
        with self._lock:
            if why is None:
                self._stuck.pop(key, None)
            else:
                self._stuck[key] = why

    def _keep(self, docket: Docket) -> None:
        if not docket.is_open:
            # Whoever hears that it is over finds the fleet as it is now.
            for host in {docket.host, docket.destination}:
                with suppress(Unavailable, Refused):
                    self._lookout.look_at(self._lookout.link(host))
        self._dockets.keep(docket)
        self._count_anew()
