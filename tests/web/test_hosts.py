"""Hosts under /fabric/v1: who runs there, and what becomes of them when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import SERVICE, Role
from forewarn.core.names import HostName
from forewarn.core.rights import Principal
from forewarn.core.scopes import Enabling
from forewarn.testing.control_planes import OPERATOR, ControlPlane
from forewarn.testing.sample_fleet import BATCH, CLASSIC
from forewarn.testing.worlds import WEB, World

OWNER = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg3",))
HOSTS = "/fabric/v1/hosts"
DAYS_7 = 7 * 24 * 3600


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(World(WEB, CLASSIC), OPERATOR, OWNER) as plane:
        yield plane


def test_a_host_shows_who_runs_there_and_what_is_announced_to_them(plane: ControlPlane) -> None:
    event = plane.world.announce(EventType.FREEZE, "web-0")

    host = plane.ask("GET", f"{HOSTS}/HOST-0").json

    assert (host["host"], host["is_busy"]) == ("host-0", False)
    assert host["scopes"] == [
        {"scope": "web", "resource_group": "rg1", "machines": ["web-0", "web-3"]},
        {"scope": "classic", "resource_group": "rg3", "machines": ["classic-0", "classic-2"]},
    ]
    assert [one["event_id"] for one in host["events"]] == [event.id]
    listed = plane.ask("GET", HOSTS).json["hosts"]
    assert [one["host"] for one in listed] == ["host-0", "host-1", "host-2"]
    assert listed[0] == host


def test_an_owner_sees_only_its_own_on_a_host(plane: ControlPlane) -> None:
    listed = plane.ask("GET", HOSTS, token="olga").json["hosts"]

    assert [one["host"] for one in listed] == ["host-0", "host-1"]
    assert {scope["resource_group"] for one in listed for scope in one["scopes"]} == {"rg3"}
    assert plane.ask("GET", f"{HOSTS}/host-2", token="olga").status == 403
    assert plane.ask("GET", f"{HOSTS}/host-9", token="olga").status == 404


def test_a_host_that_fails_hits_all_its_machines_at_once(plane: ControlPlane) -> None:
    reply = plane.ask("POST", f"{HOSTS}/host-0/failures", {"kind": "actual"})

    assert reply.status == 201
    events = reply.json["events"]
    assert {(one["type"], one["status"], one["cause"]) for one in events} == {
        ("Reboot", "Started", "hardware-failure")
    }
    assert [one["resources"] for one in events] == [["web-0", "web-3"], ["classic-0", "classic-2"]]
    assert plane.ask("GET", f"{HOSTS}/host-0").json["is_busy"] is True


def test_a_host_that_will_fail_is_announced_days_ahead(plane: ControlPlane) -> None:
    """Keeps S12: seven days where nothing else is said, less when the risk is high."""
    first = plane.ask("POST", f"{HOSTS}/host-2/failures", {"kind": "predicted"}).json["events"]
    risky = {"kind": "predicted", "type": "Redeploy", "notice_seconds": 3600}
    second = plane.ask("POST", f"{HOSTS}/host-1/failures", risky).json["events"]

    assert [(one["type"], one["notice_promised_seconds"]) for one in first] == [("Reboot", DAYS_7)]
    assert {(one["type"], one["notice_promised_seconds"], one["cause"]) for one in second} == {
        ("Redeploy", 3600, "predicted-failure")
    }


@pytest.mark.parametrize(
    ("host", "body", "status", "complaint"),
    [
        ("host-9", {"kind": "actual"}, 404, "no VM runs on a host host-9"),
        ("host-0", {}, 400, "kind"),
        ("host-0", {"kind": "imagined"}, 400, "kind"),
        ("host-0", {"kind": "actual", "type": "Explosion"}, 400, "no type is called 'Explosion'"),
        ("host-0", {"kind": "actual", "type": "Terminate"}, 409, "Freeze, Reboot or Redeploy"),
        ("host-0", {"kind": "actual", "notice_seconds": 60}, 409, "gives no notice"),
        ("host-0", {"kind": "predicted", "notice_seconds": -1}, 400, "--notice is 0s to"),
        ("host-0", {"kind": "predicted", "when": 1}, 400, "unknown field"),
    ],
)
def test_what_cannot_fail_so_is_refused_with_the_reason(
    plane: ControlPlane, host: str, body: object, status: int, complaint: str
) -> None:
    reply = plane.ask("POST", f"{HOSTS}/{host}/failures", body)

    assert reply.status == status
    assert complaint in reply.json["error"]["message"]


def test_whom_nobody_can_tell_is_moved_without_notice_only_if_that_is_said() -> None:
    with ControlPlane(World(BATCH)) as plane:
        refused = plane.ask("POST", f"{HOSTS}/host-0/failures", {"kind": "predicted"})
        body = {"kind": "predicted", "unannounced": True}
        done = plane.ask("POST", f"{HOSTS}/host-0/failures", body)

    assert refused.status == 409
    assert [one["announced"] for one in done.json["unannounced"]] == [False]


def test_a_host_is_drained_and_undrained_and_its_machines_are_told_once(
    plane: ControlPlane,
) -> None:
    drained = plane.ask("POST", f"{HOSTS}/HOST-0/drain", {})

    assert (drained.status, drained.json) == (200, {"events": [], "unannounced": []})
    assert plane.ask("GET", f"{HOSTS}/host-0").json["is_drained"] is True
    moving = {"move": True, "notice_seconds": 3600, "description": "a new disk"}
    told = plane.ask("POST", f"{HOSTS}/host-0/drain", moving).json["events"]
    assert [(one["type"], one["resources"], one["description"]) for one in told] == [
        ("Redeploy", ["web-0", "web-3"], "a new disk"),
        ("Redeploy", ["classic-0", "classic-2"], "a new disk"),
    ]
    assert plane.ask("POST", f"{HOSTS}/host-0/drain", moving).json["events"] == []

    undrained = plane.ask("POST", f"{HOSTS}/host-0/undrain", {})

    assert (undrained.status, undrained.json["is_drained"]) == (200, False)
    journal = [entry.what.value for entry in plane.world.journal()]
    assert [what for what in journal if "drained" in what] == ["drained", "undrained"]


def test_a_host_that_nobody_knows_is_not_drained(plane: ControlPlane) -> None:
    assert plane.ask("POST", f"{HOSTS}/host-9/drain", {}).status == 404
    assert plane.ask("POST", f"{HOSTS}/host-9/undrain", {}).status == 404


def test_where_machines_would_not_be_told_the_host_is_drained_all_the_same() -> None:
    with ControlPlane(World(replace(WEB, enabling=Enabling.ON_REQUEST)), OPERATOR) as plane:
        refusal = plane.ask("POST", f"{HOSTS}/host-0/drain", {"move": True})

        assert refusal.status == 409
        assert (
            "host-0 is drained, but not all of its VMs are to go"
            in refusal.json["error"]["message"]
        )
        assert plane.ask("GET", f"{HOSTS}/host-0").json["is_drained"] is True
        told = plane.ask("POST", f"{HOSTS}/host-0/drain", {"move": True, "unannounced": True})
        assert [one["type"] for one in told.json["unannounced"]] == ["Redeploy"]


def test_an_empty_host_is_shown_to_those_alone_who_see_everything(plane: ControlPlane) -> None:
    plane.world.parts.drains.drain(HostName("host-5"), SERVICE)

    listed = [one["host"] for one in plane.ask("GET", HOSTS).json["hosts"]]
    owned = [one["host"] for one in plane.ask("GET", HOSTS, token="olga").json["hosts"]]

    assert "host-5" in listed
    assert "host-5" not in owned
    assert plane.ask("GET", f"{HOSTS}/host-5").status == 200
    assert plane.ask("GET", f"{HOSTS}/host-5", token="olga").status == 403
