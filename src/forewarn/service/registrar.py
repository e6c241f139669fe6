"""The registrar: keeps the ledgers' rosters in step with what the sources declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Final

from forewarn.core import ledgers, rosters
from forewarn.core.journal import Actor, Entry
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import Revision, ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Machine, Origin, OwnerPolicies, Presence, Scope
from forewarn.errors import Conflict, Refused, Unknown
from forewarn.ports.clock import Clock
from forewarn.ports.identities import Identities
from forewarn.service.books import Books
from forewarn.wire import records

SCOPES_PER_COMMIT: Final = 500
ATTEMPTS_MAX: Final = 10
_ONE_OWNER: Final = "an address tells who is calling, so it can have one owner"


@dataclass(frozen=True, slots=True)
class Registrar:
    """Applies declarations: adds, changes and removes what their source declared, nothing else."""

    clock: Clock
    books: Books
    identities: Identities
    # Where several threads declare, a lock: whether an address is taken is looked up before it is
    # committed.
    turn: AbstractContextManager[object] = field(default_factory=nullcontext)

    def apply(
        self, declarations: Sequence[Declaration], origin: Origin, actor: Actor
    ) -> tuple[str, ...]:
        """Bring the fleet in step with one source. Returns what changed, a line each.

        Everything is checked before anything is committed.

        Raises: Refused if two sources declare one machine or one address, Conflict after many
        attempts, Unavailable.
        """
        for _ in range(ATTEMPTS_MAX - 1):
            # Somebody else has just declared one of the new scopes: look again.
            with suppress(Conflict), self.turn:
                return self._apply(declarations, origin, actor)
        with self.turn:
            return self._apply(declarations, origin, actor)

    def declare(
        self,
        declaration: Declaration,
        origin: Origin,
        actor: Actor,
        base_revision: Revision | None = None,
    ) -> Ledger:
        """Declare one scope, and leave all others alone. Returns its ledger as committed.

        The scope is opened if it is new; of its machines, only this source's are added, changed
        and removed. With `base_revision`, only if its ledger still is of that revision (0: only if
        there is none). Owner's policies and what is kept go on where the declaration has none.

        Raises: Refused if another source declared the scope, a machine or an address, or if the
        scope is of another kind; Conflict if it is of another revision; Unavailable.
        """
        scope = declaration.scope.id
        with self.turn:
            with suppress(Unknown):
                return self._redeclare(declaration, origin, actor, base_revision)
            if base_revision not in (None, 0):
                raise Conflict([records.key(scope)])
            with suppress(Conflict):
                self.books.open((self._declared(_blank(declaration), declaration, origin, actor),))
                return self.books.load(scope)
            # Somebody else has just opened it.
            return self._redeclare(declaration, origin, actor, base_revision)

    def withdraw(
        self, scope: ScopeId, origin: Origin, actor: Actor, base_revision: Revision | None = None
    ) -> Ledger:
        """Take a source's machines out of one scope: the source no longer declares it.

        With `base_revision`, only if its ledger still is of that revision: nobody loses a machine
        that was declared since he looked.

        Raises: Unknown, Refused, Unavailable.
        """
        now = self.clock.now()

        def decide(ledger: Ledger) -> Decision:
            if base_revision not in (None, ledger.revision):
                raise Refused(f"scope {scope} was changed meanwhile: look again")
            return rosters.withdraw(ledger, origin, actor, now)

        return self.books.amend(scope, decide)

    def remove(
        self, scope: ScopeId, machine: str, actor: Actor, origin: Origin = Origin.API
    ) -> Ledger:
        """Drop a machine's record for good. Raises: Unknown, Refused, Unavailable."""
        now = self.clock.now()
        return self.books.amend(
            scope, lambda ledger: rosters.remove(ledger, machine, origin, actor, now)
        )

    def amend_policies(
        self,
        scope: ScopeId,
        change: Callable[[OwnerPolicies], OwnerPolicies],
        actor: Actor,
        keep: Callable[[str], str] = str,
    ) -> Ledger:
        """Set what a scope's owner may set, and what is kept for the owner.

        Both may be called several times. Raises: Unknown, Refused, Unavailable.
        """
        now = self.clock.now()
        return self.books.amend(
            scope,
            lambda ledger: rosters.amend_policies(
                ledger, change(ledger.scope.owner), actor, now, keep
            ),
        )

    def keep(
        self, scope: ScopeId, machine: str | None, change: Callable[[str], str], actor: Actor
    ) -> Ledger:
        """Change what is kept for the owner of a machine, or of the scope.

        `change` may be called several times. Raises: Unknown, Unavailable.
        """
        now = self.clock.now()
        return self.books.amend(
            scope, lambda ledger: rosters.keep(ledger, machine, change, actor, now)
        )

    def _redeclare(
        self,
        declaration: Declaration,
        origin: Origin,
        actor: Actor,
        base_revision: Revision | None,
    ) -> Ledger:
        found: Revision | None = None

        def decide(ledger: Ledger) -> Decision:
            nonlocal found
            found = ledger.revision
            if base_revision not in (None, found):
                return Decision(ledger)
            return self._declared(ledger, declaration, origin, actor)

        ledger = self.books.amend(declaration.scope.id, decide)
        if base_revision not in (None, found):
            raise Conflict([records.key(declaration.scope.id)])
        return ledger

    def _declared(
        self, ledger: Ledger, declaration: Declaration, origin: Origin, actor: Actor
    ) -> Decision:
        decision = rosters.declare(ledger, declaration, origin, actor, self.clock.now())
        self._refuse_taken(decision)
        return decision

    def _refuse_taken(self, decision: Decision) -> None:
        """Refuse addresses that others have, by the index in memory: no other ledger is read."""
        scope = decision.ledger.scope
        _refuse_shared_addresses({scope.id: decision})
        for machine, address in _addresses(scope):
            owner = self.identities.owner(address)
            if owner is None or owner.scope == scope.id:
                continue
            other = f"{owner.machine} of scope {owner.scope}"
            if owner.scope.partition("/")[0] != scope.resource_group.lower():
                # Who has it is no business of whoever may ask for another group.
                other = "a VM of another resource group"
            raise Refused(
                f"{address} is the address of {other} and of {machine.name} of scope {scope.id}: "
                f"{_ONE_OWNER}"
            )

    def _apply(
        self, declarations: Sequence[Declaration], origin: Origin, actor: Actor
    ) -> tuple[str, ...]:
        declared = {declaration.scope.id: declaration for declaration in declarations}
        known = {ledger.scope.id: ledger for ledger in self.books.all()}
        claimed = _claimed(declarations, origin)
        wanted = {
            scope: self._decided(ledger, declared.get(scope), origin, actor, claimed)
            for scope, ledger in known.items()
        }
        opened = {
            scope: self._decided(_blank(declaration), declaration, origin, actor, claimed)
            for scope, declaration in declared.items()
            if scope not in known
        }
        _refuse_shared_addresses({**wanted, **opened})
        changed = [s for s, d in wanted.items() if d.entries or d.ledger != known[s]]
        self._open(tuple(opened.values()))
        self._amend(changed, declared, origin, actor, claimed)
        decided = [*opened.values(), *(wanted[scope] for scope in changed)]
        return tuple(
            f"{decision.ledger.scope.id}: {'; '.join(map(_said, decision.entries))}"
            for decision in decided
            if decision.entries
        )

    def _open(self, decisions: Sequence[Decision]) -> None:
        for first in range(0, len(decisions), SCOPES_PER_COMMIT):
            self.books.open(decisions[first : first + SCOPES_PER_COMMIT])

    def _amend(
        self,
        scopes: Sequence[ScopeId],
        declared: Mapping[ScopeId, Declaration],
        origin: Origin,
        actor: Actor,
        claimed: frozenset[str],
    ) -> None:
        for first in range(0, len(scopes), SCOPES_PER_COMMIT):
            some = scopes[first : first + SCOPES_PER_COMMIT]
            self.books.amend_together(
                some,
                lambda found: [
                    self._decided(ledger, declared.get(scope), origin, actor, claimed)
                    for scope, ledger in found.items()
                ],
            )

    def _decided(
        self,
        ledger: Ledger,
        declaration: Declaration | None,
        origin: Origin,
        actor: Actor,
        claimed: frozenset[str],
    ) -> Decision:
        now = self.clock.now()
        if declaration is None:
            decision = rosters.withdraw(ledger, origin, actor, now)
        else:
            decision = rosters.enroll(ledger, declaration, origin, actor, now)
        return ledgers.then(decision, rosters.cede(decision.ledger, claimed, actor, now))


def _claimed(declarations: Sequence[Declaration], origin: Origin) -> frozenset[str]:
    """The ids of the VMs that a file puts somewhere, wherever a census found them."""
    if origin is not Origin.FILE:
        return frozenset()
    machines = (machine for declared in declarations for machine in declared.scope.machines)
    return frozenset(machine.vm_id for machine in machines if machine.vm_id)


def _said(entry: Entry) -> str:
    """A change in words; an event that is called off or narrowed is named."""
    if entry.event is None:
        return entry.note
    event = entry.event
    return f"{entry.what.value} {event.type.value} {event.id} ({entry.note})"


def _blank(declaration: Declaration) -> Ledger:
    """A ledger for a scope that was never stored: its whole roster is news."""
    return Ledger(
        scope=Scope(
            name=declaration.scope.name,
            resource_group=declaration.scope.resource_group,
            origin=None,
        )
    )


def _addresses(scope: Scope) -> Iterator[tuple[Machine, str]]:
    """What the scope's machines speak from; a deleted one's addresses are free."""
    for machine in scope.machines:
        if machine.presence is not Presence.DELETED:
            yield from ((machine, address) for address in machine.addresses)


def _refuse_shared_addresses(decisions: Mapping[ScopeId, Decision]) -> None:
    owners: dict[str, str] = {}
    for scope, decision in decisions.items():
        for machine, address in _addresses(decision.ledger.scope):
            owner = f"{machine.name} of scope {scope} (declared by the {machine.origin.value})"
            other = owners.setdefault(address, owner)
            if other != owner:
                raise Refused(f"{address} is the address of {other} and of {owner}: {_ONE_OWNER}")
