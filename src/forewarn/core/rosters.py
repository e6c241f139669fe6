"""Keeping a scope's roster in step with what its sources declare.

A source (a fleet file, the control API, a fabric's census) adds, changes and removes only the
machines it declared itself. A scope is never deleted: one without machines keeps its ledger, so
that its incarnation goes on should it come back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.core import ledgers, scopes, starting
from forewarn.core.journal import Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import MachineName
from forewarn.core.scopes import Machine, Origin, Scope
from forewarn.errors import Refused


@dataclass(frozen=True, slots=True)
class Declaration:
    """A scope as one source wants it. `settled` machines were given their update domain."""

    scope: Scope
    settled: frozenset[MachineName] = frozenset()


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
    scope = replace(declared.scope, machines=machines)
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
    """Take all machines of a source out of the scope: it no longer declares the scope at all."""
    others = tuple(m for m in ledger.scope.machines if m.origin is not origin)
    if len(others) == len(ledger.scope.machines):
        return Decision(ledger)
    return enroll(ledger, Declaration(replace(ledger.scope, machines=())), origin, actor, now)


def differences(before: Scope, after: Scope) -> str:
    """What changed between two rosters, in words; "" if nothing did."""
    old = {machine.name.lower(): machine for machine in before.machines}
    new = {machine.name.lower(): machine for machine in after.machines}
    parts = [f"added {machine.name}" for name, machine in new.items() if name not in old]
    parts += [f"removed {machine.name}" for name, machine in old.items() if name not in new]
    parts += [f"changed {m.name}" for name, m in new.items() if name in old and old[name] != m]
    is_new = not before.machines and parts
    if not is_new and replace(before, machines=()) != replace(after, machines=()):
        parts.append("changed the scope's settings")
    return ", ".join(parts)


def _refuse_clash(before: Scope, declared: Scope, origin: Origin) -> None:
    for machine in declared.machines:
        known = before.machine(machine.name)
        if known is not None and known.origin is not origin:
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
        if known.origin is not origin:
            machines.append(known)
            settled.add(known.name)
            continue
        machine = wanted.pop(known.name.lower(), None)
        if machine is None:
            continue
        if machine.name not in settled and known.update_domain < count:
            settled.add(machine.name)
            machine = replace(machine, update_domain=known.update_domain)
        # A machine that was preempted or terminated does not come back by being declared still.
        machines.append(replace(machine, origin=origin, presence=known.presence))
    machines += (replace(machine, origin=origin) for machine in wanted.values())
    return scopes.spread(machines, settled, count)
