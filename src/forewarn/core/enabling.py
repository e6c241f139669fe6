"""When a scope's machines are told of events: from their first request until a day of silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from forewarn.core import ledgers, periods
from forewarn.core.journal import SERVICE, Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.scopes import Enabling

_EVER: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def hear(ledger: Ledger, actor: Actor, now: datetime) -> Decision:
    """A machine of the scope asked: enable the scope, or renew the coarse mark when it is old.

    The mark is not journaled: it would be the longest and least read part of the journal.
    """
    if ledger.scope.enabling is Enabling.ALWAYS:
        return Decision(ledger)
    if ledger.enabled_at is None:
        enabled = replace(ledger, enabled_at=now, heard_at=now)
        return ledgers.note(enabled, What.ENABLED, actor, now, None, "first request")
    if needs_mark(ledger, now):
        return Decision(replace(ledger, heard_at=now))
    return Decision(ledger)


def needs_mark(ledger: Ledger, now: datetime) -> bool:
    """Whether hearing a machine now is worth a commit."""
    span = marked_between(ledger)
    return span is None or not span[0] < now < span[1]


def marked_between(ledger: Ledger) -> tuple[datetime, datetime] | None:
    """The instants between which hearing a machine is not worth a commit; None: it always is.

    A clock set back makes the mark old too.
    """
    if ledger.scope.enabling is Enabling.ALWAYS:
        return _EVER
    if ledger.enabled_at is None or ledger.heard_at is None:
        return None
    return ledger.heard_at - periods.HEARD_EVERY, ledger.heard_at + periods.HEARD_EVERY


def fall_silent(ledger: Ledger, silent_for: timedelta, now: datetime) -> Decision:
    """Disable the scope after a day of silence; events already announced are not touched.

    The silence is measured by whoever listens, on a clock that does not jump.
    """
    if ledger.scope.enabling is Enabling.ALWAYS or ledger.enabled_at is None:
        return Decision(ledger)
    if silent_for < periods.SILENCE:
        return Decision(ledger)
    disabled = replace(ledger, enabled_at=None)
    return ledgers.note(disabled, What.DISABLED, SERVICE, now, None, "24 hours without a request")
