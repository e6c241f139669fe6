"""The journal under /fabric/v1: read by whatever is known of a line, page by page, and pruned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec

from forewarn.core.events import EventType
from forewarn.core.journal import Role, What
from forewarn.core.names import ScopeId
from forewarn.core.rights import Right
from forewarn.errors import Refused, Unknown
from forewarn.ports.store import Cursor
from forewarn.service.journals import Filter, Line
from forewarn.web.calls import Answer, Call, Later, reply, whole_number
from forewarn.web.control_parts import ControlParts, names
from forewarn.web.described import Described, Parameter
from forewarn.web.rows import Row
from forewarn.wire import control as wire
from forewarn.wire import control_forms as forms
from forewarn.wire.control_forms import EntryForm, names_of

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
WAIT_SECONDS_MAX: Final = 30

AFTER: Final = Parameter(
    name="after", about="A cursor that was told before: only what came after it."
)
# By what an event is known; these are the change stream's too.
ABOUT_EVENTS: Final = (
    Parameter(name="event", about="An event's id."),
    Parameter(name="scope", about="A scope, as `group/name`, or by its name if no other has it."),
    Parameter(name="group", about="A resource group."),
    Parameter(name="machine", about="A VM, as `name`, `group/name` or `group/scope/name`."),
    Parameter(name="type", about="An event's type.", kind=forms.EventTypeWord),
)
_QUERY: Final = (
    AFTER,
    Parameter(
        name="limit",
        about=f"How many lines at most, {LIMIT_DEFAULT} if nothing is said; those of one commit "
        "come together.",
        kind=Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)],
    ),
    Parameter(
        name="wait",
        about="How many seconds to wait where there is nothing to tell.",
        kind=Annotated[int, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)],
    ),
    *ABOUT_EVENTS,
    Parameter(name="what", about="What happened.", kind=forms.WhatWord),
    Parameter(name="actor", about="Who did it, by name: a principal, a VM, a policy."),
    Parameter(name="role", about="In which capacity.", kind=forms.RoleWord),
    Parameter(name="since", about="The first instant that is wanted.", kind=forms.Instant),
    Parameter(name="until", about="The first instant that is not.", kind=forms.Instant),
)


def wanted(parts: ControlParts, call: Call, *, of_events: bool = False) -> Filter:
    """The lines that a call asks for, among those that concern the caller.

    Raises: Malformed, Unknown, Forbidden, Refused.
    """
    asked = call.asked
    return Filter(
        event=asked.get("event"),
        scope=_known_scope(parts, call),
        group=_known_group(parts, call),
        machine=asked.get("machine"),
        type=wire.named(EventType, "type", asked["type"]) if "type" in asked else None,
        what=wire.named(What, "what", asked["what"]) if "what" in asked else None,
        actor=asked.get("actor"),
        role=wire.named(Role, "role", asked["role"]) if "role" in asked else None,
        since=_instant(asked, "since"),
        until=_instant(asked, "until"),
        of_events=of_events,
        concerns=lambda scope: call.sees(names_of(scope).resource_group if scope else None),
    )


def line_form(parts: ControlParts, line: Line) -> EntryForm:
    """A line of the journal, as operators read it."""
    return forms.entry_form(line.entry, line.cursor, names(parts, line.entry.scope))


def _journal(parts: ControlParts, call: Call) -> Answer:
    asked = call.asked
    limit = whole_number(asked, "limit", default=LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
    wait = whole_number(asked, "wait", default=0, least=0, most=WAIT_SECONDS_MAX)
    page = parts.journals.search(Cursor(asked.get("after", "")), limit, wanted(parts, call))
    later = None
    if wait and page.is_last and not page.lines:
        # From where this page ended: what was not wanted is not read twice.
        again = replace(call, query=urlencode({**asked, "after": page.cursor}))
        later = Later(again, timedelta(seconds=wait))
    entries = [line_form(parts, line) for line in page.lines]
    form = forms.JournalForm(entries=entries, cursor=page.cursor, is_last=page.is_last)
    return reply(form, later=later)


def _prune(parts: ControlParts, call: Call) -> Answer:
    before = wire.load(wire.Pruning, call.body).instant
    # First: how some of them ended may be known to the journal alone.
    parts.operations.prune(before)
    return reply(forms.PrunedForm(pruned=parts.journals.prune(before, call.actor)))


def _known_scope(parts: ControlParts, call: Call) -> ScopeId | None:
    """The scope that is meant, by its id or by its name alone.

    Raises: Unknown, Forbidden, Refused.
    """
    text = call.asked.get("scope")
    if text is None:
        return None
    scope = ScopeId(text.lower())
    if "/" not in scope:
        named = [known for known in _seen(parts, call) if known.endswith(f"/{scope}")]
        if len(named) > 1:
            raise Refused(f"several scopes are called {text}: say which of {', '.join(named)}")
        scope = named[0] if named else scope
    else:
        call.insist(names_of(scope).resource_group)
    return parts.books.load(scope).scope.id


def _known_group(parts: ControlParts, call: Call) -> str | None:
    """The resource group that is meant. Raises: Unknown, Forbidden."""
    group = call.asked.get("group")
    if group is None:
        return None
    call.insist(group)
    if not any(known.startswith(f"{group.lower()}/") for known in _seen(parts, call)):
        raise Unknown(f"no scope is in a resource group {group}; `forewarn fleet` lists them")
    return group


def _seen(parts: ControlParts, call: Call) -> list[ScopeId]:
    known = parts.desk.directory.scopes()
    return [scope for scope in known if call.sees(names_of(scope).resource_group)]


def _instant(asked: Mapping[str, str], name: str) -> datetime | None:
    return wire.instant(name, asked[name]) if name in asked else None


ROWS: Final = (
    Row(
        "GET",
        "/fabric/v1/journal",
        Right.READ,
        _journal,
        Described(
            name="readJournal",
            summary="Read what happened, oldest first, from a cursor on.",
            query=_QUERY,
            answers={HTTPStatus.OK: forms.JournalForm},
            refusals=frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}),
        ),
    ),
    Row(
        "POST",
        "/fabric/v1/journal/prune",
        Right.OPERATE,
        _prune,
        Described(
            name="pruneJournal",
            summary="Forget what was written before an instant. Export it first.",
            asks=wire.Pruning,
            answers={HTTPStatus.OK: forms.PrunedForm},
        ),
    ),
)
