"""Which changes a webhook is told of, and how long we try."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core import webhooks
from forewarn.core.events import Audience, Event, EventSource, EventType
from forewarn.core.journal import SERVICE, Entry, What
from forewarn.core.names import EventId, MachineName, ScopeId
from forewarn.core.targets import Target
from forewarn.core.webhooks import Form, Wanted, Webhook, WebhookId
from forewarn.testing.strategies import EPOCH

EVENT = Event(
    id=EventId("A123BC45-1234-5678-AB90-ABCDEF123456"),
    type=EventType.REBOOT,
    source=EventSource.PLATFORM,
    machines=(MachineName("web-0"),),
    update_domain=0,
    announced_by="operator",
    announced_at=EPOCH,
    notice=timedelta(minutes=15),
    not_before=EPOCH + timedelta(minutes=15),
)
HOOK = Webhook(
    id=WebhookId("abc"),
    name="pager",
    target=Target(scheme="https", host="hooks.example.org", port=443, path="/"),
    secret=b"secret",
    created_by="operator",
    created_at=EPOCH,
)


def entry(what: What = What.STARTED, event: Event | None = EVENT, scope: str = "rg1/web") -> Entry:
    return Entry(at=EPOCH, scope=ScopeId(scope), what=what, actor=SERVICE, event=event)


@pytest.mark.parametrize("what", What)
def test_every_change_that_concerns_an_event_is_told_and_nothing_else(what: What) -> None:
    """keeps N10"""
    assert webhooks.wants(HOOK, entry(what))
    assert not webhooks.wants(HOOK, entry(what, event=None))


@pytest.mark.parametrize(
    ("wanted", "is_told"),
    [
        (Wanted(groups=("rg1",)), True),
        (Wanted(groups=("rg2", "rg3")), False),
        (Wanted(scopes=(ScopeId("rg1/web"),)), True),
        (Wanted(scopes=(ScopeId("rg1/webs"),)), False),
        (Wanted(types=(EventType.REBOOT, EventType.FREEZE)), True),
        (Wanted(types=(EventType.FREEZE,)), False),
        (Wanted(changes=(What.STARTED,)), True),
        (Wanted(changes=(What.COMPLETED,)), False),
        (Wanted(groups=("rg1",), changes=(What.COMPLETED,)), False),
    ],
)
def test_a_filter_is_kept(wanted: Wanted, is_told: object) -> None:
    assert webhooks.wants(replace(HOOK, wanted=wanted), entry()) == is_told


def test_azures_form_tells_only_what_azure_would() -> None:
    hook = replace(HOOK, form=Form.EVENT_GRID)
    told = {what for what in What if webhooks.wants(hook, entry(what))}

    assert told == {
        *(What.ANNOUNCED, What.MOVED, What.POSTPONED, What.NARROWED),
        *(What.STARTED, What.COMPLETED, What.CANCELED),
    }
    unannounced = replace(EVENT, audience=Audience.OPERATORS)
    assert not webhooks.wants(hook, entry(What.STARTED, unannounced))


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_receiver_is_tried_less_and_less_often_but_every_ten_minutes(
    tries: int, chance: float
) -> None:
    wait = webhooks.back_off(tries, chance)

    assert timedelta(seconds=0.5) <= wait <= timedelta(minutes=10)
    assert webhooks.back_off(tries + 1, chance) >= wait


def test_the_wait_doubles() -> None:
    waits = [webhooks.back_off(tries, 0).total_seconds() for tries in range(1, 12)]

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]
    assert webhooks.back_off(3, 1) == timedelta(seconds=2)


def test_a_change_is_given_up_on_after_a_day_and_some_tries() -> None:
    day = timedelta(hours=24)

    assert webhooks.is_hopeless(entry(), EPOCH + day, webhooks.TRIES_MIN)
    assert not webhooks.is_hopeless(entry(), EPOCH + day, webhooks.TRIES_MIN - 1)
    assert not webhooks.is_hopeless(entry(), EPOCH + day - timedelta(seconds=1), 1000)


def test_a_secret_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(HOOK).replace("secret=", "")
