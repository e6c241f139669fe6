"""`forewarn host prepare` and `unprepare` on a real kernel, in network namespaces that the tests make."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.testing.networks import Namespace

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

NETWORK = """
endpoint = ["169.254.169.254", "168.63.129.16"]
[[tap]]
device = "tap-web-0"
mac = "52:54:00:77:00:11"
address = ["10.77.0.11", "10.77.0.12"]
[[tap]]
device = "veth-web-1"
mac = "52:54:00:77:00:13"
address = "10.77.0.13"
[[bridge]]
device = "br0"
  [[bridge.port]]
  device = "vnet0"
  mac = "52:54:00:77:00:21"
  address = "10.77.1.21"
"""


@pytest.fixture
def host() -> Iterator[Namespace]:
    with Namespace() as made:
        made.ip(
            "link set lo up",
            "link add veth-web-1 type veth peer name far",
            "link add br0 type bridge",
        )
        made.tell("sysctl", "-q", "-w", "net/ipv4/conf/br0/rp_filter=2")
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(NETWORK)
    return path


def picture(host: Namespace) -> str:
    """All of a host that prepare may change."""
    # Addresses of IPv6 come by themselves, in their own time.
    shown = json.loads(host.tell("ip", "-4", "-json", "-details", "address", "show"))
    links = json.loads(host.tell("ip", "-json", "-details", "link", "show"))
    kept = ("local", "address", "prefixlen")
    addresses = [
        [[info.get(key) for key in kept] for info in one["addr_info"]] for one in shown if one
    ]
    marks = ("ifname", "address", "ifalias", "master")
    devices = [[one.get(key) for key in marks] for one in links]
    up = ["UP" in one["flags"] for one in links]
    strict = host.tell("sysctl", "-a", "-r", r"^net\.ipv4\.conf\..*rp_filter")
    rules = host.tell("nft", "list", "ruleset")
    routes = host.tell("ip", "route").replace(" linkdown", "")
    return json.dumps([devices, addresses, up, strict, rules, routes])


def run(host: Namespace, *words: str) -> str:
    done = host.forewarn("host", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_prepared_needs_nothing_more(host: Namespace, file: Path) -> None:
    first = run(host, "prepare", str(file))
    prepared = picture(host)
    second = run(host, "prepare", str(file))

    assert first == "prepared 3 links: tap-web-0, veth-web-1, br0\n"
    assert second == "nothing to do: this host is as wanted\n"
    assert picture(host) == prepared


def test_unprepare_leaves_no_trace(host: Namespace, file: Path) -> None:
    before = picture(host)
    run(host, "prepare", str(file))
    assert picture(host) != before

    run(host, "unprepare")

    assert picture(host) == before
    assert run(host, "unprepare") == "nothing to do: this host is as wanted\n"


def test_a_dry_run_prints_what_a_shell_can_run_and_runs_nothing(
    host: Namespace, file: Path
) -> None:
    before = picture(host)
    script = run(host, "prepare", str(file), "--dry-run")
    assert picture(host) == before

    host.tell("bash", "-eu", told=script)

    assert run(host, "prepare", str(file)) == "nothing to do: this host is as wanted\n"
    host.tell("bash", "-eu", told=run(host, "unprepare", "--dry-run"))
    assert picture(host) == before


def test_programs_are_told_in_json(host: Namespace, file: Path) -> None:
    told = json.loads(run(host, "prepare", str(file), "--dry-run", "--json"))

    assert told["dry_run"] is True
    assert [one["command"][0] for one in told["commands"]] == ["nft", "ip", "sysctl"]
    assert "tuntap add dev tap-web-0 mode tap\n" in told["commands"][1]["input"]


def test_whatever_somebody_undid_is_done_again(host: Namespace, file: Path) -> None:
    run(host, "prepare", str(file))
    prepared = picture(host)
    host.tell("nft", "flush", "chain", "inet", "forewarn", "guest")
    host.tell("nft", "delete", "element", "bridge", "forewarn", "ports", '{ "vnet0" }')
    host.ip("address delete 169.254.169.254 peer 10.77.0.12/32 dev tap-web-0", "link set br0 down")
    host.tell("sysctl", "-q", "-w", "net/ipv4/conf/tap-web-0/rp_filter=0")

    run(host, "prepare", str(file))

    assert picture(host) == prepared


def test_a_file_that_lost_a_link_takes_it_from_the_host(host: Namespace, file: Path) -> None:
    before = picture(host)
    run(host, "prepare", str(file))
    file.write_text(NETWORK[NETWORK.index("[[bridge]]") :])

    run(host, "prepare", str(file))

    assert "tap-web-0" not in picture(host)
    assert host.tell("ip", "-brief", "address", "show", "dev", "veth-web-1").split()[2:] == []
    run(host, "unprepare")
    assert picture(host) == before


def test_another_endpoint_takes_the_place_of_one(host: Namespace, file: Path) -> None:
    before = picture(host)
    run(host, "prepare", str(file))
    file.write_text(NETWORK.replace('"169.254.169.254", ', ""))

    run(host, "prepare", str(file))

    assert '169.254.169.254"' not in picture(host)
    assert "168.63.129.16" in host.tell("ip", "-brief", "address", "show", "dev", "tap-web-0")
    run(host, "unprepare")
    assert picture(host) == before


def test_an_address_that_the_host_uses_itself_is_not_taken(host: Namespace, file: Path) -> None:
    host.ip("link set veth-web-1 up", "route add 169.254.169.254 dev veth-web-1")
    file.write_text(NETWORK.replace("veth-web-1", "tap-web-1"))
    before = picture(host)

    done = host.forewarn("host", "prepare", str(file))

    assert done.returncode == 3
    assert "ip route del 169.254.169.254 dev veth-web-1" in done.stderr
    assert picture(host) == before


def test_a_program_that_fails_is_quoted(host: Namespace, file: Path) -> None:
    # A device without a card has no MAC address to set.
    host.ip("tuntap add dev tun0 mode tun")
    file.write_text(NETWORK.replace("tap-web-0", "tun0"))

    done = host.forewarn("host", "prepare", str(file))

    assert done.returncode == 3, done.stdout
    assert "`ip -batch -` failed: " in done.stderr
    assert "--dry-run" in done.stderr


def test_nobody_but_root_prepares() -> None:
    # All is loaded first: somebody else need not be able to read it. What is measured of the process is
    # written by root again.
    story = """if True:
        import os, sys
        import forewarn.cli.host
        from forewarn.cli.main import main
        main(["host", "unprepare", "--help"])
        os.seteuid(65534)
        code = main(["host", "unprepare"])
        os.seteuid(0)
        sys.exit(code)
    """
    done = subprocess.run(
        [sys.executable, "-c", story],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 3, done.stderr
    assert done.stderr == (
        "forewarn: only root may see and change a host's links and filters: run it with sudo\n"
    )


def test_a_namespace_is_prepared_from_outside(host: Namespace, file: Path) -> None:
    before = picture(host)
    file.write_text(f'namespace = "{host.path}"\n{NETWORK}')
    with Namespace() as elsewhere:
        script = run(elsewhere, "prepare", str(file), "--dry-run")
        run(elsewhere, "prepare", str(file))

        assert script.startswith(f"nsenter --net={host.path} -- nft -f - <<'END'\n")
        assert "tap-web-0" in picture(host)
        assert elsewhere.tell("nft", "list", "ruleset") == ""
        run(elsewhere, "unprepare", "--namespace", host.path)

    assert picture(host) == before


def test_a_namespace_that_is_not_there_is_named(file: Path) -> None:
    file.write_text(f'namespace = "no-such-host"\n{NETWORK}')
    with Namespace() as host:
        done = host.forewarn("host", "prepare", str(file))

    assert done.returncode == 3
    assert "`ip netns add no-such-host`" in done.stderr
