"""Fleets to measure with: fleet files for a few hundred machines, whole databases for a million."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path
from typing import Final

from bench.callers import address
from forewarn.clocks import SystemClock
from forewarn.core.ledgers import Ledger
from forewarn.core.names import HostName, MachineName
from forewarn.core.scopes import Machine, Scope, ScopeKind
from forewarn.ids import RandomIds
from forewarn.ports.store import Write
from forewarn.stores.sqlite import SqliteStore
from forewarn.wire import records

LEDGERS_PER_COMMIT: Final = 1000
_FIRST_ADDRESS: Final = int(IPv4Address("10.0.0.1"))


def fleet_file(*, machines: int, per_scope: int, options: str = "") -> str:
    """A fleet of availability sets whose machines speak from loopback."""
    return "\n".join(_scope(first, per_scope, options) for first in range(0, machines, per_scope))


def machine_name(number: int) -> str:
    """What the machines of `fleet_file` are called, each a name of its own."""
    return f"web-{number}"


def _scope(first: int, size: int, options: str) -> str:
    machines = "\n".join(
        f'[[scope.machine]]\nname = "{machine_name(number)}"\naddress = "{address(number)}"\n'
        f'host = "host-{number}"'
        for number in range(first, first + size)
    )
    head = f'[[scope]]\nname = "set-{first}"\nkind = "availability-set"\nresource_group = "rg1"'
    return f"{head}\n{options}\n{machines}\n"


def write_database(path: Path, *, scopes: int, machines_per_scope: int) -> None:
    """A database with that many scopes, as the service itself would have written it."""
    store = SqliteStore(path, SystemClock())
    ids = RandomIds()
    try:
        ledgers = _ledgers(scopes, machines_per_scope)
        while page := list(islice(ledgers, LEDGERS_PER_COMMIT)):
            writes = [Write(records.key(one.scope.id), 0, records.dump_ledger(one)) for one in page]
            store.commit(ids.commit_id(), writes, ())
    finally:
        store.close()


def _ledgers(scopes: int, size: int) -> Iterator[Ledger]:
    now = SystemClock().now()
    for number in range(scopes):
        machines = tuple(_machine(number * size + place, place) for place in range(size))
        scope = Scope(
            name=f"set-{number}",
            resource_group=f"group-{number % 1000}",
            kind=ScopeKind.AVAILABILITY_SET,
            machines=machines,
        )
        # Asked for its events a moment ago, as most have.
        yield Ledger(scope=scope, enabled_at=now, heard_at=now)


def _machine(number: int, place: int) -> Machine:
    return Machine(
        name=MachineName(f"web-{number}"),
        addresses=(str(IPv4Address(_FIRST_ADDRESS + number)),),
        host=HostName(f"host-{number // 50}"),
        update_domain=place % 5,
        vm_id=f"8f6a8b1e-6d0c-4e4a-9b53-{number:012x}",
        size="Standard_D4s_v5",
        zone=str(1 + number % 3),
    )
