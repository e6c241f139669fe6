"""Every route for every role, exactly as the page about rights says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import SERVICE, Role
from forewarn.core.names import HostName, MachineName
from forewarn.core.rights import Principal
from forewarn.service.operations import Errand
from forewarn.testing.control_planes import SUBSCRIPTION, ControlPlane, Extras, faces
from forewarn.testing.worlds import WEB, World

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "rights.md"
READ_BYTES: Final = 1_000_000

# Another group's: what is hidden from one is there for the other.
OTHER: Final = replace(
    WEB,
    name="other",
    resource_group="rg2",
    machines=(
        replace(
            WEB.machines[0],
            name=MachineName("other-0"),
            addresses=("10.0.9.1",),
            host=HostName("host-9"),
        ),
    ),
)
# What the names in a path stand for here; all of it is of the group rg1, as far as it is of one.
NAMED: Final[Mapping[str, str]] = {
    "host": "host-0",
    "group": "rg1",
    "machine": "web-0",
    "principal": "shop",
    "tenant": "adfs",
    "nickname": "contoso",
    "letter": "1",
    "fault": "1",
    "subscription": SUBSCRIPTION,
    "name": "web-0",
    "instance": "0",
    "kind": "virtualMachines",
    "place": "local",
    "deployment": "d",
}
OF_RG1: Final = (b"rg1", b"web-0", b"web-1")
# Where only what is asked tells which group is meant.
BODIES: Final[Mapping[tuple[str, str], object]] = {
    ("POST", "/fabric/v1/webhooks"): {
        "name": "pager",
        "url": "https://hooks.example.org/hook",
        "groups": ["rg1"],
    },
}


# Those that mean others come first.
ABBREVIATIONS: Final = (
    ("{VM}", "{C}/virtualMachines/{name}"),
    ("{AS}", "{C}/availabilitySets/{name}"),
    ("{I}", "{SS}/virtualMachines/{instance}"),
    ("{SS}", "{C}/virtualMachineScaleSets/{name}"),
    ("{C}", "{S}/resourceGroups/{group}/providers/Microsoft.Compute"),
    ("{S}", "/subscriptions/{subscription}"),
)


@dataclass(frozen=True)
class Caller:
    """Somebody who calls: the column it is in, and whether rg1 is its business."""

    column: str
    principal: Principal | None
    is_of_rg1: bool = True


def _who(number: int, role: Role, *groups: str) -> Principal:
    return Principal(id=str(number), name=f"{role.value}-{number}", role=role, groups=groups)


CALLERS: Final = (
    Caller("anybody", None),
    Caller("reader", _who(1, Role.READER)),
    Caller("limited reader", _who(2, Role.READER, "rg1")),
    Caller("limited reader", _who(3, Role.READER, "rg2"), is_of_rg1=False),
    Caller("owner", _who(4, Role.OWNER, "rg1")),
    Caller("owner", _who(5, Role.OWNER, "rg2"), is_of_rg1=False),
    Caller("operator", _who(6, Role.OPERATOR)),
)


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def _rows() -> dict[tuple[str, str], dict[str, str]]:
    """The page's table of routes: by method and path, the word for each column."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    columns: list[str] = []
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for line in lines:
        method, path, *words = _cells(line)
        if (method, path) == ("method", "path"):
            columns = words
        elif columns and not method.startswith("-"):
            path = _spelled_out(path)
            assert (method, path) not in rows, f"{method} {path} is there twice"
            rows[method, path] = dict(zip(columns, words, strict=True))
    return rows


def _spelled_out(path: str) -> str:
    """A path without the page's abbreviations."""
    for short, meant in ABBREVIATIONS:
        path = path.replace(short, meant)
    return path


ROWS: Final = _rows()


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    known = [caller.principal for caller in CALLERS if caller.principal is not None]
    with ControlPlane(World(WEB, OTHER), *known) as plane:
        shop = {"name": "shop", "role": "owner", "groups": ["rg1"]}
        assert plane.ask("POST", "/fabric/v1/principals", shop, token="operator-6").status == 201
        yield plane


def test_every_route_is_on_the_page_and_every_line_of_it_is_a_route() -> None:
    table = faces(World(), Extras()).table()

    assert {(route.method, route.path) for route in table.routes} == set(ROWS)


def _made(plane: ControlPlane, path: str) -> dict[str, str]:
    """What a path names that must be made first; all of it is of the group rg1."""
    made: dict[str, str] = {}
    if "{event}" in path:
        made["event"] = plane.world.announce(EventType.FREEZE, "web-0").id
    if "{webhook}" in path:
        made["webhook"] = plane.webhook("rg1")
    if "{operation}" in path:
        errand = Errand(verb="restart", resource="web-0", group="rg1", actor=SERVICE)
        made["operation"] = plane.faces.arm.operations.follow(errand, WEB.id, ()).id
    return made


@pytest.mark.parametrize(("method", "path"), ROWS)
@pytest.mark.parametrize(
    "caller", CALLERS, ids=lambda caller: getattr(caller.principal, "name", "-")
)
def test_a_route_lets_in_whom_the_page_says(
    plane: ControlPlane, method: str, path: str, caller: Caller
) -> None:
    word = ROWS[method, path][caller.column]
    named = {**NAMED, **_made(plane, path)}
    target = re.sub(r"\{(\w+)\}", lambda name: named[name[1]], path)
    if method == "GET" and path.startswith("/subscriptions"):
        target += "?api-version=2024-07-01"
    token = "" if caller.principal is None else caller.principal.name

    with plane.asking(method, target, BODIES.get((method, path)), token=token) as response:
        # Some answers never end: what comes first is enough.
        told = response.read1(READ_BYTES)

    refused = 401 if caller.principal is None else 403
    is_refused = word == "no" or (word == "own" and not caller.is_of_rg1)
    assert (response.status == refused) is is_refused, told
    assert response.status < 500
    if word == "hidden":
        hidden = b"no webhook" in told or b"no operation" in told
        assert hidden is not caller.is_of_rg1
    if word == "some" and not caller.is_of_rg1:
        assert response.status == 200
        assert not [name for name in OF_RG1 if name in told]


def test_whoever_is_refused_is_written_down(plane: ControlPlane) -> None:
    plane.ask("POST", "/fabric/v1/backup", token="owner-4")

    principal, address, what = plane.authority.refused[-1]
    assert (principal, address) == (CALLERS[4].principal, "127.0.0.1")
    assert what.startswith("POST /fabric/v1/backup: ")
