"""Reads the steps of a scenario, and says all that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Final

from forewarn.config.fleets import FleetFile
from forewarn.config.scenario_steps import (
    Announce,
    AnyStep,
    Approve,
    Cancel,
    ExpectAnswer,
    ExpectApproval,
    Expectation,
    ExpectEvent,
    Inject,
    Seen,
)
from forewarn.core.events import ANNOUNCED_TYPES, Cause, EventSource, EventType
from forewarn.core.periods import spell
from forewarn.errors import Malformed
from forewarn.tables.durations import DURATION_FORMS, parse_duration
from forewarn.tables.reading import Fault, Table, shown
from forewarn.web.faults import FaultKind

# What a guest may be answered besides a status: nothing in the body, half a body or none, no answer.
ANSWERS: Final = ("empty", "broken", "none")
TIMES_MAX: Final = 1_000_000
INCARNATION_MAX: Final = 2**31

_TOLD: Final = ("vm", "host", "notice", "duration", "started_for", "description", "as")
_EXPECT: Final = "[[step]] with expect"
# What each kind of step may say, by the member that makes it one of that kind.
VERBS: Final[Mapping[str, str]] = {
    "announce": "[[step]] with announce",
    "hardware_failure": "[[step]] with hardware_failure",
    "cancel": "[[step]] with cancel",
    "approve": "[[step]] with approve",
    "fault": "[[step]] with fault",
    "expect": _EXPECT,
}
_ONE_EVENT: Final = (
    "at", "expect", "event", "vm", "within", "type", "source", "resources", "not_before",
    "duration", "description", "incarnation",
)  # fmt: skip
EXPECTED: Final[Mapping[str, str]] = {
    **{seen.value: f'[[step]] with expect = "{seen.value}"' for seen in Seen},
    "approval": '[[step]] with expect = "approval"',
    "answer": '[[step]] with expect = "answer"',
}
TITLES: Final[Mapping[str, Sequence[str]]] = {
    VERBS["announce"]: ("at", "announce", "source", *_TOLD),
    VERBS["hardware_failure"]: ("at", "hardware_failure", "type", *_TOLD),
    VERBS["cancel"]: ("at", "cancel"),
    VERBS["approve"]: ("at", "approve", "vm"),
    VERBS["fault"]: ("at", "fault", "vm", "times", "lasts", "delay"),
    EXPECTED["Scheduled"]: _ONE_EVENT,
    EXPECTED["Started"]: tuple(key for key in _ONE_EVENT if key != "not_before"),
    EXPECTED["gone"]: ("at", "expect", "event", "vm", "within", "incarnation"),
    EXPECTED["approval"]: ("at", "expect", "event", "vm", "within"),
    EXPECTED["answer"]: ("at", "expect", "vm", "answer", "within"),
}


class FailureKind(Enum):
    """Whether hardware has failed, or will."""

    ACTUAL = "actual"
    PREDICTED = "predicted"


class Reader:
    """Reads steps in their order: what one says is known to those after it."""

    def __init__(self, fleet: FleetFile) -> None:
        self._machines = {name.lower(): name for name in fleet.machine_names}
        self._hosts: dict[str, list[str]] = {}
        machines = [m for declared in fleet.declarations for m in declared.scope.machines]
        for machine, name in zip(machines, fleet.machine_names, strict=True):
            if machine.host is not None:
                self._hosts.setdefault(machine.host, []).append(name)
        self._events: list[str] = []
        self._at = timedelta()
        # How long each impact on each machine keeps an event Started, and which step said so.
        self._takes: dict[tuple[str, EventType], tuple[timedelta | None, int]] = {}

    def steps(self, tables: Sequence[Table]) -> tuple[AnyStep, ...]:
        """The steps, as far as nothing is wrong with them."""
        read = (self._step(number, table) for number, table in enumerate(tables, start=1))
        return tuple(step for step in read if step is not None)

    def _step(self, number: int, table: Table) -> AnyStep | None:
        verbs = [verb for verb in VERBS if verb in table.members]
        if len(verbs) != 1:
            what = f"it has {' and '.join(verbs)}" if verbs else "it says nothing to do"
            table.fault(verbs[-1] if verbs else "", what, f"give one of {', '.join(VERBS)}")
            return None
        (verb,) = verbs
        at = self._when(table)
        readers: Mapping[str, Callable[[Table, int, timedelta], AnyStep | None]] = {
            "announce": self._announce,
            "hardware_failure": self._failure,
            "cancel": self._cancel,
            "approve": self._approve,
            "fault": self._fault,
            "expect": self._expect,
        }
        if verb != "expect":
            table = _titled(table, VERBS[verb])
        return readers[verb](table, number, at)

    def _when(self, table: Table) -> timedelta:
        """When a step is taken; a step that does not say comes right after the one before."""
        given = table.members.get("at")
        if given is None:
            return self._at
        if not isinstance(given, str):
            what = f"at = {shown(given)} is not a time"
            table.fault("at", what, 'write it like "+15m": how long after the beginning')
            return self._at
        try:
            at = parse_duration(given.strip().removeprefix("+"))
        except Malformed:
            what = f"at = {shown(given)} is not a time"
            table.fault("at", what, f'write "+" and a duration like {DURATION_FORMS}')
            return self._at
        if at < self._at:
            what = f"at = {shown(given)} is before the step before it, at +{spell(self._at)}"
            table.fault("at", what, "put steps in their order; all times are from the beginning")
        self._at = max(self._at, at)
        return at

    def _announce(self, table: Table, number: int, at: timedelta) -> AnyStep:
        kind = self._type(table, "announce")
        source = table.choice("source", EventSource.PLATFORM)
        if kind is EventType.PREEMPT and source is EventSource.USER:
            table.fault("source", "a Preempt is the platform's", "leave source out")
        return self._told(table, number, at, (kind, Cause.MAINTENANCE, source))

    def _failure(self, table: Table, number: int, at: timedelta) -> AnyStep:
        failed = table.choice("hardware_failure", FailureKind.ACTUAL)
        is_actual = failed is FailureKind.ACTUAL
        if is_actual and "notice" in table.members:
            table.fault("notice", "an actual hardware failure gives no notice", "leave notice out")
        cause = Cause.HARDWARE_FAILURE if is_actual else Cause.PREDICTED_FAILURE
        kind = self._type(table, "type", EventType.REBOOT)
        return self._told(table, number, at, (kind, cause, EventSource.PLATFORM))

    def _told(
        self, table: Table, number: int, at: timedelta, what: tuple[EventType, Cause, EventSource]
    ) -> Announce:
        machines, host = self._named(table, "vm"), self._host(table)
        if "vm" not in table.members and "host" not in table.members:
            table.fault("vm", "it names no VM", f'add vm = "{next(iter(self._machines), "…")}"')
        if machines and host is not None:
            table.fault("host", "host beside vm", "give one of them")
        started_for = table.duration("started_for")
        if table.is_sound("announce", "type", "started_for"):
            for machine in machines or self._hosts.get(host or "", []):
                self._note_length(table, machine, (what[0], started_for, number))
        return Announce(
            number=number,
            at=at,
            type=what[0],
            cause=what[1],
            source=what[2],
            machines=machines,
            host=host,
            notice=table.duration("notice"),
            duration=table.duration("duration"),
            started_for=started_for,
            description=table.text("description") if "description" in table.members else None,
            names=self._new_names(table),
        )

    def _note_length(
        self, table: Table, machine: str, said: tuple[EventType, timedelta | None, int]
    ) -> None:
        """The fabric knows one length for each impact on a machine."""
        kind, length, number = said
        known, other = self._takes.setdefault((machine.lower(), kind), (length, number))
        if known != length:
            told = "no started_for" if known is None else f'started_for = "{spell(known)}"'
            what = f"a {kind.value} of {machine} has {told} in step {other}"
            table.fault("started_for", what, "give both the same")

    def _cancel(self, table: Table, number: int, at: timedelta) -> AnyStep:
        return Cancel(number=number, at=at, event=self._event(table, "cancel"))

    def _approve(self, table: Table, number: int, at: timedelta) -> AnyStep:
        event, machine = self._event(table, "approve"), self._machine(table, "vm")
        if machine is None and table.is_sound("vm"):
            table.fault("vm", "it does not say who approves", 'add vm = "…"')
        return Approve(number=number, at=at, event=event, machine=machine or "")

    def _fault(self, table: Table, number: int, at: timedelta) -> AnyStep:
        kind = table.choice("fault", FaultKind.THROTTLED)
        return Inject(
            number=number,
            at=at,
            kind=str(kind.value),
            machine=self._machine(table, "vm"),
            times=table.whole("times", 1, TIMES_MAX),
            lasts=table.duration("lasts"),
            delay=table.duration("delay"),
        )

    def _expect(self, table: Table, number: int, at: timedelta) -> AnyStep | None:
        expected = table.members["expect"]
        title = EXPECTED.get(expected) if isinstance(expected, str) else None
        if title is None:
            words = ", ".join(shown(word) for word in EXPECTED)
            table.fault("expect", f"nobody can expect {shown(expected)}", f"give one of {words}")
            return None
        table = _titled(table, title)
        if expected == "approval":
            return self._expect_approval(table, number, at)
        if expected == "answer":
            return self._expect_answer(table, number, at)
        return self._expect_event(table, number, at)

    def _expect_event(self, table: Table, number: int, at: timedelta) -> Expectation:
        has = table.members
        return ExpectEvent(
            number=number,
            at=at,
            event=self._event(table, "event"),
            seen=table.choice("expect", Seen.GONE),
            machines=self._named(table, "vm"),
            within=table.duration("within") or timedelta(),
            type=self._type(table, "type") if "type" in has else None,
            source=table.choice("source", EventSource.PLATFORM) if "source" in has else None,
            resources=self._named(table, "resources") if "resources" in has else None,
            not_before=table.duration("not_before"),
            duration=_seconds(table),
            description=table.text("description") if "description" in has else None,
            incarnation=table.whole("incarnation", 0, INCARNATION_MAX),
        )

    def _expect_approval(self, table: Table, number: int, at: timedelta) -> Expectation:
        if "within" not in table.members:
            remedy = 'add within = "5m": how long the handler has, by the emulated clock'
            table.fault("within", "it does not say how soon", remedy)
        return ExpectApproval(
            number=number,
            at=at,
            event=self._event(table, "event"),
            machine=self._machine(table, "vm"),
            within=table.duration("within") or timedelta(),
        )

    def _expect_answer(self, table: Table, number: int, at: timedelta) -> Expectation:
        machines, answer = self._named(table, "vm"), table.text("answer")
        if not machines and table.is_sound("vm"):
            table.fault("vm", "it does not say who is answered", 'add vm = "…"')
        is_status = len(answer) == len("200") and answer.isascii() and answer.isdigit()
        if table.is_sound("answer") and not is_status and answer not in ANSWERS:
            words = ", ".join(shown(word) for word in ANSWERS)
            remedy = f'give a status such as "429", or one of {words}'
            table.fault("answer", f"no answer is called {shown(answer)}", remedy)
        within = table.duration("within") or timedelta()
        return ExpectAnswer(number=number, at=at, machines=machines, answer=answer, within=within)

    def _type(self, table: Table, key: str, default: EventType = EventType.FREEZE) -> EventType:
        kind = table.choice(key, default)
        if kind not in ANNOUNCED_TYPES:
            words = ", ".join(shown(one.value) for one in ANNOUNCED_TYPES)
            table.fault(key, f"guests are never told of a {kind.value}", f"give one of {words}")
        return kind

    def _named(self, table: Table, key: str) -> tuple[str, ...]:
        found = []
        for place, given in table.strings(key):
            if given.lower() not in self._machines:
                known = ", ".join(self._machines.values())
                fault = Fault(place, f"there is no VM {shown(given)} in it", f"name one of {known}")
                table.faults.add(fault)
            found.append(self._machines.get(given.lower(), given))
        return tuple(found)

    def _machine(self, table: Table, key: str) -> str | None:
        found = self._named(table, key)
        if len(found) > 1:
            table.fault(key, "it names several VMs", "name one")
        return found[0] if found else None

    def _host(self, table: Table) -> str | None:
        if "host" not in table.members:
            return None
        given = table.text("host")
        if table.is_sound("host") and given not in self._hosts:
            remedy = f"name one of {', '.join(self._hosts)}" if self._hosts else "name VMs with vm"
            table.fault("host", f"no VM of it is on a host {shown(given)}", remedy)
        return given

    def _new_names(self, table: Table) -> tuple[str, ...]:
        names = []
        for place, name in table.strings("as"):
            if name in self._events:
                what = f"an event is called {shown(name)} already"
                table.faults.add(Fault(place, what, "call this one otherwise"))
            self._events.append(name)
            names.append(name)
        return tuple(names)

    def _event(self, table: Table, key: str) -> str:
        if key not in table.members:
            table.fault(key, "it does not say which event", f'add {key} = "…"')
            return ""
        name = table.text(key)
        if table.is_sound(key) and name not in self._events:
            known = ", ".join(self._events)
            remedy = f"name one of {known}" if known else f'announce it before, with as = "{name}"'
            table.fault(key, f"no event before it is called {shown(name)}", remedy)
        return name


def _titled(table: Table, title: str) -> Table:
    """The same table under the title of its kind, with the members that this kind has."""
    titled = Table(title, table.members, table.place, table.faults)
    titled.refuse_unknown(TITLES)
    return titled


def _seconds(table: Table) -> int | None:
    """A duration as guests read it: in whole seconds, or -1 where it is not known."""
    if table.members.get("duration") == "unknown":
        return -1
    duration = table.duration("duration")
    return None if duration is None else int(duration.total_seconds())
