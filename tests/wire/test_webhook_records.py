"""Webhooks as a store keeps them, and as people are shown them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import SERVICE, Entry, What
from forewarn.core.names import ScopeId
from forewarn.core.targets import Target
from forewarn.core.webhooks import ChangeId, DeadLetter, Form, Wanted, Webhook, WebhookId
from forewarn.errors import Damaged, Malformed, Refused
from forewarn.testing.strategies import EPOCH
from forewarn.wire import control, webhook_forms
from forewarn.wire import webhook_records as spelling
from forewarn.wire.webhook_records import Position

HOOK = Webhook(
    id=WebhookId("abc"),
    name="pager",
    target=Target(scheme="https", host="hooks.example.org", port=443, path="/"),
    form=Form.EVENT_GRID,
    wanted=Wanted(
        groups=("rg1",),
        scopes=(ScopeId("rg1/web"),),
        types=(EventType.FREEZE,),
        changes=(What.TIMED_OUT, What.ANNOUNCED),
    ),
    secret=b"\x00\xff",
    created_by="operator",
    created_at=EPOCH,
    is_paused=True,
)
LETTER = DeadLetter(
    number=7,
    change=ChangeId("c.0"),
    entry=Entry(at=EPOCH, scope=ScopeId("rg1/web"), what=What.STARTED, actor=SERVICE),
    at=EPOCH + timedelta(days=1),
    tries=9,
    why="answered 500",
)


def test_what_is_stored_is_read_back_as_it_was() -> None:
    position = Position("17", {ScopeId("rg1/web"): ChangeId("c.0")}, 3)

    assert spelling.load_webhook(spelling.dump_webhook(HOOK)) == HOOK
    assert spelling.load_position(spelling.dump_position(position)) == position
    assert spelling.load_letter(spelling.dump_letter(LETTER)) == LETTER


def test_keys_are_apart_and_in_order() -> None:
    one = WebhookId("abc")

    assert spelling.webhook_key(one) == "webhook/abc"
    assert spelling.position_key(one) == "webhook-position/abc"
    assert spelling.letter_key(one, 9) < spelling.letter_key(one, 10)
    assert spelling.letter_key(one, 9).startswith(spelling.letters_prefix(one))


def test_what_a_newer_version_wrote_is_refused_and_what_is_damaged_is_told() -> None:
    with pytest.raises(Refused, match="run the version that wrote it"):
        spelling.load_webhook(json.dumps({"format": 2}).encode())
    with pytest.raises(Damaged, match="restore a backup"):
        spelling.load_position(b'{"format": 1')
    with pytest.raises(Damaged):
        spelling.load_letter(b'{"format": 1}')


def test_a_webhook_is_shown_without_its_secret() -> None:
    form = webhook_forms.webhook_form(HOOK, waiting=3, trouble="", dead_letters=1)

    shown = json.loads(control.dump(form))

    assert shown == {
        "id": "abc",
        "name": "pager",
        "url": "https://hooks.example.org/",
        "form": "event-grid",
        "groups": ["rg1"],
        "scopes": ["rg1/web"],
        "types": ["Freeze"],
        "changes": ["timed-out", "scheduled"],
        "paused": True,
        "created_by": "operator",
        "created_at": EPOCH.isoformat().replace("+00:00", "Z"),
        "waiting": 3,
        "trouble": None,
        "dead_letters": 1,
    }
    assert webhook_forms.added_form(form, b"\x00\xff").secret == "whsec_AP8="


def test_what_is_asked_for_is_read() -> None:
    body = b"""{"name": "pager", "url": "https://x/", "form": "Event-Grid", "groups": ["RG1"],
        "scopes": ["RG1/Web"], "types": ["freeze"], "changes": ["Timed-Out", "scheduled"]}"""

    asked = control.load(webhook_forms.NewWebhook, body)

    assert asked.label == "pager"
    assert asked.kind is Form.EVENT_GRID
    assert asked.wanted == HOOK.wanted


def understood(body: str) -> object:
    asked = control.load(webhook_forms.NewWebhook, body.encode())
    return asked.label, asked.kind, asked.wanted


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("form", '"xml"'),
        ("types", '["Explode"]'),
        ("changes", '["exploded"]'),
        ("name", '" pager"'),
        ("name", '"pa\\nger"'),
        ("name", '""'),
        ("groups", json.dumps(["x"] * 101)),
    ],
)
def test_what_cannot_be_understood_is_refused(member: str, value: str) -> None:
    members = {"name": '"pager"', "url": '"https://x/"', member: value}
    body = "{" + ", ".join(f'"{key}": {text}' for key, text in members.items()) + "}"

    with pytest.raises(Malformed):
        understood(body)


def test_a_dead_letter_that_says_only_what_is_missing_has_no_change() -> None:
    missing = DeadLetter(number=1, change=None, entry=None, at=EPOCH, tries=0, why="pruned")

    form = webhook_forms.dead_letter_form(missing)

    assert (form.id, form.type, form.scope, form.event_id, form.changed_at) == (None,) * 5
