"""When guests are told of events at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from forewarn.core import enabling, periods
from forewarn.core.journal import SERVICE, Actor, Role, What
from forewarn.core.ledgers import Decision, Ledger
from forewarn.core.scopes import Enabling, Scope
from forewarn.testing import strategies
from forewarn.testing.strategies import EPOCH as NOON

WEB_0 = Actor(Role.GUEST, "web-0", "10.0.0.4")
DAY = timedelta(hours=24)
TICK = timedelta(microseconds=1)

DISABLED = Ledger(scope=Scope(name="web"))
ENABLED = replace(DISABLED, enabled_at=NOON, heard_at=NOON)
ALWAYS = Ledger(scope=Scope(name="web", enabling=Enabling.ALWAYS))


def test_the_first_request_enables_the_scope() -> None:
    """keeps S13."""
    heard = enabling.hear(DISABLED, WEB_0, NOON)

    assert not DISABLED.is_enabled
    assert heard.ledger == ENABLED
    assert heard.ledger.is_enabled
    assert [(entry.what, entry.actor) for entry in heard.entries] == [(What.ENABLED, WEB_0)]


@pytest.mark.parametrize(
    ("later", "marks"),
    [
        (timedelta(), False),
        (timedelta(hours=1) - TICK, False),
        (timedelta(hours=1), True),
        # The clock was set back.
        (timedelta(minutes=-59), False),
        (timedelta(hours=-1), True),
    ],
)
def test_a_mark_is_renewed_once_an_hour_and_without_a_word(
    later: timedelta, *, marks: bool
) -> None:
    now = NOON + later

    heard = enabling.hear(ENABLED, WEB_0, now)

    assert enabling.needs_mark(ENABLED, now) is marks
    assert heard == Decision(replace(ENABLED, heard_at=now) if marks else ENABLED)


def test_a_scope_that_is_always_enabled_needs_no_requests() -> None:
    assert ALWAYS.is_enabled
    assert not enabling.needs_mark(ALWAYS, NOON)
    assert enabling.hear(ALWAYS, WEB_0, NOON) == Decision(ALWAYS)
    assert enabling.fall_silent(ALWAYS, 2 * DAY, NOON) == Decision(ALWAYS)


def test_a_day_of_silence_disables_and_no_less() -> None:
    """keeps S13."""
    assert enabling.fall_silent(ENABLED, DAY - TICK, NOON) == Decision(ENABLED)

    silent = enabling.fall_silent(ENABLED, DAY, NOON)

    assert not silent.ledger.is_enabled
    assert [(entry.what, entry.actor) for entry in silent.entries] == [(What.DISABLED, SERVICE)]


def test_a_disabled_scope_cannot_fall_silent() -> None:
    assert enabling.fall_silent(DISABLED, 2 * DAY, NOON) == Decision(DISABLED)


@given(strategies.ledgers())
def test_silence_touches_no_event_and_a_request_brings_the_scope_back(ledger: Ledger) -> None:
    silent = enabling.fall_silent(ledger, DAY, NOON).ledger

    assert silent.events == ledger.events
    assert silent.document == ledger.document
    assert enabling.hear(silent, WEB_0, NOON).ledger.is_enabled


@given(strategies.ledgers(), strategies.instants())
def test_hearing_commits_exactly_when_a_mark_is_needed(ledger: Ledger, now: datetime) -> None:
    heard = enabling.hear(ledger, WEB_0, now)

    assert (heard.ledger != ledger) is enabling.needs_mark(ledger, now)


def test_a_mark_is_renewed_when_it_is_old_on_either_clock() -> None:
    fresh = replace(ENABLED, heard_at=NOON)

    assert not enabling.needs_mark(fresh, NOON, periods.HEARD_EVERY - TICK)
    assert enabling.needs_mark(fresh, NOON, periods.HEARD_EVERY)
    heard = enabling.hear(fresh, WEB_0, NOON + TICK, periods.HEARD_EVERY)
    assert heard.ledger.heard_at == NOON + TICK
