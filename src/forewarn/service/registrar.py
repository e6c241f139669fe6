"""The registrar: keeps the ledgers' rosters in step with what the sources declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from forewarn.core import rosters
from forewarn.core.journal import Actor, Entry
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.names import ScopeId
from forewarn.core.rosters import Declaration
from forewarn.core.scopes import Origin, Presence, Scope
from forewarn.errors import Conflict, Refused
from forewarn.ports.clock import Clock
from forewarn.service.books import Books

SCOPES_PER_COMMIT: Final = 500
ATTEMPTS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Registrar:
    """Applies declarations: adds, changes and removes what their source declared, nothing else."""

    clock: Clock
    books: Books

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
            with suppress(Conflict):
                return self._apply(declarations, origin, actor)
        return self._apply(declarations, origin, actor)

    def _apply(
        self, declarations: Sequence[Declaration], origin: Origin, actor: Actor
    ) -> tuple[str, ...]:
        declared = {declaration.scope.id: declaration for declaration in declarations}
        known = {ledger.scope.id: ledger for ledger in self.books.all()}
        wanted = {
            scope: self._decided(ledger, declared.get(scope), origin, actor)
            for scope, ledger in known.items()
        }
        opened = {
            scope: self._decided(_blank(declaration), declaration, origin, actor)
            for scope, declaration in declared.items()
            if scope not in known
        }
        _refuse_shared_addresses({**wanted, **opened})
        changed = [s for s, d in wanted.items() if d.entries or d.ledger != known[s]]
        self._open(tuple(opened.values()))
        self._amend(changed, declared, origin, actor)
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
    ) -> None:
        for first in range(0, len(scopes), SCOPES_PER_COMMIT):
            some = scopes[first : first + SCOPES_PER_COMMIT]
            self.books.amend_together(
                some,
                lambda found: [
                    self._decided(ledger, declared.get(scope), origin, actor)
                    for scope, ledger in found.items()
                ],
            )

    def _decided(
        self, ledger: Ledger, declaration: Declaration | None, origin: Origin, actor: Actor
    ) -> Decision:
        now = self.clock.now()
        if declaration is None:
            return rosters.withdraw(ledger, origin, actor, now)
        return rosters.enroll(ledger, declaration, origin, actor, now)


def _said(entry: Entry) -> str:
    """A change in words; an event that is called off or narrowed is named."""
    if entry.event is None:
        return entry.note
    event = entry.event
    return f"{entry.what.value} {event.type.value} {event.id} ({entry.note})"


def _blank(declaration: Declaration) -> Ledger:
    """A ledger for a scope that was never stored: its whole roster is news."""
    return Ledger(
        scope=Scope(name=declaration.scope.name, resource_group=declaration.scope.resource_group)
    )


def _refuse_shared_addresses(decisions: Mapping[ScopeId, Decision]) -> None:
    owners: dict[str, str] = {}
    for scope, decision in decisions.items():
        for machine in decision.ledger.scope.machines:
            if machine.presence is Presence.DELETED:
                continue
            owner = f"{machine.name} of scope {scope} (declared by the {machine.origin.value})"
            for address in machine.addresses:
                other = owners.setdefault(address, owner)
                if other != owner:
                    raise Refused(
                        f"{address} is the address of {other} and of {owner}: "
                        "an address tells who is calling, so it can have one owner"
                    )
