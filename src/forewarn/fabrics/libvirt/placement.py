"""Where a machine goes that has to leave its host: a pure choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from forewarn.core.names import HostName, ScopeId
from forewarn.errors import Refused


@dataclass(frozen=True, slots=True)
class Berth:
    """A host that a machine might go to."""

    host: HostName
    kind: str
    memory_free_kib: int
    # The machines there, or on their way there: of which scope, in which update domain.
    taken: tuple[tuple[ScopeId, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """A machine that looks for a berth."""

    name: str
    host: HostName
    kind: str
    memory_kib: int
    scope: ScopeId
    update_domain: int


def choose(
    mover: Mover, berths: Iterable[Berth], away: Mapping[HostName, str] | None = None
) -> HostName:
    """The host to move to: with room, as far as possible from the rest of its scope.

    A neighbor of another update domain is worst: maintenance of that host would then take two of
    them. One of the same domain may be down with it anyway. Among equals the emptiest host wins.

    Raises: Refused if there is no such host, with what is against each.
    """
    others = [berth for berth in berths if berth.host != mover.host]
    against = [reason for berth in others if (reason := _against(mover, berth))]
    fit = [berth for berth in others if not _against(mover, berth)]
    if fit:
        return min(fit, key=lambda berth: _rank(mover, berth)).host
    against += [f"{host} cannot be reached" for host in sorted(away or {}) if host != mover.host]
    why = "; ".join(against) if against else "there is no other"
    raise Refused(
        f"{mover.name} cannot leave {mover.host}, as no other host can take it: {why}. "
        "Make room, or serve with one more --libvirt"
    )


def _against(mover: Mover, berth: Berth) -> str:
    if berth.kind != mover.kind:
        return f"{berth.host} runs {berth.kind}, not {mover.kind}"
    if berth.memory_free_kib < mover.memory_kib:
        free, needed = berth.memory_free_kib // 1024, mover.memory_kib // 1024
        return f"{berth.host} has {free} MiB free, and {needed} are needed"
    return ""


def _rank(mover: Mover, berth: Berth) -> tuple[int, int, int, str]:
    here = Counter(domain for scope, domain in berth.taken if scope == mover.scope)
    same = here.pop(mover.update_domain, 0)
    return (here.total(), same, -berth.memory_free_kib, berth.host)
