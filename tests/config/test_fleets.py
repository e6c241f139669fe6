"""Fleet files that are understood."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.config.fleets import FleetFile, load_fleet, parse_fleet
from forewarn.core.names import HostName, MachineName
from forewarn.core.periods import Periods
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import AutoApproval, Enabling, Machine, Scope, ScopeKind
from forewarn.errors import Malformed

EXAMPLE = """\
[[scope]]
name = "web"
kind = "availability-set"          # standalone | cloud-service | availability-set | scale-set
resource_group = "rg1"             # default "default"
update_domains = 3                 # default 5
user_operations_max = 10           # optional

  [[scope.machine]]
  name = "web-0"
  address = "10.77.0.11"           # or a list
  host = "host-a"
  update_domain = 0                # default: round robin

[[scope]]
name = "batch"
kind = "scale-set"
terminate_notice = "5m"            # absent: terminate notification is off
enabled = "always"                 # or "on-request" (default of serve)
  [[scope.machine]]
  name = "batch_0"
  address = "10.77.0.21"
"""
WEB = Scope(
    name="web",
    resource_group="rg1",
    kind=ScopeKind.AVAILABILITY_SET,
    machines=(
        Machine(
            name=MachineName("web-0"),
            addresses=("10.77.0.11",),
            host=HostName("host-a"),
            update_domain=0,
        ),
    ),
    update_domains=3,
    user_operations_max=10,
)
BATCH = Scope(
    name="batch",
    resource_group="default",
    kind=ScopeKind.SCALE_SET,
    machines=(Machine(name=MachineName("batch_0"), addresses=("10.77.0.21",)),),
    update_domains=5,
    terminate_notice=timedelta(minutes=5),
    enabling=Enabling.ALWAYS,
)

EVERYTHING = """\
subscription_id = "8d10da13-8125-4ba9-a717-bf7490507b3d"

[periods]
margin = "3s"
recovery = "10m"
postpone_max = "12h"
remember = "2d"
freeze_limit = "1m"
reboot_limit = "PT5M"
redeploy_limit = "20m"
preempt_limit = "2m"
terminate_limit = "3m"

[[scope]]
name = "cheap"
kind = "standalone"
spot = true
auto_approve = ["user-redeploy", "user-reboot", "user-redeploy"]
recovery = "0s"
location = "west"
[[scope.machine]]
name = "cheap"
address = ["::ffff:10.0.0.1", "FD00:0::1"]
vm_id = "02aab8a4-74ef-476e-8182-f6d2ba4166a6"
size = "Standard_D2s_v3"
zone = "1"
tags = { role = "batch", team = "blue" }
"""


def test_the_example_is_understood() -> None:
    assert parse_fleet(EXAMPLE, "fleet.toml") == FleetFile(
        declarations=(
            Declaration(WEB, frozenset({MachineName("web-0")})),
            Declaration(BATCH, frozenset()),
        )
    )


def test_the_caller_says_when_scopes_are_enabled_that_do_not_say_so() -> None:
    text = EXAMPLE.replace('"always"', '"on-request"')

    fleet = parse_fleet(text, "fleet.toml", Enabling.ALWAYS)

    assert [declared.scope.enabling for declared in fleet.declarations] == [
        Enabling.ALWAYS,
        Enabling.ON_REQUEST,
    ]


def test_every_member_counts() -> None:
    fleet = parse_fleet(EVERYTHING, "fleet.toml")

    assert fleet.subscription_id == "8d10da13-8125-4ba9-a717-bf7490507b3d"
    assert fleet.periods == Periods(
        margin=timedelta(seconds=3),
        recovery=timedelta(minutes=10),
        postpone_max=timedelta(hours=12),
        remember=timedelta(days=2),
        freeze_limit=timedelta(minutes=1),
        reboot_limit=timedelta(minutes=5),
        redeploy_limit=timedelta(minutes=20),
        preempt_limit=timedelta(minutes=2),
        terminate_limit=timedelta(minutes=3),
    )
    assert fleet.declarations[0].scope == Scope(
        name="cheap",
        spot=True,
        auto_approve=(AutoApproval.USER_REDEPLOY, AutoApproval.USER_REBOOT),
        recovery=timedelta(),
        location="west",
        machines=(
            Machine(
                name=MachineName("cheap"),
                addresses=("10.0.0.1", "fd00::1"),
                vm_id="02aab8a4-74ef-476e-8182-f6d2ba4166a6",
                size="Standard_D2s_v3",
                zone="1",
                tags=(("role", "batch"), ("team", "blue")),
            ),
        ),
    )


def test_an_empty_file_is_an_empty_fleet() -> None:
    assert parse_fleet("", "fleet.toml") == FleetFile()


def test_only_machines_with_an_update_domain_are_settled() -> None:
    text = EXAMPLE + '[[scope.machine]]\nname = "batch_1"\nupdate_domain = 4\n'

    batch = parse_fleet(text, "fleet.toml").declarations[1]

    assert batch.settled == frozenset({MachineName("batch_1")})


def test_machines_may_be_written_in_one_line_each() -> None:
    text = """
[[scope]]
name = "web"
kind = "cloud-service"
machine = [
  { name = "web-0", address = "10.0.0.1" },
  { name = "web-1", address = "10.0.0.2" },
]
"""

    scope = parse_fleet(text, "fleet.toml").declarations[0].scope

    assert [machine.name for machine in scope.machines] == ["web-0", "web-1"]


def test_a_file_is_read_from_disk_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.toml", tmp_path / "marked.toml"
    plain.write_text(EXAMPLE, encoding="utf-8")
    marked.write_text(EXAMPLE.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")

    assert load_fleet(plain) == load_fleet(marked) == parse_fleet(EXAMPLE, "fleet.toml")
    always = load_fleet(plain, Enabling.ALWAYS).declarations[0].scope
    assert always == replace(WEB, enabling=Enabling.ALWAYS)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    with pytest.raises(Malformed) as refusal:
        load_fleet(path)

    assert str(refusal.value) == (
        f"{path}: cannot be read (No such file or directory): check the path and its permissions"
    )


def test_a_file_in_another_encoding_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# one\n# two\n# caf\xe9\n")

    with pytest.raises(Malformed) as refusal:
        load_fleet(path)

    assert str(refusal.value) == f"{path}:3: not UTF-8: save the file in that encoding"
