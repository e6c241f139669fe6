"""When a scope's machines are told of events: from their first request until a day of silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core import ledgers, periods
from forewarn.core.journal import SERVICE, Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.scopes import Enabling


def hear(ledger: Ledger, actor: Actor, now: datetime, age: timedelta = timedelta()) -> Decision:
    """A machine of the scope asked: enable the scope, or renew the coarse mark when it is old.

    `age` is how old the mark is as far as whoever listens knows, on a clock that does not jump.
    The mark is not journaled: it would be the longest and least read part of the journal.
    """
    if ledger.scope.enabling is Enabling.ALWAYS:
        return Decision(ledger)
    if ledger.enabled_at is None:
        enabled = replace(ledger, enabled_at=now, heard_at=now)
        return ledgers.note(enabled, What.ENABLED, actor, now, None, "first request")
    if needs_mark(ledger, now, age):
        return Decision(replace(ledger, heard_at=now))
    return Decision(ledger)


def needs_mark(ledger: Ledger, now: datetime, age: timedelta = timedelta()) -> bool:
    """Whether hearing a machine now is worth a commit: the mark is old by either clock."""
    if ledger.scope.enabling is Enabling.ALWAYS:
        return False
    if ledger.enabled_at is None or ledger.heard_at is None:
        return True
    return max(abs(now - ledger.heard_at), age) >= periods.HEARD_EVERY


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
