"""When a scope's machines are told of events: from their first request until a day of silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from forewarn.core import ledgers, periods
from forewarn.core.journal import SERVICE, Actor, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.scopes import Enabling
from forewarn.core.values import replace


class Freshness(NamedTuple):
    """When a mark is not old: between two instants, and for a while from now on."""

    after: datetime
    before: datetime
    # On a clock that does not jump; not above zero: the mark is old already.
    lasts: timedelta


_ALWAYS: Final = Freshness(
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    # Longer than any service runs.
    timedelta(days=365_000),
)


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
    fresh = freshness(ledger, age)
    return fresh is None or not (fresh.after < now < fresh.before and fresh.lasts > timedelta())


def freshness(ledger: Ledger, age: timedelta) -> Freshness | None:
    """How long hearing a machine is not worth a commit; None: it is worth one now.

    A clock set back makes the mark old too.
    """
    if ledger.scope.enabling is Enabling.ALWAYS:
        return _ALWAYS
    if ledger.enabled_at is None or ledger.heard_at is None:
        return None
    return Freshness(
        ledger.heard_at - periods.HEARD_EVERY,
        ledger.heard_at + periods.HEARD_EVERY,
        periods.HEARD_EVERY - age,
    )


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
