"""LibvirtFabric: begins orders, says how far they are, and tells who is there.

Threads are the owner's to give: `spawn` is asked for one per host, one for libvirt's callbacks, and one
for each order while it is under way. A host that hangs keeps nobody waiting but its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.names import HostName, ScopeId
from forewarn.core.orders import Order, Progress, Report
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Machine
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt import census, placement
from forewarn.fabrics.libvirt.census import Census, Lodger
from forewarn.fabrics.libvirt.descriptions import Lull, describe
from forewarn.fabrics.libvirt.dockets import Docket, Dockets, Key, Overtaken, key_of
from forewarn.fabrics.libvirt.link import Link, run_callbacks
from forewarn.fabrics.libvirt.placement import Berth, Mover
from forewarn.fabrics.libvirt.pursuits import MIGRATION, PLANS, Patience, Pursuit
from forewarn.fabrics.libvirt.surveys import Resident, Sight, State, Survey
from forewarn.ports.clock import Clock

# A name for the thread, and what it does.
Spawn = Callable[[str, Callable[[], None]], None]

USUAL: Final = Patience()
# Events come in flocks; one look is enough for those that come within this time.
FLOCK: Final = timedelta(milliseconds=50)


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
        self._links = tuple(links)
        self._dockets = dockets
        self._clock = clock
        self._spawn = spawn
        self._enabling = enabling
        self._patience = patience
        self._stopping = threading.Event()
        # Guards the rest. Surveys are values, and replaced whole.
        self._lock = threading.Lock()
        self._surveys: dict[Link, Survey] = {}
        self._away: dict[Link, str] = {link: _not_yet(link) for link in self._links}
        # The last census, and how often something has changed since the start.
        self._counted: Census | None = None
        self._generation = 0
        # One order at a time has a domain in its hands.
        self._turns: dict[str, threading.Lock] = {}
        # Why an order does not get on, while it does not.
        self._stuck: dict[Key, str] = {}
        # Who is there may have changed: whoever keeps the fleet asks again, and clears it.
        self.changed = threading.Event()

    def start(self) -> None:
        """Begin to look at the hosts, and go on with what was under way."""
        self._spawn("libvirt-callbacks", lambda: run_callbacks(self._stopping))
        for link in self._links:
            self._spawn(f"libvirt-{link.host}", lambda link=link: self._attend(link))  # type: ignore[misc]
        for docket in self._dockets.all().values():
            if docket.is_open:
                self._pursue(docket)

    def stop(self) -> None:
        """Let the threads come to their end, and do not wait for it: a host may hang."""
        self._stopping.set()
        for link in self._links:
            link.stirred.set()

    @property
    def troubles(self) -> tuple[str, ...]:
        """What cannot be reached or understood at the moment."""
        with self._lock:
            away = tuple(self._away.values())
        return (*away, *self._census().left_out, *self._unread())

    @property
    def has_seen_all(self) -> bool:
        """Whether every host was looked at since the start."""
        with self._lock:
            return len(self._surveys) == len(self._links)

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
        _refuse_unfit(order, lodger)
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
        if self._dockets.open(docket):
            self._count_anew()
            self._pursue(docket)

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
            with self._lock:
                away = "; ".join(self._away.values())
            raise Unavailable(f"not every host was seen yet: {away}")
        return self._census().declarations()

    def machine(self, scope: ScopeId, name: str) -> Machine | None:
        """What is known of a machine that others declared; None if it is not on any host."""
        try:
            return census.find(self._census(), scope, name).machine
        except Refused:
            return None

    # --- Who is there --------------------------------------------------------------------------

    def _lodger(self, order: Order) -> Lodger:
        with self._lock:
            away = {link.host: why for link, why in self._away.items()}
        try:
            lodger = census.find(self._census(), order.scope, order.machine)
        except Refused as refusal:
            if away:
                # It may be there.
                raise Unavailable(f"{refusal}; {'; '.join(away.values())}") from refusal
            raise
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
        with self._lock:
            surveys = [(link in self._away, survey) for link, survey in self._surveys.items()]
        found: dict[str, tuple[HostName, Resident]] = {}
        # What is out of reach is what it was, unless it turns up elsewhere.
        for _, survey in sorted(surveys, key=lambda each: each[0]):
            for resident in survey.residents:
                uuid = resident.description.uuid
                if uuid not in found or (resident.is_active and not found[uuid][1].is_active):
                    found[uuid] = (survey.host, resident)
        for docket in self._dockets.all().values():
            if docket.is_open:
                # Between two runs or two hosts it is neither stopped nor gone.
                host, seen = found.get(docket.domain, (docket.host, None))
                found[docket.domain] = (host, _in_hand(docket, seen))
        return found

    def _unread(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(line for survey in self._surveys.values() for line in survey.unread)

    def _elsewhere(self, lodger: Lodger) -> HostName:
        """The host to move to. Raises: Refused."""
        with self._lock:
            surveys = [s for link, s in self._surveys.items() if link not in self._away]
            away = {link.host: why for link, why in self._away.items()}
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
        link = self._link(host)
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
            yield Berth(survey.host, survey.kind, free, taken)

    # --- In threads ------------------------------------------------------------------------------

    def _attend(self, link: Link) -> None:
        """Keep a host connected and surveyed, until told to stop."""
        while not self._stopping.is_set():
            link.stirred.clear()
            try:
                link.connect()
                self._refuse_namesake(link)
                self._take(link, link.survey())
                pause = self._patience.survey
            except (Unavailable, Refused) as error:
                self._lose(link, str(error))
                pause = self._patience.again
            if link.stirred.wait(pause.total_seconds()):
                self._stopping.wait(FLOCK.total_seconds())
        link.close()

    def _refuse_namesake(self, link: Link) -> None:
        for other in self._links[: self._links.index(link)]:
            if other.host.lower() == link.host.lower():
                raise Refused(
                    f"{other.uri} and {link.uri} both are host {link.host}: give them names, as in "
                    f"--libvirt {link.host}-2={link.uri}"
                )

    def _take(self, link: Link, survey: Survey) -> None:
        with self._lock:
            was_away = self._away.pop(link, None) is not None
            is_news = was_away or self._surveys.get(link) != survey
            self._surveys[link] = survey
        if is_news:
            self._count_anew()

    def _lose(self, link: Link, why: str) -> None:
        with self._lock:
            is_news = self._away.get(link) != why
            self._away[link] = why
        if is_news:
            self._count_anew()

    def _pursue(self, docket: Docket) -> None:
        pursuit = Pursuit(docket, self._link, self._clock, self._patience, self._keep)
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
                    link = self._link(host)
                    self._take(link, link.survey())
        self._dockets.keep(docket)
        self._count_anew()

    def _link(self, host: HostName) -> Link:
        with self._lock:
            for link in self._links:
                if link.host == host:
                    why = self._away.get(link)
                    if why is not None:
                        raise Unavailable(why)
                    return link
        raise Unavailable(f"host {host} is unknown here: serve with its --libvirt URI again")


def _not_yet(link: Link) -> str:
    return f"host {link.host} was not reached yet"


def _in_hand(docket: Docket, resident: Resident | None) -> Resident:
    """A domain that an order has in its hands: what it was when the order came."""
    if resident is not None and resident.is_active:
        return resident
    state = State.OFF if docket.number is None else State.RUNNING
    sight = Sight(state, docket.number, docket.is_persistent)
    if resident is not None:
        return replace(resident, sight=sight)
    return Resident(describe(docket.xml), sight, docket.xml, docket.starts_with_host)


def _refuse_unfit(order: Order, lodger: Lodger) -> None:
    """Refuse what cannot be done to a machine as it is."""
    name, state = order.machine, lodger.resident.sight.state
    host = lodger.machine.host
    if order.impact is EventType.START:
        if state is not State.OFF:
            raise Refused(f"{name} runs already on {host}")
    elif order.impact in (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY):
        if state is State.OFF:
            raise Refused(f"{name} is off on {host}: it cannot undergo {order.impact.value}")
        if state is State.PAUSED and order.impact is EventType.FREEZE:
            raise Refused(f"{name} is paused already on {host}: resume it first")
