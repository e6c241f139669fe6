"""Keeping a scope's roster in step with what its sources declare.

A source (a fleet file, the control API, a fabric's census) adds, changes and removes only the
machines it declared itself; but whom a census found, a file may claim. What owners set through the
API is nobody's declaration, and outlives
them all. A scope is never deleted: one without machines keeps its ledger, so that its incarnation
goes on should it come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final

from forewarn.core import ledgers, scopes, starting
from forewarn.core.journal import Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import MachineName
from forewarn.core.periods import spell
from forewarn.core.scopes import Machine, Origin, OwnerPolicies, Presence, Scope, ScopeKind
from forewarn.errors import Refused, Unknown

_UNSET: Final = OwnerPolicies()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A scope as one source wants it. `settled` machines were given their update domain.

    Of the `seen` ones somebody knows whether they run, whoever declares them.
    """

    scope: Scope
    settled: frozenset[MachineName] = frozenset()
    seen: frozenset[MachineName] = frozenset()


def enroll(
    ledger: Ledger, declared: Declaration, origin: Origin, actor: Actor, now: datetime
) -> Decision:
    """The ledger with the source's machines and the scope's policies as declared.

    Raises: Refused if another source has declared one of the machines, if the scope cannot be, or
    if a machine with an open event would change its update domain.
    """
    before = ledger.scope
    scopes.check(declared.scope)
    _refuse_clash(before, declared.scope, origin)
    machines = _merged(before, declared, origin)
    kept = {machine.name.lower() for machine in machines}
    removed = [m.name for m in before.machines if m.name.lower() not in kept]
    scope = replace(
        declared.scope,
        machines=machines,
        origin=_claimed(before, origin),
        # Only the API has a say in these, and it may leave them as they are.
        owner=before.owner if declared.scope.owner == _UNSET else declared.scope.owner,
        kept=declared.scope.kept or before.kept,
    )
    scopes.check(scope)
    _refuse_moves(ledger, scope)
    decision = Decision(replace(ledger, scope=scope))
    text = differences(before, scope)
    if text:
        decision = ledgers.note(decision.ledger, What.ROSTER, actor, now, None, text)
    for name in removed:
        step = starting.leave_scheduled(decision.ledger, name, now)
        decision = ledgers.then(decision, step)
    return decision


def withdraw(ledger: Ledger, origin: Origin, actor: Actor, now: datetime) -> Decision:
    """Take all machines of a source out of the scope: it no longer declares the scope at all.

    What the API declared is its owner's, and gone with what the owner set.
    """
    scope = ledger.scope
    others = tuple(machine for machine in scope.machines if machine.origin is not origin)
    if len(others) == len(scope.machines) and scope.origin is not origin:
        return Decision(ledger)
    decision = enroll(ledger, Declaration(replace(scope, machines=())), origin, actor, now)
    if scope.origin is not origin:
        return decision
    left = replace(decision.ledger.scope, origin=next((m.origin for m in others), None))
    if origin is Origin.API:
        left = replace(left, owner=_UNSET, kept="")
    return Decision(replace(decision.ledger, scope=left), decision.entries)


def declare(
    ledger: Ledger, declared: Declaration, origin: Origin, actor: Actor, now: datetime
) -> Decision:
    """As `enroll`, for a source that declares scopes one by one, and so declares none by accident.

    A machine of this source that was deleted comes back, as a new one.

    Raises: as `enroll`; Refused if another source declared the scope or if it is of another kind.
    """
    before = ledger.scope
    if before.origin not in (None, origin):
        raise Refused(_not_yours(before, origin))
    if before.origin is origin and before.kind is not declared.scope.kind:
        raise Refused(
            f"scope {before.id} is of kind {before.kind.value} and cannot become "
            f"{declared.scope.kind.value}: delete it first, or choose another name"
        )
    wanted = {m.name.lower() for m in declared.scope.machines if m.presence is Presence.RUNNING}
    there = tuple(
        machine
        for machine in before.machines
        if machine.presence is not Presence.DELETED
        or machine.origin is not origin
        or machine.name.lower() not in wanted
    )
    cleared = replace(ledger, scope=replace(before, machines=there))
    decision = enroll(cleared, declared, origin, actor, now)
    scopes.check_owner(decision.ledger.scope)
    return decision


def remove(ledger: Ledger, name: str, origin: Origin, actor: Actor, now: datetime) -> Decision:
    """Drop a machine's record for good; with its only machine, a standalone scope is no more.

    Raises: Unknown, Refused if another source declared the machine or if it has an open event.
    """
    scope = ledger.scope
    machine = _machine(scope, name)
    if machine.origin is not origin:
        raise Refused(
            f"{machine.name} of scope {scope.id} is declared by the {machine.origin.value}: "
            f"the {origin.value} cannot remove it; take it out there"
        )
    for event in ledger.open_events:
        if machine.name in event.machines:
            raise Refused(
                f"{machine.name} of scope {scope.id} has an open event, {event.id}: "
                "cancel it or let it end before removing the VM"
            )
    rest = tuple(m for m in scope.machines if m is not machine)
    if not rest and scope.kind is ScopeKind.STANDALONE:
        return withdraw(ledger, origin, actor, now)
    after = replace(ledger, scope=replace(scope, machines=rest))
    return ledgers.note(after, What.ROSTER, actor, now, None, f"removed {machine.name}")


def cede(ledger: Ledger, claimed: frozenset[str], actor: Actor, now: datetime) -> Decision:
    """Take out of the scope those of a census whom a file puts into another, by their VM ids.

    Raises: Refused if one of them has an open event, which could not go with it.
    """
    scope = ledger.scope
    ceded = [m for m in scope.machines if m.origin is Origin.CENSUS and m.vm_id in claimed]
    if not ceded:
        return Decision(ledger)
    names = [machine.name for machine in ceded]
    for event in ledger.open_events:
        for name in event.machines:
            if name in names:
                raise Refused(
                    f"{name} has an open event in scope {scope.id}, {event.id}: cancel it or let it "
                    "end before the file puts the VM into another scope"
                )
    rest = tuple(machine for machine in scope.machines if machine not in ceded)
    after = replace(ledger, scope=replace(scope, machines=rest))
    text = ", ".join(f"removed {name}" for name in names)
    return ledgers.note(after, What.ROSTER, actor, now, None, text)


def amend_policies(
    ledger: Ledger,
    policies: OwnerPolicies,
    actor: Actor,
    now: datetime,
    change: Callable[[str], str] = str,
) -> Decision:
    """The ledger with what its owner set, whoever declared the scope; it concerns events to come.

    `change` makes what is to be kept for the owner of what is kept. Raises: Refused.
    """
    before = ledger.scope
    scope = replace(before, owner=policies, kept=change(before.kept))
    scopes.check_owner(scope)
    if scope == before:
        return Decision(ledger)
    changed = ", ".join(_spelled(before.owner, policies)) or "what is kept for the owner"
    text = f"the owner changed {changed}"
    return ledgers.note(replace(ledger, scope=scope), What.ROSTER, actor, now, None, text)


def keep(
    ledger: Ledger, name: str | None, change: Callable[[str], str], actor: Actor, now: datetime
) -> Decision:
    """Change what is kept for the owner of a machine, or of the scope (None). Raises: Unknown."""
    scope = ledger.scope
    if name is None:
        return amend_policies(ledger, scope.owner, actor, now, change)
    machine = _machine(scope, name)
    kept = replace(machine, kept=change(machine.kept))
    if kept == machine:
        return Decision(ledger)
    machines = tuple(kept if m is machine else m for m in scope.machines)
    after = replace(ledger, scope=replace(scope, machines=machines))
    note = f"the owner changed what is kept for {machine.name}"
    return ledgers.note(after, What.ROSTER, actor, now, None, note)


def differences(before: Scope, after: Scope) -> str:
    """What changed between two rosters, in words; "" if nothing did."""
    old = {machine.name.lower(): machine for machine in before.machines}
    new = {machine.name.lower(): machine for machine in after.machines}
    parts = [f"added {machine.name}" for name, machine in new.items() if name not in old]
    parts += [f"removed {machine.name}" for name, machine in old.items() if name not in new]
    parts += [f"changed {m.name}" for name, m in new.items() if name in old and old[name] != m]
    is_new = not before.machines and parts
    # Which source speaks for the scope follows from who declared it; that is told with the roster.
    if not is_new and _settings(before) != _settings(after):
        parts.append("changed the scope's settings")
    return ", ".join(parts)


def _settings(scope: Scope) -> Scope:
    return replace(scope, machines=(), origin=None)


def _claimed(before: Scope, origin: Origin) -> Origin:
    """Who speaks for a scope that several sources declare: the API only if nobody else does."""
    known = before.origin
    return origin if known in (None, Origin.API) or _yields(known, origin) else known


def _yields(known: Origin | None, origin: Origin) -> bool:
    """Whether one source makes room for another: a file says more of a machine than who saw it."""
    return known is Origin.CENSUS and origin is Origin.FILE


def _not_yours(scope: Scope, origin: Origin) -> str:
    assert scope.origin is not None, "what nobody declared is anybody's"
    return (
        f"scope {scope.id} is declared by the {scope.origin.value}, so the {origin.value} cannot "
        "add, change or remove its VMs: change it there; its owner's policies can be set here"
    )


def _machine(scope: Scope, name: str) -> Machine:
    machine = scope.machine(name)
    if machine is None:
        raise Unknown(f"no VM {name} in scope {scope.id}; `forewarn fleet` lists them")
    return machine


def _spelled(before: OwnerPolicies, after: OwnerPolicies) -> Iterator[str]:
    for member in fields(OwnerPolicies):
        value = getattr(after, member.name)
        if value == getattr(before, member.name):
            continue
        if isinstance(value, timedelta):
            spelled = "off" if value == scopes.OFF else spell(value)
        else:
            spelled = "as declared" if value is None else ("off", "on")[value]
        yield f"{member.name.replace('_', ' ')} to {spelled}"


def _refuse_clash(before: Scope, declared: Scope, origin: Origin) -> None:
    for machine in declared.machines:
        known = before.machine(machine.name)
        if known is None or known.origin is origin or _yields(known.origin, origin):
            continue
        raise Refused(
            f"{machine.name} of scope {before.id} is declared by the {known.origin.value} and "
            f"by the {origin.value}: take it out of one of them"
        )


def _refuse_moves(ledger: Ledger, after: Scope) -> None:
    """An event's machines are of one update domain, under names that guests were told."""
    for event in ledger.open_events:
        for name in event.machines:
            machine = after.machine(name)
            if machine is None:
                continue
            if (machine.name, machine.update_domain) != (name, event.update_domain):
                raise Refused(
                    f"{name} of scope {after.id} has an open event, {event.id}, in update domain "
                    f"{event.update_domain}: cancel it or let it end before changing that"
                )


def _merged(before: Scope, declared: Declaration, origin: Origin) -> tuple[Machine, ...]:
    """The machines of all sources. Whoever was there keeps the place: guests count on the order."""
    count = declared.scope.update_domains
    settled = set(declared.settled)
    wanted = {machine.name.lower(): machine for machine in declared.scope.machines}
    machines: list[Machine] = []
    for known in before.machines:
        is_claimed = _yields(known.origin, origin) and known.name.lower() in wanted
        if known.origin is not origin and not is_claimed:
            machines.append(known)
            settled.add(known.name)
            continue
        machine = wanted.pop(known.name.lower(), None)
        if machine is None:
            continue
        if machine.name not in settled and known.update_domain < count:
            settled.add(machine.name)
            machine = replace(machine, update_domain=known.update_domain)
        # What is kept is the API's to say; a file that says nothing takes nothing away.
        kept = machine.kept if origin is Origin.API else known.kept
        is_seen = origin is Origin.CENSUS or machine.name in declared.seen
        presence = _presence(known, machine, is_seen=is_seen)
        machines.append(replace(machine, origin=origin, presence=presence, kept=kept))
    machines += (replace(machine, origin=origin) for machine in wanted.values())
    return scopes.spread(machines, settled, count)


def _presence(known: Machine, declared: Machine, *, is_seen: bool) -> Presence:
    """Whether a machine is there, by one who has seen it; anybody else's word changes nothing.

    One that was preempted or terminated does not come back by being declared still.
    """
    if not is_seen or known.presence is Presence.DELETED:
        return known.presence
    if known.presence is Presence.DEALLOCATED and declared.presence is Presence.STOPPED:
        # Both are off; only the record knows the difference.
        return known.presence
    return declared.presence
