"""What people call things."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName, Revision, ScopeId
from forewarn.core.scopes import Machine, Presence, Scope
from forewarn.errors import Refused, Unknown, UnknownEvent
from forewarn.service.directory import Directory
from forewarn.testing.worlds import OPERATOR, WEB, World

# The same names in another resource group, as two teams would choose them.
OTHER = replace(WEB, resource_group="rg2")


def noted(*scopes: Scope) -> Directory:
    directory = Directory()
    for scope in scopes:
        directory.note(Ledger(scope=scope, revision=Revision(1)))
    return directory


@pytest.mark.parametrize("name", ["web-0", "WEB-0", "rg1/web-0", "RG1/Web/web-0"])
def test_a_machine_is_found_by_any_of_its_names(name: str) -> None:
    directory = noted(WEB)

    assert directory.machine(name) == ("rg1/web", "web-0")


def test_a_machine_has_its_own_name_unless_others_have_it_too() -> None:
    assert noted(WEB).shortest("RG1/Web/web-0") == "web-0"
    assert noted(WEB, OTHER).shortest("rg2/web-0") == "rg2/web/web-0"


def test_a_machine_is_given_the_spelling_of_its_roster() -> None:
    directory = noted(Scope(name="DB", machines=(Machine(name=MachineName("DB")),)))

    assert directory.machine("db") == ("default/db", "DB")
    assert directory.machine("Default/Db") == ("default/db", "DB")


@pytest.mark.parametrize("name", ["", "web-9", "/web-0", "rg/web-0", "rg1/we/web-0", "web/web-0"])
def test_a_name_nobody_has_is_unknown(name: str) -> None:
    directory = noted(WEB)

    with pytest.raises(Unknown, match="forewarn fleet"):
        directory.machine(name)


def test_all_names_that_nobody_has_are_told_at_once() -> None:
    directory = noted(WEB)

    assert directory.machines(["web-1", "rg1/web-0"]) == [
        ("rg1/web", "web-1"),
        ("rg1/web", "web-0"),
    ]
    with pytest.raises(Unknown, match="no VM web-8, web-9;"):
        directory.machines(["web-0", "web-8", "web-9"])


def test_a_name_that_several_have_is_refused_with_the_choices() -> None:
    directory = noted(WEB, OTHER)

    with pytest.raises(Refused, match="rg1/web/web-0, rg2/web/web-0"):
        directory.machine("web-0")

    assert directory.machine("rg2/web-0") == ("rg2/web", "web-0")


def test_all_of_one_name_are_found() -> None:
    directory = noted(WEB, OTHER)

    assert directory.namesakes("WEB-0") == (("rg1/web", "web-0"), ("rg2/web", "web-0"))
    assert directory.namesakes("nobody") == ()


def test_two_scopes_of_one_group_are_told_apart_by_the_whole_path() -> None:
    directory = noted(WEB, replace(WEB, name="web2"))

    with pytest.raises(Refused, match="several"):
        directory.machine("rg1/web-0")

    assert directory.machine("rg1/web2/web-0") == ("rg1/web2", "web-0")


def test_a_host_is_known_by_the_machines_that_run_on_it() -> None:
    directory = noted(WEB, OTHER)

    assert directory.host("HOST-0") == (
        ("rg1/web", "web-0"),
        ("rg1/web", "web-3"),
        ("rg2/web", "web-0"),
        ("rg2/web", "web-3"),
    )
    with pytest.raises(Unknown, match="no VM runs on a host host-9"):
        directory.host("host-9")


def test_a_machine_that_is_gone_runs_on_no_host() -> None:
    gone = tuple(replace(machine, presence=Presence.DELETED) for machine in WEB.machines)
    directory = noted(replace(WEB, machines=gone))

    with pytest.raises(Unknown):
        directory.host("host-0")
    # It still has its name: whoever asks is told what became of it.
    assert directory.machine("web-0") == ("rg1/web", "web-0")


def test_a_roster_that_changed_is_known_as_it_is_now() -> None:
    directory = noted(WEB, OTHER)
    moved = replace(WEB.machines[1], host=HostName("host-9"))
    kept = replace(WEB, machines=(moved, WEB.machines[2]))

    directory.note(Ledger(scope=kept, revision=Revision(2)))

    assert directory.machine("web-0") == ("rg2/web", "web-0")
    assert directory.host("host-9") == (("rg1/web", "web-1"),)
    assert directory.host("host-1") == (("rg2/web", "web-1"),)
    directory.note(Ledger(scope=replace(WEB, machines=()), revision=Revision(3)))
    with pytest.raises(Unknown):
        directory.host("host-9")


def test_a_ledger_told_late_changes_nothing() -> None:
    directory = noted(WEB)
    directory.note(Ledger(scope=replace(WEB, machines=()), revision=Revision(3)))

    directory.note(Ledger(scope=WEB, revision=Revision(2)))

    with pytest.raises(Unknown):
        directory.machine("web-0")
    assert directory.scopes() == (WEB.id,)


def test_scopes_are_listed_in_order() -> None:
    assert noted(OTHER, WEB).scopes() == ("rg1/web", "rg2/web")


def test_an_event_is_found_in_any_spelling_until_it_is_forgotten() -> None:
    world = World(WEB)
    directory = world.parts.directory
    event = world.announce(EventType.FREEZE, "web-0")

    assert directory.event(event.id) == WEB.id
    assert directory.event(f"{{{event.id.lower()}}}") == WEB.id
    assert directory.eventful() == (WEB.id,)

    world.desk.cancel(event.id, OPERATOR)
    world.advance(timedelta(hours=25))
    assert directory.eventful() == ()
    with pytest.raises(UnknownEvent, match=event.id):
        directory.event(event.id)


def test_forgetting_one_event_keeps_the_others() -> None:
    world = World(WEB)
    first = world.announce(EventType.FREEZE, "web-0")
    world.desk.cancel(first.id, OPERATOR)
    world.advance(timedelta(hours=23))
    second = world.announce(EventType.REDEPLOY, "web-0")

    world.advance(timedelta(hours=2))

    assert world.parts.directory.event(second.id) == ScopeId("rg1/web")
    with pytest.raises(UnknownEvent):
        world.parts.directory.event(first.id)


def test_whether_anybody_is_there_at_all() -> None:
    assert not noted().has_machines
    assert not noted(replace(WEB, machines=())).has_machines
    assert noted(WEB).has_machines
