"""The operators' JSON: what is shown, to the member, and what is understood."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.events import (
    Approval,
    Audience,
    Cause,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Outcome,
    Result,
)
from forewarn.core.journal import Actor, Entry, Role, What
from forewarn.core.ledgers import Ledger
from forewarn.core.names import EventId, HostName, Incarnation, MachineName, ScopeId
from forewarn.core.scopes import (
    AutoApproval,
    Enabling,
    Machine,
    Origin,
    OwnerPolicies,
    Presence,
    Scope,
    ScopeKind,
)
from forewarn.core.wishes import IfNotTold
from forewarn.errors import Malformed
from forewarn.testing import strategies
from forewarn.wire import control, control_forms, instance
from forewarn.wire.control import (
    Announcement,
    Asked,
    Backup,
    Behavior,
    FleetFile,
    Nothing,
    Postponement,
    Pruning,
    Resolution,
)
from forewarn.wire.control_forms import Form, ScopeNames

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
WEB = ScopeNames("RG1", "Web")
ID = "A123BC45-1234-5678-AB90-ABCDEF123456"

SCHEDULED = Event(
    id=EventId(ID),
    type=EventType.FREEZE,
    source=EventSource.PLATFORM,
    audience=Audience.OPERATORS,
    machines=(MachineName("web-0"),),
    update_domain=1,
    announced_by="operator",
    announced_at=NOON,
    notice=timedelta(),
    not_before=NOON,
)
ENDED = Event(
    id=EventId(ID),
    type=EventType.REBOOT,
    source=EventSource.USER,
    cause=Cause.MAINTENANCE,
    machines=(MachineName("web-0"), MachineName("web-1")),
    update_domain=0,
    description="Restart",
    duration=timedelta(seconds=9.5),
    status=EventStatus.COMPLETED,
    announced_by="operator",
    announced_at=NOON,
    notice=timedelta(minutes=15),
    not_before=NOON + timedelta(hours=2),
    earlier=(NOON + timedelta(hours=1),),
    readable_at=NOON + timedelta(microseconds=1500),
    approval=Approval("web-1", "guest", "10.77.0.12", NOON + timedelta(minutes=3)),
    hold="something",
    started_at=NOON + timedelta(minutes=5),
    outcomes=(Outcome(MachineName("web-0"), Result.FAILED, NOON, "no power"),),
    ended_at=NOON + timedelta(minutes=6),
)


def shown(form: Form) -> Any:  # noqa: ANN401 - JSON is anything
    return json.loads(control.dump(form))


def test_an_event_of_which_little_is_known_has_every_member() -> None:
    assert shown(control_forms.event_form(SCHEDULED, WEB)) == {
        "event_id": ID,
        "type": "Freeze",
        "status": "Scheduled",
        "resources": ["web-0"],
        "not_before": "2030-01-01T12:00:00Z",
        "scope": "Web",
        "resource_group": "RG1",
        "source": "Platform",
        "cause": "maintenance",
        "description": "",
        "duration_seconds": None,
        "update_domain": 1,
        "announced": False,
        "announced_at": "2030-01-01T12:00:00Z",
        "announced_by": "operator",
        "readable_at": None,
        "approved": None,
        "hold": None,
        "started_at": None,
        "ended_at": None,
        "notice_promised_seconds": 0,
        "notice_given_seconds": None,
        "not_before_earlier": [],
        "outcomes": [],
    }


def test_the_record_of_an_event_says_who_did_what_when_and_from_where() -> None:
    """Keeps N6: announced, readable, approved by whom and from where, started, ended."""
    record = shown(control_forms.event_form(ENDED, WEB))

    assert record["announced"] is True
    assert record["readable_at"] == "2030-01-01T12:00:00.001500Z"
    assert record["approved"] == {
        "by": "web-1",
        "role": "guest",
        "address": "10.77.0.12",
        "at": "2030-01-01T12:03:00Z",
    }
    assert record["hold"] == "something"
    assert record["started_at"] == "2030-01-01T12:05:00Z"
    assert record["ended_at"] == "2030-01-01T12:06:00Z"
    assert record["duration_seconds"] == 9.5
    assert record["notice_promised_seconds"] == 900
    assert record["notice_given_seconds"] == pytest.approx(299.9985)
    assert record["not_before_earlier"] == ["2030-01-01T13:00:00Z"]
    assert record["outcomes"] == [
        {
            "resource": "web-0",
            "result": "failed",
            "at": "2030-01-01T12:00:00Z",
            "detail": "no power",
        }
    ]


def test_a_scope_shows_its_policies_and_its_machines() -> None:
    machine = Machine(
        name=MachineName("web-0"),
        addresses=("10.77.0.11",),
        host=HostName("host-a"),
        update_domain=2,
        vm_id="4f5c",
    )
    scope = Scope(
        name="Web",
        resource_group="RG1",
        kind=ScopeKind.SCALE_SET,
        machines=(machine,),
        enabling=Enabling.ON_REQUEST,
        terminate_notice=timedelta(minutes=5),
        user_operations_max=10,
        auto_approve=(AutoApproval.USER_REBOOT,),
    )

    assert shown(control_forms.scope_form(Ledger(scope=scope, incarnation=Incarnation(7)))) == {
        "scope": "Web",
        "resource_group": "RG1",
        "kind": "scale-set",
        "enabled": False,
        "enabling": "on-request",
        "update_domains": 5,
        "terminate_notice_seconds": 300,
        "spot": False,
        "user_operations_max": 10,
        "auto_approve": ["user-reboot"],
        "incarnation": 7,
        "machines": [
            {
                "name": "web-0",
                "addresses": ["10.77.0.11"],
                "host": "host-a",
                "update_domain": 2,
                "presence": "running",
                "origin": "file",
                "vm_id": "4f5c",
            }
        ],
    }


def test_a_scope_shows_what_is_in_force_whoever_said_it() -> None:
    said = OwnerPolicies(approve_redeploy=True, terminate_notice=timedelta(minutes=9))
    scope = Scope(
        name="Web", kind=ScopeKind.SCALE_SET, terminate_notice=timedelta(minutes=5), owner=said
    )

    form = shown(control_forms.scope_form(Ledger(scope=scope)))

    assert form["terminate_notice_seconds"] == 540
    assert form["auto_approve"] == ["user-redeploy"]


@pytest.mark.parametrize(("origin", "is_shown"), [(Origin.FILE, True), (Origin.API, False)])
def test_a_deleted_machine_is_shown_while_a_file_may_still_name_it(
    origin: Origin, *, is_shown: bool
) -> None:
    machine = Machine(name=MachineName("web-0"), presence=Presence.DELETED, origin=origin)

    form = shown(control_forms.scope_form(Ledger(scope=Scope(name="Web", machines=(machine,)))))

    assert bool(form["machines"]) is is_shown


@pytest.mark.parametrize("verb", ["PowerOff", "Start", "Deallocate", "Reimage"])
def test_what_owners_do_to_their_own_machines_is_not_announced_by_operators(verb: str) -> None:
    asked = control.load(control.Announcement, json.dumps({"type": verb}).encode())

    with pytest.raises(Malformed, match="give one of Freeze, Reboot, Redeploy, Preempt, Terminate"):
        _ = asked.wish


def test_a_machine_without_an_id_of_its_own_shows_the_one_that_its_guest_reads() -> None:
    machine = Machine(name=MachineName("web-0"))
    scope = Scope(name="Web", machines=(machine,))

    (form,) = shown(control_forms.scope_form(Ledger(scope=scope)))["machines"]

    assert form["vm_id"] in json.dumps(instance.instance(scope, machine, subscription_id=""))


def test_a_journal_entry_shows_its_event_as_it_was_then() -> None:
    entry = Entry(
        at=NOON,
        scope=ScopeId("rg1/web"),
        what=What.TIMED_OUT,
        actor=Actor(Role.GUEST, "web-0", "10.77.0.11"),
        event=SCHEDULED,
        note="late",
        incarnation=Incarnation(3),
    )

    line = shown(control_forms.entry_form(entry, "17", control_forms.names_of(entry.scope)))

    assert line.pop("event")["scope"] == "web"
    assert line == {
        "cursor": "17",
        "at": "2030-01-01T12:00:00Z",
        "scope": "web",
        "resource_group": "rg1",
        "what": "timed out",
        "by": {"role": "guest", "name": "web-0", "address": "10.77.0.11"},
        "note": "late",
        "incarnation": 3,
    }


def test_an_entry_about_the_whole_service_names_no_scope() -> None:
    actor = Actor(Role.OPERATOR, "operator")
    entry = Entry(at=NOON, scope=ScopeId(""), what=What.PRUNED, actor=actor)

    line = shown(control_forms.entry_form(entry, "1", control_forms.names_of(entry.scope)))

    assert (line["scope"], line["resource_group"], line["event"]) == ("", "", None)


@given(strategies.ledgers())
def test_whatever_is_in_a_ledger_can_be_shown(ledger: Ledger) -> None:
    names = control_forms.names_in(ledger)

    assert shown(control_forms.scope_form(ledger))["scope"] == ledger.scope.name
    for event in ledger.events:
        record = shown(control_forms.event_form(event, names))
        assert datetime.fromisoformat(record["not_before"]) == event.not_before


def test_an_announcement_is_a_wish() -> None:
    body = {
        "type": "rEBOOT",
        "machines": ["web-0"],
        "hosts": ["host-a"],
        "source": "User",
        "cause": "maintenance",
        "notice_seconds": 1200,
        "duration_seconds": 0.5,
        "description": "Größeres Update",
        "unannounced": True,
    }

    asked = control.load(Announcement, json.dumps(body).encode())

    assert asked.hosts == ("host-a",)
    assert asked.wish.type is EventType.REBOOT
    assert asked.wish.source is EventSource.USER
    assert asked.wish.machines == ("web-0",)
    assert asked.wish.notice == timedelta(minutes=20)
    assert asked.wish.duration == timedelta(seconds=0.5)
    assert asked.wish.description == "Größeres Update"
    assert asked.wish.if_not_told is IfNotTold.RUN_UNANNOUNCED


def test_what_an_announcement_leaves_out_is_the_usual() -> None:
    wish = control.load(Announcement, b'{"type": "Freeze"}').wish

    assert wish.source is EventSource.PLATFORM
    assert wish.cause is Cause.MAINTENANCE
    assert (wish.notice, wish.duration, wish.description) == (None, None, None)
    assert wish.if_not_told is IfNotTold.REFUSE


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_can_be_given(cause: Cause) -> None:
    body = json.dumps({"type": "Freeze", "cause": cause.value}).encode()

    assert control.load(Announcement, body).wish.cause is cause


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"type": "Explode"}, "Freeze, Reboot, Redeploy, Preempt, Terminate"),
        ({"source": "nobody"}, "Platform, User"),
        ({"cause": "spite"}, "hardware-failure"),
        ({"machine": ["web-0"]}, "unknown field `machine`"),
        ({"machines": "web-0"}, "a VM's name is text of 1 to 300"),
        ({"machines": [""]}, "a VM's name is text of 1 to 300"),
        ({"notice_seconds": -1}, "--notice is 0s to 366d"),
        ({"notice_seconds": 366 * 24 * 3600 + 1}, "--notice is 0s to 366d"),
        ({"notice_seconds": "15m"}, "as notice_seconds, a number"),
        ({"duration_seconds": -0.1}, "--duration is 0s to 24h"),
        ({"duration_seconds": 24 * 3600 + 1}, "--duration is 0s to 24h"),
        ({"description": "x" * 1001}, "--description is text of at most 1000"),
        ({"description": "two\nlines"}, "control characters"),
        ({"description": "\x1b[31m"}, "control characters"),
        ({"unannounced": 1}, "unannounced: Expected `bool`"),
    ],
)
def test_an_announcement_that_cannot_be_meant_is_malformed(
    more: dict[str, object], complaint: str
) -> None:
    body = json.dumps({"type": "Freeze", "machines": ["web-0"], **more}).encode()

    with pytest.raises(Malformed, match=complaint):
        _ = control.load(Announcement, body).wish


def test_a_postponement_is_to_an_instant_or_by_a_while() -> None:
    to = control.load(Postponement, b'{"to": "2030-01-01T14:00:00+02:00"}').later
    by = control.load(Postponement, b'{"by_seconds": 90}').later

    assert to == NOON
    assert isinstance(to, datetime)
    assert to.tzinfo is UTC
    assert by == timedelta(seconds=90)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"to": "2030-01-01T14:00:00Z", "by_seconds": 90}',
        b'{"to": "2030-01-01T14:00:00"}',
        b'{"to": "9999-12-31T23:59:59.9Z"}',
        b'{"to": "0001-01-01T00:00:00+23:00"}',
        b'{"to": 1893499200}',
        b'{"by_seconds": 0}',
        b'{"by_seconds": 1e300}',
        b'{"by_seconds": NaN}',
    ],
)
def test_a_postponement_to_nowhere_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        _ = control.load(Postponement, body).later


def test_a_resolution_is_completed_or_failed() -> None:
    assert control.load(Resolution, b'{"result": "completed"}').word is Result.DONE
    assert control.load(Resolution, b'{"result": "failed"}').word is Result.FAILED
    with pytest.raises(Malformed):
        control.load(Resolution, b'{"result": "lost"}')


def test_the_journal_is_pruned_before_an_instant() -> None:
    assert control.load(Pruning, b'{"before": "2030-01-01T12:00:00Z"}').instant == NOON


@pytest.mark.parametrize("path", ["", "backup.db", "./backup.db", "~/backup.db", "/tmp/\0"])
def test_a_backup_goes_to_an_absolute_path(path: str) -> None:
    body = json.dumps({"path": path}).encode()

    with pytest.raises(Malformed, match="begin with /"):
        _ = control.load(Backup, body).file

    assert str(control.load(Backup, b'{"path": "/var/b.db"}').file) == "/var/b.db"


def test_an_empty_body_counts_as_an_empty_object() -> None:
    assert control.load(Nothing, b"") == control.load(Nothing, b"{}")


@given(
    st.sampled_from(
        [Nothing, FleetFile, Announcement, Postponement, Resolution, Pruning, Backup, Behavior]
    ),
    st.one_of(
        st.binary(),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_whatever_the_bytes_the_only_error_is_malformed(kind: type[Asked], body: bytes) -> None:
    try:
        asked = control.load(kind, body)
    except Malformed as error:
        # No path of a schema: whoever typed an option has never seen one.
        assert "$" not in str(error) or b"$" in body  # noqa: PT017 - either way
    else:
        assert isinstance(asked, kind)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [("actual", Cause.HARDWARE_FAILURE), ("predicted", Cause.PREDICTED_FAILURE)],
)
def test_a_failure_is_announced_to_whoever_is_on_the_host(kind: str, cause: Cause) -> None:
    body = {"kind": kind, "type": "Redeploy", "notice_seconds": 900, "description": "smoke"}

    announcement = control.load(control.Failure, json.dumps(body).encode()).announcement("h1")

    assert announcement == Announcement(
        type="Redeploy",
        hosts=("h1",),
        cause=cause.value,
        notice_seconds=900,
        description="smoke",
    )


def test_who_leaves_a_host_is_told_by_its_impact() -> None:
    draining = control.load(control.Draining, b'{"move": true, "notice_seconds": 600}')

    assert draining.announcement(EventType.FREEZE, ("web-0",)) == Announcement(
        type="Freeze", machines=("web-0",), notice_seconds=600
    )


@pytest.mark.parametrize(
    ("said", "taking"),
    [
        ({"behavior": "fails"}, None),
        (
            {"behavior": "obeys", "type": "Reboot", "takes_seconds": 90},
            (EventType.REBOOT, timedelta(seconds=90)),
        ),
        ({"type": "Freeze", "takes_seconds": 5}, (EventType.FREEZE, timedelta(seconds=5))),
    ],
)
def test_a_behavior_says_how_a_machine_takes_it_and_for_how_long(
    said: dict[str, Any], taking: tuple[EventType, timedelta] | None
) -> None:
    behavior = control.load(Behavior, json.dumps({"machine": "web-0", **said}).encode())

    assert behavior.taking == taking


@pytest.mark.parametrize("said", [{}, {"type": "Freeze"}, {"takes_seconds": 5}])
def test_half_a_behavior_is_malformed(said: dict[str, Any]) -> None:
    behavior = control.load(Behavior, json.dumps({"machine": "web-0", **said}).encode())

    with pytest.raises(Malformed, match="which go together"):
        assert behavior.taking


def test_an_instant_is_utc_and_what_is_none_is_malformed() -> None:
    assert control.instant("until", "2030-01-01T13:00:00+01:00") == NOON

    with pytest.raises(Malformed, match=r"until is .* not .noon."):
        control.instant("until", "noon")
