"""`forewarn serve --libvirt` over a real process and libvirt's test driver, one story each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: pip install libvirt-python")

from forewarn.testing.hypervisors import domain_xml, ours, uuid_of, wait_until
from forewarn.testing.processes import ServiceProcess, request

pytestmark = pytest.mark.end_to_end

WEB = ("127.0.3.10", "127.0.3.11")
DB = "127.0.3.20"


def nic(number: int, address: str) -> tuple[str, str]:
    mac = f"52:54:00:00:00:{number:02x}"
    device = f"<interface type='bridge'><source bridge='br0'/><mac address='{mac}'/></interface>"
    return device, f"<forewarn:address mac='{mac}' ip='{address}'/>"


def web(number: int) -> str:
    device, address = nic(number, WEB[number])
    told = address + "<forewarn:tag name='tier' value='front'/>"
    attributes = (
        f"scope='web' group='shop' kind='availability-set' update-domains='2' "
        f"update-domain='{number}' zone='2' enabled='always'"
    )
    return domain_xml(f"web-{number}", metadata=ours(attributes, told), devices=device)


def host(directory: Path, name: str, *domains: str) -> str:
    file = directory / f"{name}.xml"
    file.write_text(f"<node>{''.join(domains)}</node>", encoding="utf-8")
    return f"--libvirt={name}=test://{file}"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    options = (
        host(tmp_path, "host-a", web(0), web(1)),
        host(tmp_path, "host-b", domain_xml("db", devices=nic(9, DB)[0])),
    )
    with ServiceProcess(tmp_path / "data", None, *options) as process:
        yield process


def machines(service: ServiceProcess) -> dict[str, Any]:
    scopes = service.json("fleet")["scopes"]
    return {m["name"]: {**m, "scope": s["scope"]} for s in scopes for m in s["machines"]}


def leaf(service: ServiceProcess, source: str, path: str) -> str:
    reply = request(
        service.metadata[0],
        "GET",
        f"/metadata/instance/{path}?api-version=2021-02-01&format=text",
        source=source,
        headers={"Metadata": "true"},
    )
    assert reply.status == 200, reply
    return reply.body.decode()


def until(condition: Callable[[], object]) -> None:
    wait_until(condition, 30)


def test_the_fleet_is_what_the_hosts_have(service: ServiceProcess) -> None:
    """Keeps N3: nobody has to declare what libvirt knows."""
    found = machines(service)

    assert {(name, one["scope"], one["host"]) for name, one in found.items()} == {
        ("web-0", "web", "host-a"),
        ("web-1", "web", "host-a"),
        ("db", "db", "host-b"),
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("compute/name", "web-1"),
        ("compute/vmId", uuid_of("web-1")),
        ("compute/resourceGroupName", "shop"),
        ("compute/zone", "2"),
        ("compute/tags", "tier:front"),
        ("compute/platformUpdateDomain", "1"),
        ("network/interface/0/macAddress", "525400000001"),
        ("network/interface/0/ipv4/ipAddress/0/privateIpAddress", WEB[1]),
    ],
)
def test_a_guest_reads_of_itself_what_libvirt_says(
    service: ServiceProcess, path: str, text: str
) -> None:
    assert leaf(service, WEB[1], path) == text


def test_a_redeploy_moves_the_machine_and_the_fleet_follows(service: ServiceProcess) -> None:
    """Keeps S10, N3: announced, approved by the guest, carried out, gone from the document."""
    (event,) = service.announce("Redeploy", "web-0")
    assert service.document(WEB[1])["Events"][0]["Resources"] == ["web-0"]

    assert service.approve(WEB[0], event["event_id"]).status == 200

    until(lambda: service.document(WEB[0])["Events"] == [])
    until(lambda: machines(service)["web-0"]["host"] == "host-b")
    assert service.json("show", event["event_id"])["status"] == "Completed"
    # It speaks from the same address.
    assert leaf(service, WEB[0], "compute/name") == "web-0"


def test_what_libvirt_cannot_do_is_the_outcome(tmp_path: Path) -> None:
    only = host(tmp_path, "host-a", web(0))
    with ServiceProcess(tmp_path / "data", None, only) as service:
        (event,) = service.announce("Redeploy", "web-0")

        service.approve(WEB[0], event["event_id"])

        until(lambda: service.document(WEB[0])["Events"] == [])
        shown = json.dumps(service.json("show", event["event_id"]))
        assert "no other host can take it: there is no other" in shown


def test_nobody_moves_to_a_host_that_was_drained_before_a_restart(service: ServiceProcess) -> None:
    """Keeps S20: a host that is to become empty is given nobody, whoever dies meanwhile."""
    service.json("host", "drain", "host-b")
    service.restart()
    listed = {one["host"]: one for one in service.json("host", "list")["hosts"]}
    assert [one["is_drained"] for one in listed.values()] == [False, True]
    assert all(one["memory_free_mib"] > 0 for one in listed.values())

    (event,) = service.announce("Redeploy", "web-0")
    service.approve(WEB[0], event["event_id"])
    until(lambda: service.document(WEB[0])["Events"] == [])

    assert "host-b is drained" in json.dumps(service.json("show", event["event_id"]))
    assert machines(service)["web-0"]["host"] == "host-a"
    service.json("host", "undrain", "host-b")
    told = service.json("host", "drain", "host-a", "--move")["events"]
    assert sorted(name for one in told for name in one["resources"]) == ["web-0", "web-1"]


def test_a_terminated_machine_leaves_the_fleet(service: ServiceProcess) -> None:
    service.json("announce", "Freeze", "db", "--unannounced", "--duration", "1s")
    done = service.run("announce", "Terminate", "db", "--unannounced")

    assert done.returncode == 0, done.stderr
    until(lambda: "db" not in machines(service))


def test_a_preempted_machine_is_deallocated_until_somebody_starts_it(tmp_path: Path) -> None:
    """Keeps S10, S21: its record stays, and libvirt knows only that it is off."""
    device, address = nic(1, DB)
    metadata = ours("spot='yes' enabled='always'", address)
    spot = host(tmp_path, "host-a", domain_xml("spot", metadata=metadata, devices=device))
    with ServiceProcess(tmp_path / "data", None, spot) as service:
        (event,) = service.announce("Preempt", "spot")
        service.approve(DB, event["event_id"])

        until(lambda: machines(service)["spot"]["presence"] == "deallocated")
        assert service.json("show", event["event_id"])["status"] == "Completed"

        assert service.stop() == 0
    with ServiceProcess(tmp_path / "data", None, spot) as service:
        # The test driver's machines run when it starts, whatever they were.
        until(lambda: machines(service)["spot"]["presence"] == "running")


def test_machines_of_libvirt_are_not_simulated_without_a_word(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path / "data", None, host(tmp_path, "host-a", web(0))) as service:
        assert machines(service).keys() == {"web-0"}

    with ServiceProcess(tmp_path / "data", None) as service:
        assert "without --libvirt what happens to them is only simulated" in service.log.read_text(
            encoding="utf-8"
        )


def test_a_fleet_file_has_the_word_on_scopes_and_libvirt_on_hosts(tmp_path: Path) -> None:
    device, _ = nic(9, DB)
    fleet = """
[[scope]]
name = "store"
resource_group = "shop"
enabled = "always"
  [[scope.machine]]
  name = "db"
  address = "127.0.3.20"
  host = "somewhere"
"""
    options = (
        host(tmp_path, "host-a", web(0)),
        host(tmp_path, "host-b", domain_xml("db", devices=device)),
    )
    with ServiceProcess(tmp_path / "data", fleet, *options) as service:
        found = machines(service)

        assert (found["db"]["scope"], found["db"]["host"]) == ("store", "host-b")
        assert found["web-0"]["scope"] == "web"
        assert leaf(service, DB, "compute/vmId") == uuid_of("db")
        assert leaf(service, DB, "network/interface/0/macAddress") == "525400000009"
        (event,) = service.announce("Reboot", "db")
        service.approve(DB, event["event_id"])
        until(lambda: service.document(DB)["Events"] == [])
        assert service.json("show", event["event_id"])["status"] == "Completed"

        # Once more, with what the store has of it.
        service.restart()
        assert machines(service)["db"]["host"] == "host-b"


def test_an_address_that_the_fleet_file_gives_to_another_keeps_one_machine_out_and_no_more(
    tmp_path: Path,
) -> None:
    device, address = nic(9, DB)
    fleet = f'[[scope]]\nname = "store"\n[[scope.machine]]\nname = "disk"\naddress = "{DB}"\n'
    taken = domain_xml("db", metadata=ours(content=address), devices=device)
    with ServiceProcess(
        tmp_path / "data", fleet, host(tmp_path, "host-a", taken, web(0))
    ) as service:
        assert machines(service).keys() == {"disk", "web-0"}
        ready = service.ask("GET", "/readyz")
        assert ready.status == 503, ready
        assert b"db on host-a is left out: 127.0.3.20 is the address of disk" in ready.body
        assert "db on host-a is left out" in service.log.read_text(encoding="utf-8")


def test_whether_a_machine_of_a_fleet_file_runs_is_libvirts_word(tmp_path: Path) -> None:
    """Keeps N1: who runs is warned, though it was off when the service looked last."""
    device, address = nic(9, DB)
    running = domain_xml("db", metadata=ours("", address), devices=device)
    fleet = """
[[scope]]
name = "store"
enabled = "always"
  [[scope.machine]]
  name = "db"
"""
    here = host(tmp_path, "host-a", running)
    with ServiceProcess(tmp_path / "data", fleet, here) as service:
        service.run("stop", "db", "--wait")
        assert machines(service)["db"]["presence"] == "stopped"
        service.stop()
        # The test driver has it on again, as somebody might by hand; and no file is given.
        service.fleet.unlink()

        service.start()

        assert machines(service)["db"]["presence"] == "running"
        (event,) = service.announce("Freeze", "db")
        assert event["status"] == "Scheduled"


def test_a_fleet_file_that_comes_later_claims_what_libvirt_had(tmp_path: Path) -> None:
    """Keeps S14: who tries it with libvirt alone may write a file afterwards."""
    device, address = nic(9, DB)
    options = (
        host(tmp_path, "host-a", web(0), web(1)),
        host(tmp_path, "host-b", domain_xml("db", metadata=ours("", address), devices=device)),
    )
    fleet = tmp_path / "later.toml"
    fleet.write_text(
        """
[[scope]]
name = "web"
resource_group = "shop"
kind = "availability-set"
enabled = "always"
  [[scope.machine]]
  name = "web-1"

[[scope]]
name = "store"
resource_group = "shop"
enabled = "always"
  [[scope.machine]]
  name = "db"
""",
        encoding="utf-8",
    )
    with ServiceProcess(tmp_path / "data", None, *options) as service:
        (event,) = service.announce("Freeze", "web-1")
        assert machines(service)["db"]["scope"] == "db"

        changes = service.json("fleet", "apply", str(fleet))["changes"]

        assert "default/db: removed db" in changes
        found = machines(service)
        assert {name: one["scope"] for name, one in found.items()} == {
            "web-0": "web",
            "web-1": "web",
            "db": "store",
        }
        # What was announced is announced still.
        (told,) = service.document(WEB[1])["Events"]
        assert told["EventId"] == event["event_id"]
        assert leaf(service, DB, "compute/vmId") == uuid_of("db")
        until(lambda: service.ask("GET", "/readyz").status == 200)


def test_an_address_of_two_machines_keeps_one_of_them_out_and_nobody_else(tmp_path: Path) -> None:
    device, address = nic(8, WEB[0])
    thief = domain_xml("a-thief", metadata=ours("", address), devices=device)
    here = host(tmp_path, "host-a", web(0))
    with ServiceProcess(tmp_path / "data", None, here) as service:
        assert set(machines(service)) == {"web-0"}
        service.stop()
        host(tmp_path, "host-a", thief, web(0), web(1))

        service.start()

        assert set(machines(service)) == {"web-0", "web-1"}
        assert leaf(service, WEB[0], "compute/name") == "web-0"
        log = service.log.read_text(encoding="utf-8")
        assert f"a-thief on host-a is left out: {WEB[0]} is the address of web-0" in log
        assert b"a-thief" in service.ask("GET", "/readyz").body


def test_whoever_drains_the_only_host_is_told_that_nobody_can_leave(tmp_path: Path) -> None:
    only = host(tmp_path, "host-a", web(0))
    with ServiceProcess(tmp_path / "data", None, only) as service:
        assert "no other host is open" in service.run("host", "drain", "HOST-A", "--move").stdout

    both = (host(tmp_path, "host-a", web(0)), host(tmp_path, "host-b"))
    with ServiceProcess(tmp_path / "more", None, *both) as service:
        assert "no other host" not in service.run("host", "drain", "host-a", "--move").stdout


def test_a_host_out_of_reach_is_told_and_keeps_nobody_from_being_served(tmp_path: Path) -> None:
    away = "--libvirt=qemu+unix:///system?socket=/nonexistent/socket"
    here = host(tmp_path, "host-a", web(0))
    with ServiceProcess(tmp_path / "data", None, here) as service:
        assert service.document(WEB[0])["Events"] == []

    with ServiceProcess(tmp_path / "data", None, here, away) as service:
        # The machines of the last start are there still.
        assert service.document(WEB[0])["Events"] == []
        assert "cannot be reached" in service.log.read_text(encoding="utf-8")
        ready = service.ask("GET", "/readyz")
        assert ready.status == 503, ready
        assert b"/nonexistent/socket" in ready.body


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--libvirt", "host-a"), "say URI or NAME=URI"),
        (("--libvirt", "test:///default", "--impacts-take", "1s"), "is for simulated VMs"),
        (("--stop-within", "1s"), "give --libvirt too"),
        (("--libvirt", "a=test:///x", "--libvirt", "b=test:///x"), "has test:///x twice"),
        (("--libvirt", "a=test:///x", "--libvirt", "a=test:///y"), "has a twice"),
    ],
)
def test_hosts_that_cannot_be_meant_are_refused(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    status, line = ServiceProcess(tmp_path / "data", None, *options).fail_to_start()

    assert status == 2
    assert why in line


def test_machines_of_libvirt_do_not_behave_as_they_are_told(service: ServiceProcess) -> None:
    reply = service.ask(
        "POST",
        "/fabric/v1/simulated-fabric",
        headers=service.authorized,
        body=json.dumps({"machine": "db", "behavior": "hangs"}).encode(),
    )

    assert reply.status == 404, reply
    assert b"behave as they do" in reply.body
