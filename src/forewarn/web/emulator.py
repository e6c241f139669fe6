"""The emulator under /fabric/v1/emulator: its clock, its chance, its faults, and what guests asked.

Only an emulator has these paths. They let whoever tests a handler tell time what to do, and what to go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol

from forewarn.core.rights import Right
from forewarn.web.calls import Answer, Call, reply
from forewarn.web.described import Described
from forewarn.web.faults import Fault, Faults
from forewarn.web.routes import Route
from forewarn.web.rows import Row, routes_of
from forewarn.web.visits import Visit, VisitorsBook
from forewarn.wire import control as wire
from forewarn.wire import emulator as forms
from forewarn.wire.control_forms import NothingForm
from forewarn.wire.emulator import (
    AddressesForm,
    AdvancedForm,
    ClockForm,
    FaultForm,
    FaultsForm,
    RequestForm,
    RequestsForm,
)


class Time(Protocol):
    """The emulator's time, and what it brings."""

    @property
    def speed(self) -> float:
        """How fast it goes by itself; 0: not at all."""
        ...

    def now(self) -> datetime:
        """What the clock shows."""
        ...

    def settle(self) -> None:
        """Do all that is due now."""
        ...

    def advance(self, until: datetime) -> bool:
        """Let time pass up to an instant, doing each thing when it is due; whether one happened."""
        ...

    def advance_to_next(self) -> bool:
        """Let time pass until something happens; whether it did."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorParts:
    """What the emulator's paths stand on."""

    time: Time
    visitors: VisitorsBook
    faults: Faults
    # What a machine is called whose name was given. Raises: Unknown, Refused.
    machine: Callable[[str], str]
    # Begins anew: with ids from this seed, or from the one that it was started with, if any.
    # Returns the new world's time. Raises: Refused.
    reset: Callable[[int | None], Time]
    # Where guests are heard: the address that knows machines by theirs, and one that plays each.
    metadata: str
    machines: Mapping[str, str]


def _clock(parts: EmulatorParts, _call: Call) -> Answer:
    return _shown(parts.time)


def _advance(parts: EmulatorParts, call: Call) -> Answer:
    asked = wire.load(forms.Advance, call.body)
    time = parts.time
    until = asked.until(time.now())
    happened = time.advance_to_next() if until is None else time.advance(until)
    return reply(AdvancedForm(now=time.now(), speed=time.speed, happened=happened))


def _idle(parts: EmulatorParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    parts.time.settle()
    return _shown(parts.time)


def _reset(parts: EmulatorParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    return _shown(parts.reset(None))


def _seed(parts: EmulatorParts, call: Call) -> Answer:
    return _shown(parts.reset(wire.load(forms.Seed, call.body).seed))


def _requests(parts: EmulatorParts, _call: Call) -> Answer:
    visits = parts.visitors.visits
    forgotten = max(parts.visitors.count - len(visits), 0)
    return reply(RequestsForm(requests=[_request(v) for v in visits], forgotten=forgotten))


def _addresses(parts: EmulatorParts, _call: Call) -> Answer:
    return reply(AddressesForm(metadata=parts.metadata, machines=parts.machines))


def _faults(parts: EmulatorParts, _call: Call) -> Answer:
    return reply(FaultsForm(faults=[_fault(fault) for fault in parts.faults.in_force]))


def _add_fault(parts: EmulatorParts, call: Call) -> Answer:
    asked = wire.load(forms.Wrong, call.body)
    fault = parts.faults.add(
        asked.kind,
        machine=None if asked.machine is None else parts.machine(asked.machine),
        times=asked.times,
        lasts=asked.lasts,
        delay=asked.delay,
    )
    return reply(_fault(fault), status=HTTPStatus.CREATED)


def _remove_fault(parts: EmulatorParts, call: Call) -> Answer:
    parts.faults.remove(call.names["fault"])
    return reply(NothingForm())


def _clear_faults(parts: EmulatorParts, _call: Call) -> Answer:
    parts.faults.clear()
    return reply(NothingForm())


def _fault(fault: Fault) -> FaultForm:
    return FaultForm(
        id=fault.id,
        kind=fault.kind.value,
        machine=fault.machine,
        times=fault.times,
        until=fault.until,
        delay_seconds=fault.delay.total_seconds(),
    )


def _shown(time: Time) -> Answer:
    return reply(ClockForm(now=time.now(), speed=time.speed))


def _request(visit: Visit) -> RequestForm:
    return RequestForm(
        at=visit.at,
        machine=visit.machine,
        address=visit.address,
        method=visit.method,
        path=visit.path,
        route=visit.route,
        api_version=visit.api_version,
        status=visit.status,
    )


_PATH: Final = "/fabric/v1/emulator"
_DONE: Final = {HTTPStatus.OK: NothingForm}
_CLOCK: Final = {HTTPStatus.OK: ClockForm}

ROWS: Final = (
    Row(
        "GET",
        f"{_PATH}/clock",
        Right.OPERATE,
        _clock,
        Described(
            name="showClock",
            summary="Show the emulator's time, and how fast it goes.",
            answers=_CLOCK,
        ),
    ),
    Row(
        "POST",
        f"{_PATH}/clock/advance",
        Right.OPERATE,
        _advance,
        Described(
            name="advanceClock",
            summary="Let time pass by a while, to an instant or until something happens, and do "
            "each thing on the way when it is due.",
            asks=forms.Advance,
            answers={HTTPStatus.OK: AdvancedForm},
        ),
    ),
    Row(
        "POST",
        f"{_PATH}/idle",
        Right.OPERATE,
        _idle,
        Described(
            name="waitUntilIdle",
            summary="Do all that is due now, and answer when it is done.",
            asks=wire.Nothing,
            answers=_CLOCK,
        ),
    ),
    Row(
        "POST",
        f"{_PATH}/reset",
        Right.OPERATE,
        _reset,
        Described(
            name="resetEmulator",
            summary="Begin anew: the fleet as it was at the start, no events, no requests, no faults.",
            asks=wire.Nothing,
            answers=_CLOCK,
        ),
    ),
    Row(
        "POST",
        f"{_PATH}/seed",
        Right.OPERATE,
        _seed,
        Described(
            name="seedEmulator",
            summary="Begin anew, with ids of events that follow from a number, at a fixed time.",
            asks=forms.Seed,
            answers=_CLOCK,
        ),
    ),
    Row(
        "GET",
        f"{_PATH}/requests",
        Right.OPERATE,
        _requests,
        Described(
            name="listRequests",
            summary="List the last requests of guests, oldest first.",
            answers={HTTPStatus.OK: RequestsForm},
        ),
    ),
    Row(
        "GET",
        f"{_PATH}/addresses",
        Right.OPERATE,
        _addresses,
        Described(
            name="listAddresses",
            summary="List where guests ask: one address that knows VMs by theirs, and one for "
            "each VM, which plays it.",
            answers={HTTPStatus.OK: AddressesForm},
        ),
    ),
    Row(
        "GET",
        f"{_PATH}/faults",
        Right.OPERATE,
        _faults,
        Described(
            name="listFaults",
            summary="List what goes wrong on purpose now, oldest first.",
            answers={HTTPStatus.OK: FaultsForm},
        ),
    ),
    Row(
        "POST",
        f"{_PATH}/faults",
        Right.OPERATE,
        _add_fault,
        Described(
            name="addFault",
            summary="Have something go wrong, for a VM or all, so many times or for so long.",
            asks=forms.Wrong,
            answers={HTTPStatus.CREATED: FaultForm},
            refusals=frozenset({HTTPStatus.NOT_FOUND}),
        ),
    ),
    Row(
        "DELETE",
        f"{_PATH}/faults",
        Right.OPERATE,
        _clear_faults,
        Described(name="clearFaults", summary="End all faults.", answers=_DONE),
    ),
    Row(
        "DELETE",
        f"{_PATH}/faults/{{fault}}",
        Right.OPERATE,
        _remove_fault,
        Described(name="removeFault", summary="End a fault.", answers=_DONE),
    ),
)


def routes(parts: EmulatorParts) -> tuple[Route, ...]:
    """What is asked here, each with the right that it takes."""
    return routes_of(ROWS, parts)
