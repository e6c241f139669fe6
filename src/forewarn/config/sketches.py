"""A fleet in a few words: some VMs, with names and loopback addresses that follow from those."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from forewarn.errors import Malformed

ALONE: Final = "vm-0"
RESOURCE_GROUP: Final = "rg1"
MACHINES_MAX: Final = 1000
# Neither 127.0.0.1, which anybody is, nor the ends of a block.
_PER_BLOCK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """What was asked for; sets are `NAME:COUNT`. Nothing at all means one VM."""

    machines: Sequence[str] = ()
    spots: Sequence[str] = ()
    availability_sets: Sequence[str] = ()
    scale_sets: Sequence[str] = ()

    @property
    def toml(self) -> str:
        """The same as a fleet file. Raises: Malformed."""
        scopes = list(self._scopes())
        count = sum(len(machines) for _, machines in scopes)
        if count > MACHINES_MAX:
            raise Malformed(f"{count} VMs are too many: ask for {MACHINES_MAX} at most")
        addresses = _addresses(count)
        return "\n".join(
            line for fields, machines in scopes for line in _lines(fields, machines, addresses)
        )

    def _scopes(self) -> Iterator[tuple[Mapping[str, object], Sequence[str]]]:
        alone = self.machines
        if not (alone or self.spots or self.availability_sets or self.scale_sets):
            alone = (ALONE,)
        for name in alone:
            yield {"name": name, "kind": "standalone"}, (name,)
        for name in self.spots:
            yield {"name": name, "kind": "standalone", "spot": True}, (name,)
        for given in self.availability_sets:
            name, count = _split(given, "availability set")
            yield (
                {"name": name, "kind": "availability-set"},
                [f"{name}-{number}" for number in range(count)],
            )
        for given in self.scale_sets:
            name, count = _split(given, "scale set")
            yield (
                {"name": name, "kind": "scale-set", "terminate_notice": "5m"},
                [f"{name}_{number}" for number in range(count)],
            )


def _split(given: str, kind: str) -> tuple[str, int]:
    name, _, count = given.rpartition(":")
    if not name or not count.isascii() or not count.isdigit() or not int(count) > 0:
        raise Malformed(f"{kind} {given}: say NAME:COUNT, such as web:3")
    return name, int(count)


def _addresses(count: int) -> Iterator[list[str]]:
    # Whoever is the only one need not say who it is.
    own = ["127.0.0.1"] if count == 1 else []
    for number in range(count):
        block, place = divmod(number, _PER_BLOCK)
        yield [*own, f"127.0.{block + 1}.{place + 10}"]


def _lines(
    fields: Mapping[str, object], machines: Sequence[str], addresses: Iterator[list[str]]
) -> Iterator[str]:
    yield "[[scope]]"
    for key, value in {**fields, "resource_group": RESOURCE_GROUP}.items():
        yield f"{key} = {_quoted(value)}"
    for machine in machines:
        yield "  [[scope.machine]]"
        yield f"  name = {_quoted(machine)}"
        yield f"  address = {_quoted(next(addresses))}"


def _quoted(value: object) -> str:
    # JSON's strings, lists and booleans are TOML's too.
    return json.dumps(value)
