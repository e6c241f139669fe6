"""VMs as people call them, and the resources of Azure's that they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from forewarn.cli.answers import Fleet
from forewarn.errors import Refused, Unknown

_SCALE_SET: Final = "scale-set"


@dataclass(frozen=True, slots=True)
class Target:
    """A VM by its whole name."""

    group: str
    scope: str
    kind: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.group}/{self.scope}/{self.name}"

    def resource(self, subscription_id: str) -> str:
        """Its address in the owners' API."""
        names = [self.scope, self.name] if self.kind == _SCALE_SET else [self.name]
        group, *names = (quote(name, safe="") for name in [self.group, *names])
        compute = (
            f"/subscriptions/{subscription_id}/resourceGroups/{group}/providers/Microsoft.Compute"
        )
        if self.kind == _SCALE_SET:
            return f"{compute}/virtualMachineScaleSets/{names[0]}/virtualMachines/{names[1]}"
        return f"{compute}/virtualMachines/{names[0]}"


def find(fleet: Fleet, typed: Sequence[str]) -> list[Target]:
    """The VMs called `web-0`, `rg1/web-0` or `rg1/web/web-0`, each once.

    Raises: Unknown, with all names that nothing has; Refused.
    """
    known = list(_all(fleet))
    found = {name: [target for target in known if _is_called(target, name)] for name in typed}
    missing = [name for name, those in found.items() if not those]
    if missing:
        raise Unknown(f"no VM {', '.join(missing)}; `forewarn fleet` lists them")
    for name, those in found.items():
        if len(those) > 1:
            choices = ", ".join(target.path for target in those)
            raise Refused(f"{name} is the name of several VMs: say which of {choices}")
    meant = list(dict.fromkeys(those[0] for those in found.values()))
    for target in meant:
        _insist_on_one(target, known)
    return meant


def _all(fleet: Fleet) -> Iterator[Target]:
    for scope in fleet["scopes"]:
        for machine in scope["machines"]:
            if machine["presence"] != "deleted":
                yield Target(
                    scope["resource_group"], scope["scope"], scope["kind"], machine["name"]
                )


def _is_called(target: Target, typed: str) -> bool:
    *path, name = typed.lower().split("/")
    whole = [target.group.lower(), target.scope.lower()]
    return name == target.name.lower() and path == whole[: len(path)]


def _insist_on_one(target: Target, known: Sequence[Target]) -> None:
    """To owners, a VM outside of scale sets has no name but that in its group. Raises: Refused."""
    twins = [
        other.path
        for other in known
        if _SCALE_SET not in (target.kind, other.kind)
        and (other.group.lower(), other.name.lower()) == (target.group.lower(), target.name.lower())
    ]
    if len(twins) > 1:
        raise Refused(
            f"{' and '.join(twins)} have one name in one group, and this would not tell them apart: "
            "rename one, or use `forewarn announce`"
        )
