"""What may happen to a machine that runs, or does not, and what it is afterwards."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import announcing, presences, starting
from forewarn.core.events import Audience, EventStatus, EventType, Outcome, Result
from forewarn.core.journal import SERVICE, Actor, Role
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, MachineName
from forewarn.core.periods import Periods
from forewarn.core.presences import Verdict
from forewarn.core.scopes import Enabling, Machine, Presence, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused
from forewarn.testing.strategies import EPOCH as NOON

OPS = Actor(Role.OPERATOR, "ops")
RUNNING, STOPPED = Presence.RUNNING, Presence.STOPPED
DEALLOCATED, DELETED = Presence.DEALLOCATED, Presence.DELETED

PAIRS = list(product(EventType, Presence))
# By type: where it happens, where it is so already, and what the machine is afterwards.
TABLE = {
    EventType.FREEZE: ({RUNNING}, set(), None),
    EventType.REBOOT: ({RUNNING}, set(), None),
    EventType.REDEPLOY: ({RUNNING}, set(), None),
    EventType.REIMAGE: ({RUNNING}, set(), None),
    EventType.PREEMPT: ({RUNNING}, set(), DEALLOCATED),
    EventType.TERMINATE: ({RUNNING, STOPPED, DEALLOCATED}, set(), DELETED),
    EventType.POWER_OFF: ({RUNNING}, {STOPPED, DEALLOCATED}, STOPPED),
    EventType.DEALLOCATE: ({RUNNING, STOPPED}, {DEALLOCATED}, DEALLOCATED),
    EventType.START: ({STOPPED, DEALLOCATED}, {RUNNING}, RUNNING),
}


def ledger_with(*there: Presence) -> Ledger:
    machines = tuple(
        Machine(name=MachineName(f"web-{number}"), presence=presence)
        for number, presence in enumerate(there)
    )
    scope = Scope(name="web", kind=ScopeKind.SCALE_SET, machines=machines, enabling=Enabling.ALWAYS)
    return Ledger(scope=scope)


def announce(ledger: Ledger, event_type: EventType) -> announcing.Announced:
    numbers = count(1)
    wish = Wish(
        type=event_type,
        machines=tuple(machine.name for machine in ledger.scope.machines),
        if_not_told=IfNotTold.RUN_UNANNOUNCED,
    )
    return announcing.announce(
        ledger,
        wish,
        now=NOON,
        new_id=lambda: EventId(f"E{next(numbers)}"),
        rules=Periods(),
        actor=OPS,
    )


@pytest.mark.parametrize(("event_type", "presence"), PAIRS)
def test_what_may_happen_is_a_table(event_type: EventType, presence: Presence) -> None:
    happens, already, _ = TABLE[event_type]
    ledger = ledger_with(presence)

    verdict = presences.VERDICTS.get((event_type, presence))

    if presence in happens:
        assert verdict is Verdict.GO
        assert [e.type for e in announce(ledger, event_type).events] == [event_type]
    elif presence in already:
        assert verdict is Verdict.ALREADY
        assert announce(ledger, event_type).events == ()
        assert announce(ledger, event_type).decision.ledger is ledger
    else:
        assert verdict is None
        with pytest.raises(Refused, match=f"web-0 is {presence.value}: "):
            announce(ledger, event_type)


@pytest.mark.parametrize("event_type", EventType)
@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED])
def test_what_a_machine_is_afterwards_is_a_table(event_type: EventType, result: Result) -> None:
    happens, _, after = TABLE[event_type]
    for presence in happens:
        (event,) = announce(ledger_with(presence), event_type).events
        started = replace(event, status=EventStatus.STARTED, started_at=NOON)
        ledger = replace(ledger_with(presence), events=(started,))

        outcome = Outcome(MachineName("web-0"), result, NOON)
        (machine,) = starting.report(ledger, event.id, outcome, SERVICE).ledger.scope.machines

        expected = after if after is not None and result is Result.DONE else presence
        assert machine.presence is expected


@given(
    st.lists(st.sampled_from([RUNNING, STOPPED, DEALLOCATED]), min_size=1, max_size=5),
    st.sampled_from(sorted(presences.POWER_TYPES, key=str)),
)
def test_power_verbs_happen_at_once_to_those_that_need_it_and_nobody_is_told(
    there: list[Presence], verb: EventType
) -> None:
    announced = announce(ledger_with(*there), verb)

    already = TABLE[verb][1]
    concerned = {name for event in announced.events for name in event.machines}
    assert concerned == {f"web-{n}" for n, presence in enumerate(there) if presence not in already}
    assert {event.audience for event in announced.events} <= {Audience.OPERATORS}
    assert {event.status for event in announced.events} <= {EventStatus.STARTED}
    assert announced.decision.ledger.document == ledger_with().document


@pytest.mark.parametrize(("event_type", "presence"), PAIRS)
def test_what_is_scheduled_goes_on_where_it_still_makes_sense(
    event_type: EventType, presence: Presence
) -> None:
    """A machine that is only stopped keeps its place: what happens to its host happens to it."""
    happens, already, _ = TABLE[event_type]
    is_on_its_host = presence is STOPPED and presence not in already

    expected = presence in happens or is_on_its_host
    assert presences.is_concerned(event_type, presence) is expected
