"""What libvirt's domains are as machines, and where a machine goes that must leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: pip install libvirt-python")

from forewarn.core.names import HostName, MachineName, ScopeId
from forewarn.core.scopes import Enabling, Interface, Machine, Origin, Presence, Scope, ScopeKind
from forewarn.errors import Refused
from forewarn.fabrics.libvirt import census, placement
from forewarn.fabrics.libvirt.census import Census
from forewarn.fabrics.libvirt.placement import Berth, Mover
from forewarn.testing.hypervisors import PretendedHost, domain_xml, ours, uuid_of

SCOPE = "scope='web' group='rg1' kind='availability-set'"
NIC = (
    "<interface type='bridge'><source bridge='br0'/><mac address='52:54:00:00:00:01'/>"
    "{inside}</interface>"
)


def counted(tmp_path: Path, *domains: str) -> Census:
    host = PretendedHost(tmp_path, "host-a", *domains)
    host.link.connect()
    survey = host.link.survey()
    host.link.close()
    assert survey.unread == ()
    return census.count(((survey.host, one) for one in survey.residents), Enabling.ALWAYS)


def test_a_domain_that_says_nothing_is_a_machine_of_its_own(tmp_path: Path) -> None:
    found = counted(tmp_path, domain_xml("db"))

    (declared,) = found.declarations()
    assert declared.scope == Scope(
        name="db",
        resource_group="default",
        kind=ScopeKind.STANDALONE,
        enabling=Enabling.ALWAYS,
        origin=Origin.CENSUS,
        machines=(
            Machine(
                name=MachineName("db"),
                host=HostName("host-a"),
                origin=Origin.CENSUS,
                vm_id=uuid_of("db"),
            ),
        ),
    )
    assert declared.settled == frozenset()


def test_metadata_says_which_scope_and_all_the_rest(tmp_path: Path) -> None:
    attributes = (
        f"{SCOPE} name='front' update-domain='3' update-domains='7' size='small' zone='2' "
        "location='attic' spot='no' enabled='on-request'"
    )
    tags = "<forewarn:tag name='tier' value='front'/><forewarn:tag name='of' value='us'/>"

    found = counted(tmp_path, domain_xml("web-0", metadata=ours(attributes, tags)))

    (declared,) = found.declarations()
    scope = declared.scope
    assert (scope.id, scope.kind, scope.update_domains) == (
        "rg1/web",
        ScopeKind.AVAILABILITY_SET,
        7,
    )
    assert (scope.location, scope.enabling) == ("attic", Enabling.ON_REQUEST)
    (machine,) = scope.machines
    assert (machine.name, machine.update_domain, machine.size, machine.zone) == (
        "front",
        3,
        "small",
        "2",
    )
    assert machine.tags == (("tier", "front"), ("of", "us"))
    assert declared.settled == {"front"}


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("", "<forewarn:address mac='52:54:00:00:00:01' ip='10.77.0.11'/>"),
        ("<filterref filter='x'><parameter name='IP' value='10.77.0.11'/></filterref>", ""),
        ("<ip address='10.77.0.11' prefix='24'/>", ""),
        # What was written for us is worth more than what is there for others.
        (
            "<ip address='10.77.0.99' prefix='24'/>",
            "<forewarn:address mac='52:54:00:00:00:01' ip='10.77.0.11'/>",
        ),
    ],
)
def test_an_address_is_taken_from_the_hosts_side(tmp_path: Path, inside: str, told: str) -> None:
    devices = NIC.format(inside=inside)

    found = counted(tmp_path, domain_xml("web-0", metadata=ours(content=told), devices=devices))

    (lodger,) = found.lodgers
    assert lodger.machine.addresses == ("10.77.0.11",)
    assert lodger.machine.interfaces == (Interface("52:54:00:00:00:01", ("10.77.0.11",)),)


def test_one_scope_has_the_machines_of_all_that_name_it(tmp_path: Path) -> None:
    found = counted(
        tmp_path,
        domain_xml("web-1", metadata=ours(SCOPE)),
        domain_xml("web-0", metadata=ours(SCOPE)),
    )

    (declared,) = found.declarations()
    assert [machine.name for machine in declared.scope.machines] == ["web-0", "web-1"]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ("kind='herd'", "one of standalone, cloud-service, availability-set, scale-set"),
        ("update-domain='-1'", "give a whole number"),
        ("update-domain='9'", "in update domain 9"),
        ("update-domains='99'", "give 1 to 20"),
        ("spot='perhaps'", "write yes or no"),
        ("scope='a b'", "letters, digits"),
        ("colour='red'", "means nothing here"),
    ],
)
def test_who_cannot_be_in_a_fleet_is_named_and_keeps_nobody_out(
    tmp_path: Path, metadata: str, why: str
) -> None:
    found = counted(tmp_path, domain_xml("bad", metadata=ours(metadata)), domain_xml("good"))

    (declared,) = found.declarations()
    assert declared.scope.name == "good"
    (line,) = found.left_out
    assert line.startswith("bad on host-a is left out: ")
    assert why in line


@pytest.mark.parametrize(
    ("attributes", "content", "why"),
    [
        ("", "<forewarn:ephemeral disk='vdz'/>", "no disk backed by a file has that target"),
        ("freeze='deep'", "", "write pause or migrate"),
        ("", "<forewarn:adress ip='10.77.0.11'/>", "has a <adress>, which means nothing here"),
        (
            "",
            "<forewarn:address mac='52:54:00:00:00:99' ip='10.77.0.11'/>",
            "no interface has that MAC",
        ),
    ],
)
def test_what_its_parts_say_must_be_right_too(
    tmp_path: Path, attributes: str, content: str, why: str
) -> None:
    host = PretendedHost(tmp_path, "host-a", domain_xml("x", metadata=ours(attributes, content)))
    host.link.connect()

    survey = host.link.survey()

    assert survey.residents == ()
    assert why in survey.unread[0]
    host.link.close()


def test_yes_is_said_as_in_a_fleet_file_too(tmp_path: Path) -> None:
    words = ("yes", "no", "true", "false")

    found = counted(tmp_path, *(domain_xml(w, metadata=ours(f"spot='{w}'")) for w in words))

    assert {d.scope.name for d in found.declarations() if d.scope.spot} == {"yes", "true"}


def test_no_address_is_no_machine(tmp_path: Path) -> None:
    told = "<forewarn:address mac='52:54:00:00:00:01' ip='10.77.0'/>"
    devices = NIC.format(inside="")

    found = counted(tmp_path, domain_xml("web-0", metadata=ours(content=told), devices=devices))

    assert "is no IP address" in found.left_out[0]


def test_who_was_leased_an_address_is_known(tmp_path: Path) -> None:
    """Of two with one address that matters: see `wiring.hosting.admit`."""
    told = "<forewarn:address mac='52:54:00:00:00:01' ip='10.77.0.11'/>"
    host = PretendedHost(
        tmp_path,
        "host-a",
        domain_xml("web-0", metadata=ours(content=told), devices=NIC.format(inside="")),
    )
    host.link.connect()
    (written,) = host.link.survey().residents
    host.link.close()
    # The test driver has no leases.
    nics = tuple(replace(nic, is_leased=True) for nic in written.description.nics)
    leased = replace(written, description=replace(written.description, nics=nics))

    for resident in (written, leased):
        (lodger,) = census.count([(HostName("host-a"), resident)], Enabling.ALWAYS).lodgers
        assert lodger.is_leased is (resident is leased)


def test_machines_of_one_scope_must_agree_on_it(tmp_path: Path) -> None:
    found = counted(
        tmp_path,
        domain_xml("web-0", metadata=ours(SCOPE)),
        domain_xml("web-1", metadata=ours(f"{SCOPE} update-domains='3'")),
        domain_xml("db-0", metadata=ours("scope='db'")),
        domain_xml("db-1", metadata=ours("scope='db'")),
        domain_xml("web-2", metadata=ours(f"{SCOPE} name='WEB-0'")),
    )

    assert len(found.lodgers) == 2
    left_out = "\n".join(found.left_out)
    assert "make them agree" in left_out
    assert "is standalone: give both a kind" in left_out
    assert "already: give one of them another name" in left_out


def test_a_machine_is_found_by_its_scope_or_by_its_name_alone(tmp_path: Path) -> None:
    found = counted(tmp_path, domain_xml("web-0", metadata=ours(SCOPE)), domain_xml("db"))

    assert census.find(found, ScopeId("rg1/web"), "WEB-0").machine.name == "web-0"
    assert census.find(found, ScopeId("wherever/a-file-says"), "db").machine.name == "db"
    with pytest.raises(Refused, match="no domain on any host is web-0 of scope rg2/web"):
        census.find(found, ScopeId("rg2/web"), "web-0")


def test_a_name_that_two_have_finds_neither(tmp_path: Path) -> None:
    group = "group='{}'"
    found = counted(
        tmp_path,
        domain_xml("one", metadata=ours(f"name='db' {group.format('rg1')}")),
        domain_xml("two", metadata=ours(f"name='db' {group.format('rg2')}")),
    )

    with pytest.raises(Refused, match="could be one of two domains"):
        census.find(found, ScopeId("rg3/db"), "db")


def test_a_domain_that_is_off_is_stopped(tmp_path: Path) -> None:
    host = PretendedHost(tmp_path, "host-a", domain_xml("db"))
    host.domain("db").destroy()
    host.link.connect()

    survey = host.link.survey()

    found = census.count(((survey.host, one) for one in survey.residents), Enabling.ALWAYS)
    assert found.lodgers[0].machine.presence is Presence.STOPPED
    host.link.close()


MOVER = Mover(
    name="web-0",
    host=HostName("a"),
    kind="QEMU",
    memory_kib=2048,
    scope=ScopeId("rg1/web"),
    update_domain=1,
)


def berth(host: str, free: int, *domains: int, kind: str = "QEMU") -> Berth:
    return Berth(HostName(host), kind, free, tuple((MOVER.scope, domain) for domain in domains))


@pytest.mark.parametrize(
    ("berths", "chosen"),
    [
        # The emptiest; never the one that it is on.
        ((berth("a", 9999), berth("b", 4096), berth("c", 8192)), "c"),
        # Alone is better than beside its own, and its own update domain better than another.
        ((berth("b", 8192, 1), berth("c", 4096)), "c"),
        ((berth("b", 8192, 0), berth("c", 4096, 1, 1)), "c"),
        # Room comes first.
        ((berth("b", 2047), berth("c", 2048, 0, 2)), "c"),
        # In any order, the same.
        ((berth("c", 4096), berth("b", 4096)), "b"),
        ((berth("b", 8192, kind="LXC"), berth("c", 4096)), "c"),
    ],
)
def test_a_machine_goes_where_there_is_room_and_few_of_its_own(
    berths: tuple[Berth, ...], chosen: str
) -> None:
    """Keeps S20: maintenance of one host takes one update domain, if that can be had."""
    assert placement.choose(MOVER, berths) == chosen


def test_where_nobody_has_room_each_host_says_why() -> None:
    berths = (berth("a", 9999), berth("b", 1024), berth("c", 9999, kind="LXC"))
    away = {HostName("a"): "", HostName("d"): "no route"}

    with pytest.raises(Refused) as refusal:
        placement.choose(MOVER, berths, away)

    assert "web-0 cannot leave a" in str(refusal.value)
    assert "b has 1 MiB free, and 2 are needed" in str(refusal.value)
    assert "c runs LXC, not QEMU" in str(refusal.value)
    assert "d cannot be reached" in str(refusal.value)
