"""The player: has a script's acts happen on a stage, and holds the promises against each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from forewarn.core.events import Audience
from forewarn.core.names import EventId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Enabling, Origin, Scope
from forewarn.errors import Conflict, ForewarnError, Refused, Unavailable, UnknownEvent
from forewarn.fabrics.simulated import Behaviour
from forewarn.ports.identities import Caller
from forewarn.testing import promises
from forewarn.testing.acts import (
    Act,
    Amnesia,
    Announce,
    Approve,
    Await,
    Beat,
    Behave,
    Calm,
    Cancel,
    Declare,
    Die,
    Garble,
    Intrude,
    Jump,
    Part,
    Pass,
    Permit,
    Poll,
    Postpone,
    Resolve,
    Rise,
    Sleep,
    Spoil,
    Work,
)
from forewarn.testing.scripts import Script
from forewarn.testing.stage import Cast, Service, Stage
from forewarn.testing.worlds import OPERATOR

SECOND: Final = timedelta(seconds=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
NOBODYS: Final = "00000000-0000-4000-8000-000000000000"
# Into how many pieces a span is cut at most, so that a day costs no more than a minute.
PIECES_MAX: Final = 10
ROUNDS_MAX: Final = 500


class Player:
    """Plays one script."""

    def __init__(self, script: Script, cast: Cast) -> None:
        self.script = script
        self.stage = Stage(script.seed, script.services, cast)
        self.seen = self.stage.seen
        self._machines = [m for scope in script.fleet for m in scope.machines]
        self._addresses = [address for m in self._machines for address in m.addresses]
        self._ways: dict[type, Callable[[Any], None]] = {
            Announce: self._announce,
            Approve: self._approve,
            Permit: self._permit,
            Cancel: self._cancel,
            Postpone: self._postpone,
            Resolve: self._resolve,
            Poll: self._poll,
            Declare: lambda act: self._declare(act.service, act.scopes),
            Work: lambda act: self.stage.work(act.service),
            Pass: lambda act: self._pass(act.span),
            Sleep: lambda act: self.stage.clock.advance(act.span),
            Await: lambda _: self._await(),
            Jump: self._jump,
            Behave: lambda act: self.stage.fabric.behave(act.machine, act.behaviour),
            Garble: self._garble,
            Amnesia: lambda _: self.stage.forget_orders(),
            Spoil: self._spoil,
            Part: lambda act: self.stage.part(act.service, is_away=act.is_away),
            Die: self._die,
            Rise: lambda act: self.stage.rise(act.service),
            Intrude: self._intrude,
            Calm: lambda _: self._calm(),
        }

    def play(self) -> None:
        """Play all of it, then let everything come to its end. Raises: AssertionError."""
        for number in range(self.script.services):
            self.stage.rise(number)
        self._declare(0, self.script.fleet)
        self._check()
        for beat in self.script.beats:
            self._play(beat)
        self._end()

    def _play(self, beat: Beat) -> None:
        self._perform(beat.act)
        self._check()
        self.stage.clock.advance(beat.gap)
        for number in beat.workers:
            self.stage.work(number)
            self._check()

    def _perform(self, act: Act) -> None:
        self.stage.counts[type(act).__name__] += 1
        self._ways[type(act)](act)

    def _check(self) -> None:
        promises.check(self.seen)

    # -- what people and guests do -------------------------------------------------------

    def _announce(self, act: Announce) -> None:
        def announce(service: Service) -> None:
            with suppress(ForewarnError):
                placed = service.parts.desk.announce(act.wish, act.hosts, OPERATOR)
                if not service.fate.is_dead:
                    self.seen.promised |= {p.event.id for p in placed}

        self.stage.attempt(act.service, announce)

    def _approve(self, act: Approve) -> None:
        ids = [self._event(number) for number in act.events]
        address = self._guest(act.guest, ids[0])
        if act.and_nobodys:
            ids.append(EventId(NOBODYS))
        for _ in range(act.times):
            self._as_guest(address, lambda service, caller: self._ask(service, caller, ids))

    def _ask(self, service: Service, caller: Caller, ids: list[EventId]) -> None:
        known = self._known(caller, ids)
        if known:
            self.seen.attempted.update(ids)
        desk = service.parts.desk
        # A scope that begins to ask for requests meanwhile was not asked that way.
        is_on_request = desk.posting(caller).scope.enabling is Enabling.ON_REQUEST
        try:
            desk.approve_as_guest(caller, ids)
        except UnknownEvent:
            still = known and self._known(caller, ids)
            assert not still, "S16: an event of the last day is unknown"
        except (Conflict, Unavailable):
            return
        else:
            assert known, "S14: what is nobody's, or another scope's, was approved"
            if is_on_request and not service.fate.is_dead:
                self.seen.note_hearing(caller.scope, service.name)
            if not service.fate.is_dead:
                for event_id in ids:
                    self.seen.note_approval(event_id)

    def _known(self, caller: Caller, ids: Iterable[EventId]) -> bool:
        """Whether a guest may approve all of these."""
        found = [self.seen.committed[caller.scope].find(event_id) for event_id in ids]
        return all(event is not None and event.audience is Audience.GUESTS for event in found)

    def _permit(self, act: Permit) -> None:
        event_id = self._event(act.event)
        self.seen.attempted.add(event_id)

        def permit(service: Service) -> None:
            with suppress(Refused, Conflict, Unavailable):
                service.parts.desk.approve(event_id, OPERATOR)
                if not service.fate.is_dead:
                    self.seen.note_approval(event_id)

        self.stage.attempt(act.service, permit)

    def _cancel(self, act: Cancel) -> None:
        event_id = self._event(act.event)
        self._as_operator(act.service, lambda s: s.parts.desk.cancel(event_id, OPERATOR))

    def _postpone(self, act: Postpone) -> None:
        event_id = self._event(act.event)
        self._as_operator(act.service, lambda s: s.parts.desk.postpone(event_id, act.by, OPERATOR))

    def _resolve(self, act: Resolve) -> None:
        event_id = self._event(act.event)
        self._as_operator(
            act.service, lambda s: s.parts.desk.resolve(event_id, act.result, OPERATOR)
        )

    def _poll(self, act: Poll) -> None:
        self._as_guest(act.address, self._read)

    def _read(self, service: Service, caller: Caller) -> None:
        desk = service.parts.desk
        is_on_request = desk.posting(caller).scope.enabling is Enabling.ON_REQUEST
        with suppress(Conflict, Unavailable):
            if desk.hear(caller):
                desk.attend(caller)
            if is_on_request and not service.fate.is_dead:
                self.seen.note_hearing(caller.scope, service.name)

    def _declare(self, service: int, scopes: tuple[Scope, ...]) -> None:
        declared = [Declaration(s, frozenset(m.name for m in s.machines)) for s in scopes]
        self._as_operator(
            service, lambda s: s.parts.registrar.apply(declared, Origin.FILE, OPERATOR)
        )

    def _as_guest(self, address: str, ask: Callable[[Service, Caller], None]) -> None:
        """Ask at the service where this guest always asks."""

        def asking(service: Service) -> None:
            caller = service.parts.identities.identify("", address)
            if caller is not None:
                self.seen.asked[caller.scope] = self.stage.clock.elapsed()
                ask(service, caller)

        self.stage.attempt(self._addresses.index(address) % self.script.services, asking)

    def _as_operator(self, number: int, ask: Callable[[Service], object]) -> None:
        def asking(service: Service) -> None:
            with suppress(Refused, Conflict, Unavailable):
                ask(service)

        self.stage.attempt(number, asking)

    def _guest(self, number: int, event_id: EventId) -> str:
        """The guest that a number stands for: every other time one whom the event concerns."""
        found = self.seen.find(event_id)
        named = found[1].machines if found is not None and number % 2 == 0 else ()
        concerned = [a for m in self._machines if m.name in named for a in m.addresses]
        some = concerned or self._addresses
        return some[number // 2 % len(some)]

    def _event(self, number: int) -> EventId:
        """The event that a number stands for: three times out of four one that is open."""
        some = [e.id for ledger in self.seen.committed.values() for e in ledger.open_events]
        if not some or number % 4 == 3:
            some = self.seen.announced
        return some[number // 4 % len(some)] if some else EventId(NOBODYS)

    # -- what goes wrong -----------------------------------------------------------------

    def _jump(self, act: Jump) -> None:
        self.seen.note_jump(act.by)
        self.stage.clock.jump(act.by)
        # Nobody sleeps for longer than a second, so each service sees the hands where they were.
        for number in range(self.script.services):
            self.stage.work(number)

    def _garble(self, act: Garble) -> None:
        service = self.stage.services[act.service]
        if service is not None:
            service.fabric.how = act.how

    def _spoil(self, act: Spoil) -> None:
        service = self.stage.services[act.service]
        if service is not None:
            service.store.spoil(*act.faults)

    def _die(self, act: Die) -> None:
        service = self.stage.services[act.service]
        if service is None:
            return
        if act.after:
            service.fate.await_call(act.after, service.fate.die)
        else:
            self.stage.bury(act.service, service)

    def _intrude(self, act: Intrude) -> None:
        service = self.stage.services[act.service]
        if service is None:
            return
        if act.after:
            service.fate.await_call(act.after, lambda: self._perform(act.act))
        else:
            service.store.overtake(lambda: self._perform(act.act))

    # -- time ----------------------------------------------------------------------------

    def _pass(self, span: timedelta) -> None:
        until = self.stage.clock.elapsed() + span
        while (left := until - self.stage.clock.elapsed()) > timedelta():
            self.stage.clock.advance(min(left, max(self._until_wake(), span / PIECES_MAX)))
            self._work_all()

    def _await(self) -> None:
        self.stage.clock.advance(self._until_wake())
        self._work_all()

    def _until_wake(self) -> timedelta:
        wake = self.stage.next_wake()
        if wake is None:
            return timedelta()
        return min(max(wake - self.stage.clock.now(), timedelta()), 8 * DAY)

    def _work_all(self) -> None:
        for number in range(self.script.services):
            self.stage.work(number)
            self._check()

    def _calm(self) -> None:
        """End all faults, and see that whatever may happen does."""
        for machine in self._machines:
            self.stage.fabric.behave(machine.name, Behaviour.OBEYS)
        self.stage.heal()
        # What others heard while a service was cut off, it learns only now.
        self.seen.listening_since = self.stage.clock.elapsed()
        self._settle()

    def _settle(self) -> None:
        # Whoever had a setback looks again after a second.
        self.stage.clock.advance(2 * SECOND)
        for _ in range(ROUNDS_MAX):
            commits = len(self.seen.documents)
            self._work_all()
            if len(self.seen.documents) == commits and self._is_at_rest():
                break
        else:
            raise AssertionError("S17: the conductors do not come to rest")
        self.seen.is_settled = True
        self._check()
        self.seen.is_settled = False

    def _is_at_rest(self) -> bool:
        wake = self.stage.next_wake()
        return wake is None or wake > self.stage.clock.now()

    def _end(self) -> None:
        """Without faults and with time, every event comes to its end, and silence is noticed."""
        self._calm()
        for round_ in range(ROUNDS_MAX):
            if not any(ledger.open_events for ledger in self.seen.committed.values()):
                break
            # After the hands were set forward, a notice may have days to go that they do not show.
            least = 20 * SECOND if round_ < ROUNDS_MAX / 2 else HOUR
            self.stage.clock.advance(max(self._until_wake(), least))
            self._work_all()
        else:
            raise AssertionError("S17: due, and nothing happens")
        for _ in range(4):
            self._pass(13 * HOUR)
        self._settle()
