"""The operators' API under /fabric/v1, and the probes beside it.

Each handler is a plain function from a Call to an Answer: no socket, no framework, no waiting.
`web.app` turns HTTP into a Call and an Answer into HTTP, and asks again where an Answer says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from forewarn.core.journal import Actor, Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.rights import Right
from forewarn.errors import Malformed, Refused, Unknown, UnknownEvent
from forewarn.ports.clock import Clock
from forewarn.ports.store import Cursor
from forewarn.service.books import Books
from forewarn.service.desk import Desk, Placed, is_unannounced
from forewarn.service.journals import Filter, Journals
from forewarn.service.operations import Operations
from forewarn.web.calls import Answer, Call, Later, parameters, reply, whole_number
from forewarn.web.metrics import CONTENT_TYPE, Metrics, Served, Tally
from forewarn.web.routes import Route
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import EventForm, ScopeNames, names_of

JOURNAL_LIMIT_MAX: Final = 1000
JOURNAL_WAIT_SECONDS_MAX: Final = 30

_GUID: Final = re.compile(r"\{?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")


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
    # Tells a VM of the simulated fabric how to behave; None where the fabric is real.
    behave: Callable[[str, str], None] | None = None

    @cached_property
    def metrics(self) -> Metrics:
        """What is told to Prometheus; made once, as it counts from then on."""
        return Metrics(self.counters, Tally.following(self.desk), self.setbacks)


Handler = Callable[[ControlParts, Call], Answer]


# -- probes ----------------------------------------------------------------------------------


def _health(_parts: ControlParts, _call: Call) -> Answer:
    return reply(forms.StatusForm(status="ok"))


def _readiness(parts: ControlParts, _call: Call) -> Answer:
    reason = parts.ready()
    if reason is None:
        return reply(forms.StatusForm(status="ok"))
    form = forms.StatusForm(status="not ready", reason=reason)
    return reply(form, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _metrics(parts: ControlParts, _call: Call) -> Answer:
    body = parts.metrics.exposition()
    return Answer(status=HTTPStatus.OK, body=body, content_type=CONTENT_TYPE)


# -- fleet -----------------------------------------------------------------------------------


def _fleet(parts: ControlParts, call: Call) -> Answer:
    scopes = [
        forms.scope_form(ledger)
        for ledger in parts.books.all()
        # A scope that is gone keeps its ledger for the sake of its incarnation.
        if (ledger.scope.machines or ledger.open_events) and call.sees(ledger.scope.resource_group)
    ]
    return reply(forms.FleetForm(scopes=scopes))


def _apply_fleet(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.FleetFile, call.body)
    changes = parts.apply_fleet(asked.toml, asked.name, call.actor)
    return reply(forms.ChangesForm(changes=changes))


def _reload_fleet(parts: ControlParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    return reply(forms.ChangesForm(changes=parts.reload_fleet(call.actor)))


# -- events ----------------------------------------------------------------------------------


def _events(parts: ControlParts, call: Call) -> Answer:
    status = parameters(call, "status").get("status", "open")
    if status not in {"open", "all"}:
        raise Malformed(f"status is open or all, not {status[:50]!r}")
    found = [
        _form(placed)
        for placed in parts.desk.events()
        if (status == "all" or placed.event.is_open)
        and call.sees(placed.ledger.scope.resource_group)
    ]
    return reply(forms.EventsForm(events=found))


def _announce(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Announcement, call.body)
    made = parts.desk.announce(asked.wish, asked.hosts, call.actor)
    form = forms.AnnouncedForm(
        events=[_form(placed) for placed in made if not is_unannounced(placed.event)],
        unannounced=[_form(placed) for placed in made if is_unannounced(placed.event)],
    )
    return reply(form, status=HTTPStatus.CREATED)


def _show(parts: ControlParts, call: Call) -> Answer:
    event_id = call.names["event"]
    try:
        placed = parts.desk.event(event_id)
        call.insist(placed.ledger.scope.resource_group)
        return reply(_form(placed))
    except UnknownEvent:
        # The whole journal is read only for what can be an event at all.
        if _GUID.fullmatch(event_id) is None:
            raise
    scope, event = parts.journals.event(event_id)
    names = _names(parts, scope)
    call.insist(names.resource_group)
    return reply(forms.event_form(event, names))


def _approve(parts: ControlParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    return reply(_form(parts.desk.approve(_own_event(parts, call), call.actor)))


def _cancel(parts: ControlParts, call: Call) -> Answer:
    wire.load(wire.Nothing, call.body)
    return reply(_form(parts.desk.cancel(_own_event(parts, call), call.actor)))


def _postpone(parts: ControlParts, call: Call) -> Answer:
    later = wire.load(wire.Postponement, call.body).later
    return reply(_form(parts.desk.postpone(_own_event(parts, call), later, call.actor)))


def _resolve(parts: ControlParts, call: Call) -> Answer:
    result = wire.load(wire.Resolution, call.body).word
    return reply(_form(parts.desk.resolve(call.names["event"], result, call.actor)))


def _form(placed: Placed) -> EventForm:
    return forms.event_form(placed.event, forms.names_in(placed.ledger))


def _own_event(parts: ControlParts, call: Call) -> str:
    """The event that the path names, if the caller has a right to it. Raises: Forbidden, Unknown."""
    event_id = call.names["event"]
    call.insist(names_of(parts.desk.directory.event(event_id)).resource_group)
    return event_id


def _names(parts: ControlParts, scope: ScopeId) -> ScopeNames:
    """A scope's names as they were declared, as far as that is known."""
    posting = parts.desk.board.posting(scope)
    return names_of(scope) if posting is None else forms.names_in(posting.ledger)


# -- journal and upkeep ----------------------------------------------------------------------


def _journal(parts: ControlParts, call: Call) -> Answer:
    asked = parameters(call, "after", "limit", "wait", "event", "scope")
    limit = whole_number(asked, "limit", default=100, least=1, most=JOURNAL_LIMIT_MAX)
    wait = whole_number(asked, "wait", default=0, least=0, most=JOURNAL_WAIT_SECONDS_MAX)
    wanted = Filter(
        event=asked.get("event"),
        scope=_known_scope(parts, asked.get("scope")),
        concerns=lambda scope: call.sees(names_of(scope).resource_group if scope else None),
    )
    page = parts.journals.page(Cursor(asked.get("after", "")), limit, wanted)
    later = None
    if wait and page.is_last and not page.lines:
        # From where this page ended: what was not wanted is not read twice.
        again = replace(call, query=urlencode({**asked, "after": page.cursor}))
        later = Later(again, timedelta(seconds=wait))
    entries = [
        forms.entry_form(line.entry, line.cursor, _names(parts, line.entry.scope))
        for line in page.lines
    ]
    form = forms.JournalForm(entries=entries, cursor=page.cursor, is_last=page.is_last)
    return reply(form, later=later)


def _prune(parts: ControlParts, call: Call) -> Answer:
    before = wire.load(wire.Pruning, call.body).instant
    # First: how some of them ended may be known to the journal alone.
    parts.operations.prune(before)
    return reply(forms.PrunedForm(pruned=parts.journals.prune(before, call.actor)))


def _backup(parts: ControlParts, call: Call) -> Answer:
    file = Path(wire.load(wire.Backup, call.body).file)
    _refuse_target(file)
    # Written first: the last entry in a backup says when it was taken.
    parts.books.journalize(
        Entry(
            at=parts.clock.now(),
            scope=ScopeId(""),
            what=What.BACKED_UP,
            actor=call.actor,
            note=f"to {file}",
        )
    )
    parts.backup(file)
    return reply(forms.BackupForm(path=str(file)))


def _refuse_target(file: Path) -> None:
    """Refuse a file that this process cannot make. Raises: Refused."""
    if file.exists():
        raise Refused(f"{file} exists already: name a new file")
    if not file.parent.is_dir():
        raise Refused(
            f"there is no directory {file.parent} on the service's machine: make it first"
        )
    if not os.access(file.parent, os.W_OK):
        raise Refused(f"the service may not write to {file.parent}: name another directory")


def _behave(parts: ControlParts, call: Call) -> Answer:
    asked = wire.load(wire.Behavior, call.body)
    if parts.behave is None:
        raise Unknown("this service has no simulated fabric: its VMs behave as they do")
    parts.behave(asked.machine, asked.behavior)
    return reply(forms.NothingForm())


def _known_scope(parts: ControlParts, text: str | None) -> ScopeId | None:
    """The scope that is meant, by its id or by its name alone. Raises: Unknown, Refused."""
    if text is None:
        return None
    scope = ScopeId(text.lower())
    if "/" not in scope:
        named = [known for known in parts.desk.directory.scopes() if known.endswith(f"/{scope}")]
        if len(named) > 1:
            raise Refused(f"several scopes are called {text}: say which of {', '.join(named)}")
        scope = named[0] if named else scope
    return parts.books.load(scope).scope.id


def routes(parts: ControlParts) -> tuple[Route, ...]:
    """What is asked here, each with the right that it takes."""
    # Counts from the start, not from the first scrape.
    _ = parts.metrics
    return tuple(
        Route(
            method=method,
            path=path,
            right=right,
            handle=partial(handler, parts),
            at_once=handler is _health,
        )
        for method, path, right, handler in ROUTES
    )


ROUTES: Final[tuple[tuple[str, str, Right, Handler], ...]] = (
    ("GET", "/healthz", Right.ANYBODY, _health),
    ("GET", "/readyz", Right.ANYBODY, _readiness),
    ("GET", "/metrics", Right.ANYBODY, _metrics),
    ("GET", "/fabric/v1/fleet", Right.READ, _fleet),
    ("POST", "/fabric/v1/fleet", Right.OPERATE, _apply_fleet),
    ("POST", "/fabric/v1/fleet/reload", Right.OPERATE, _reload_fleet),
    ("GET", "/fabric/v1/events", Right.READ, _events),
    ("POST", "/fabric/v1/events", Right.OPERATE, _announce),
    ("GET", "/fabric/v1/events/{event}", Right.READ, _show),
    ("POST", "/fabric/v1/events/{event}/approve", Right.OWN, _approve),
    ("POST", "/fabric/v1/events/{event}/cancel", Right.OWN, _cancel),
    ("POST", "/fabric/v1/events/{event}/postpone", Right.OWN, _postpone),
    ("POST", "/fabric/v1/events/{event}/resolve", Right.OPERATE, _resolve),
    ("GET", "/fabric/v1/journal", Right.READ, _journal),
    ("POST", "/fabric/v1/journal/prune", Right.OPERATE, _prune),
    ("POST", "/fabric/v1/backup", Right.OPERATE, _backup),
    ("POST", "/fabric/v1/simulated-fabric", Right.OPERATE, _behave),
)
