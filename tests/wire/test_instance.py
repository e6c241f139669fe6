"""What a machine reads about itself, whole and in parts."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.names import MachineName
from forewarn.core.scopes import Interface, Machine, Scope, ScopeKind
from forewarn.wire import refusals
from forewarn.wire.instance import (
    JSON_TYPE,
    MEMBERS_SINCE,
    TEXT_TYPE,
    Answer,
    dump_versions,
    instance,
    render,
    resource_id,
)
from forewarn.wire.refusals import Refusal
from forewarn.wire.versions import INSTANCE_VERSIONS

NEWEST = INSTANCE_VERSIONS[0]
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/Shop/providers/Microsoft.Compute"

WEB_3 = Machine(
    name=MachineName("Web_3"),
    addresses=("10.0.0.4", "fd00::4", "10.0.0.5"),
    update_domain=2,
    size="Standard_D2s_v5",
    zone="1",
    tags=(("Department", "IT"), ("Stage", "prod")),
)
WEB = Scope(name="Web", resource_group="Shop", kind=ScopeKind.SCALE_SET, location="westus")
DOCUMENT = instance(WEB, WEB_3, subscription_id=SUBSCRIPTION)


def asked(path: str, *, form: str | None = None, version: str = NEWEST) -> Answer | Refusal:
    return render(DOCUMENT, tuple(path.split("/")) if path else (), version=version, form=form)


def text(path: str, version: str = NEWEST) -> str:
    answer = asked(path, form="text", version=version)
    assert isinstance(answer, Answer)
    assert answer.media_type == TEXT_TYPE
    return answer.body.decode()


def content(path: str = "", version: str = NEWEST) -> object:
    answer = asked(path, version=version)
    assert isinstance(answer, Answer)
    assert answer.media_type == JSON_TYPE
    parsed: object = json.loads(answer.body)
    return parsed


def compute(scope: Scope, machine: Machine, version: str = NEWEST) -> dict[str, object]:
    document = instance(scope, machine, subscription_id=SUBSCRIPTION)
    answer = render(document, ("compute",), version=version, form="json")
    assert isinstance(answer, Answer)
    parsed = json.loads(answer.body)
    assert isinstance(parsed, dict)
    return parsed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("compute/name", "Web_3"),
        ("compute/platformUpdateDomain", "2"),
        ("compute/tags", "Department:IT;Stage:prod"),
        ("compute/tagsList/1/name", "Stage"),
        ("compute/osProfile/computerName", "Web_3"),
        ("compute/vmScaleSetName", "Web"),
        ("compute/priority", "Regular"),
        ("compute/evictionPolicy", ""),
        ("network/interface/0/ipv4/ipAddress/0/privateIpAddress", "10.0.0.4"),
        ("network/interface/0/ipv4/ipAddress/1/privateIpAddress", "10.0.0.5"),
        ("network/interface/0/ipv6/ipAddress/0/privateIpAddress", "fd00::4"),
        ("network/interface/0/macAddress", ""),
        ("Compute/NAME/", "Web_3"),
    ],
)
def test_a_value_is_read_as_text(path: str, value: str) -> None:
    """Keeps S14: a machine learns its own name, to the letter, to find itself in Resources."""
    assert text(path) == value


@pytest.mark.parametrize("form", [None, "json", "JSON"])
def test_a_value_needs_to_be_asked_for_as_text(form: str | None) -> None:
    assert asked("compute/name", form=form) is refusals.LEAF_IS_TEXT


def test_another_format_is_refused() -> None:
    assert asked("compute", form="xml") is refusals.UNKNOWN_FORMAT


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "compute/nothing",
        "compute/name/more",
        "compute//name",
        "network/interface/1",
        "network/interface/-1",
        "network/interface/00",
        "network/interface/" + "9" * 5000,
    ],
)
@pytest.mark.parametrize("form", [None, "text"])
def test_what_does_not_exist_is_not_found(path: str, form: str | None) -> None:
    assert asked(path, form=form) is refusals.NO_SUCH_PATH


@pytest.mark.parametrize(
    ("path", "listing"),
    [
        ("", "compute/\nnetwork/"),
        ("network/interface/", "0/"),
        ("network/interface/0", "ipv4/\nipv6/\nmacAddress"),
        ("compute/publicKeys", ""),
    ],
)
def test_a_node_as_text_lists_what_is_below(path: str, listing: str) -> None:
    """Azure sent two bytes for the interfaces of a machine that has one."""
    assert text(path) == listing


def test_a_node_is_json_unless_asked_otherwise() -> None:
    assert content("compute/tagsList") == [
        {"name": "Department", "value": "IT"},
        {"name": "Stage", "value": "prod"},
    ]
    assert content("network") == {
        "interface": [
            {
                "ipv4": {
                    "ipAddress": [
                        {"privateIpAddress": "10.0.0.4", "publicIpAddress": ""},
                        {"privateIpAddress": "10.0.0.5", "publicIpAddress": ""},
                    ],
                    "subnet": [{"address": "", "prefix": ""}],
                },
                "ipv6": {"ipAddress": [{"privateIpAddress": "fd00::4"}]},
                "macAddress": "",
            }
        ]
    }


def test_a_machine_without_addresses_has_no_interface() -> None:
    bare = Machine(name=MachineName("bare"))

    document = instance(WEB, bare, subscription_id=SUBSCRIPTION)
    answer = render(document, ("network",), version=NEWEST, form=None)

    assert answer == Answer(b'{"interface":[]}', JSON_TYPE)


def test_a_machine_with_ipv6_alone_has_no_subnet_of_ipv4() -> None:
    modern = Machine(name=MachineName("modern"), addresses=("fd00::9",))

    document = instance(WEB, modern, subscription_id=SUBSCRIPTION)
    answer = render(document, ("network", "interface", "0"), version=NEWEST, form=None)

    assert isinstance(answer, Answer)
    assert json.loads(answer.body)["ipv4"] == {"ipAddress": [], "subnet": []}


@pytest.mark.parametrize("version", INSTANCE_VERSIONS)
def test_a_version_has_the_members_introduced_so_far(version: str) -> None:
    shown = compute(WEB, WEB_3, version)

    for name, since in MEMBERS_SINCE.items():
        member = name.removeprefix("compute.")
        if "." not in member:
            assert (member in shown) == (since <= version), member
    assert shown["name"] == "Web_3"


def test_a_member_of_a_member_has_its_own_version() -> None:
    assert content("compute/osProfile", "2020-07-15") == {
        "adminUsername": "",
        "computerName": "Web_3",
    }
    assert asked("compute/osProfile", version="2020-06-01") is refusals.NO_SUCH_PATH


def test_a_table_of_versions_names_only_what_exists() -> None:
    for name in MEMBERS_SINCE:
        assert isinstance(asked(name.replace(".", "/"), form="text"), Answer), name


@pytest.mark.parametrize(
    ("kind", "tail"),
    [
        (ScopeKind.STANDALONE, "virtualMachines/Web_3"),
        (ScopeKind.AVAILABILITY_SET, "virtualMachines/Web_3"),
        (ScopeKind.SCALE_SET, "virtualMachineScaleSets/Web/virtualMachines/3"),
        (ScopeKind.CLOUD_SERVICE, "cloudServices/Web/roleInstances/Web_3"),
    ],
)
def test_a_resource_id_follows_the_kind_of_the_scope(kind: ScopeKind, tail: str) -> None:
    scope = replace(WEB, kind=kind)

    assert resource_id(scope, WEB_3, subscription_id=SUBSCRIPTION) == f"{GROUP}/{tail}"


def test_only_a_scale_set_has_a_name_and_a_placement_group() -> None:
    alone = compute(replace(WEB, kind=ScopeKind.STANDALONE), WEB_3)
    together = compute(WEB, WEB_3)

    assert (alone["vmScaleSetName"], alone["placementGroupId"]) == ("", "")
    assert together["vmScaleSetName"] == "Web"
    assert uuid.UUID(str(together["placementGroupId"])).version == 5


def test_a_spot_machine_says_so() -> None:
    spot = compute(replace(WEB, spot=True), WEB_3)

    assert (spot["priority"], spot["evictionPolicy"]) == ("Spot", "Deallocate")


def test_a_machine_without_an_id_gets_a_lasting_one() -> None:
    derived = compute(WEB, WEB_3)["vmId"]

    assert derived == "4060f11c-1c4d-5b91-b583-5b8dcecca8b0"
    assert compute(replace(WEB, name="WEB"), WEB_3)["vmId"] == derived
    assert compute(replace(WEB, name="other"), WEB_3)["vmId"] != derived
    assert compute(WEB, replace(WEB_3, name=MachineName("Web_4")))["vmId"] != derived
    assert compute(WEB, replace(WEB_3, vm_id="its-own"))["vmId"] == "its-own"


def test_every_value_is_text() -> None:
    def leaves(node: object) -> list[object]:
        if isinstance(node, dict):
            return [leaf for below in node.values() for leaf in leaves(below)]
        if isinstance(node, list):
            return [leaf for below in node for leaf in leaves(below)]
        return [node]

    assert all(isinstance(leaf, str) for leaf in leaves(content()))


@given(
    st.lists(st.sampled_from(["compute", "network", "interface", "0", "name", ""]) | st.text()),
    st.sampled_from(INSTANCE_VERSIONS),
    st.sampled_from([None, "json", "text"]) | st.text(),
)
def test_any_path_is_answered(path: list[str], version: str, form: str | None) -> None:
    answer = render(DOCUMENT, tuple(path), version=version, form=form)

    assert isinstance(answer, Answer | Refusal)


def test_the_general_list_is_shown_oldest_first() -> None:
    listed = json.loads(dump_versions())

    assert listed == {"apiVersions": list(reversed(INSTANCE_VERSIONS))}


def test_a_machine_whose_interfaces_are_known_shows_each_with_its_own_addresses() -> None:
    """As Azure writes them, a MAC has capitals and nothing between."""
    interfaces = (
        Interface("52:54:00:ab:cd:01", ("10.0.0.4",)),
        Interface("52:54:00:ab:cd:02", ("fd00::4",)),
        Interface("52:54:00:ab:cd:03"),
    )
    machine = replace(WEB_3, interfaces=interfaces)

    answer = render(
        instance(WEB, machine, subscription_id=SUBSCRIPTION),
        ("network", "interface"),
        version=NEWEST,
        form=None,
    )

    assert isinstance(answer, Answer)
    shown = json.loads(answer.body)
    assert [one["macAddress"] for one in shown] == ["525400ABCD01", "525400ABCD02", "525400ABCD03"]
    assert [len(one["ipv4"]["ipAddress"]) for one in shown] == [1, 0, 0]
    assert [len(one["ipv6"]["ipAddress"]) for one in shown] == [0, 1, 0]
