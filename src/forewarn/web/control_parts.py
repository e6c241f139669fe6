"""What the operators' API stands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from forewarn.core.events import EventType
from forewarn.core.journal import Actor
from forewarn.core.ledgers import Ledger
from forewarn.core.names import ScopeId
from forewarn.ports.clock import Clock
from forewarn.service.books import Books
from forewarn.service.deliveries import Counts
from forewarn.service.desk import Desk, Placed
from forewarn.service.hosts import Hosts
from forewarn.service.journals import Journals
from forewarn.service.operations import Operations
from forewarn.web.metrics import Metrics, Served, Tally
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import EventForm, ScopeNames, names_of


class News:
    """Counts the ledgers that were told, by whichever process committed them."""

    def __init__(self, books: Books) -> None:
        self.count = 0
        books.tell(self._note)

    def _note(self, _ledger: Ledger) -> None:
        # Books tells its readers in one thread at a time.
        self.count += 1


@dataclass(frozen=True, kw_only=True)
class ControlParts:
    """What the operators' API stands on."""

    clock: Clock
    books: Books
    desk: Desk
    journals: Journals
    operations: Operations
    # The text of a fleet file, its name, and who brings it; returns what changed.
    apply_fleet: Callable[[str, str, Actor], tuple[str, ...]]
    # Reads the service's own fleet file again.
    reload_fleet: Callable[[Actor], tuple[str, ...]]
    backup: Callable[[Path], None]
    # Why the service is not ready; None: it is.
    ready: Callable[[], str | None]
    # What the guests' endpoint counts, and how often the conductor could not tend a scope.
    counters: Served
    setbacks: Callable[[], int]
    # What is counted of deliveries to webhooks.
    hooks: Counts = field(default_factory=Counts)
    # Tells a VM of the simulated fabric how to behave; None where the fabric is real.
    behave: Callable[[str, str], None] | None = None
    # Tells it how long an impact on it takes; None likewise.
    take: Callable[[str, EventType, timedelta], None] | None = None

    @cached_property
    def metrics(self) -> Metrics:
        """What is told to Prometheus; made once, as it counts from then on."""
        return Metrics(self.counters, Tally.following(self.desk), self.setbacks, self.hooks)

    @cached_property
    def news(self) -> News:
        """Whether something was committed; made once, as it counts from then on."""
        return News(self.books)

    @property
    def hosts(self) -> Hosts:
        return Hosts(self.desk.board, self.desk.directory)


def placed_form(placed: Placed) -> EventForm:
    """An event, as operators read it."""
    return forms.event_form(placed.event, forms.names_in(placed.ledger))


def names(parts: ControlParts, scope: ScopeId) -> ScopeNames:
    """A scope's names as they were declared, as far as that is known."""
    posting = parts.desk.board.posting(scope)
    return names_of(scope) if posting is None else forms.names_in(posting.ledger)
