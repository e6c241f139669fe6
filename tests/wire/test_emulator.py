"""How far an emulator is to advance, and what shall go wrong there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from forewarn.errors import Malformed
from forewarn.web.faults import FaultKind
from forewarn.wire import control, emulator

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "until"),
    [
        (b'{"seconds": 0}', NOON),
        (b'{"seconds": 1.5}', NOON + timedelta(seconds=1.5)),
        (b'{"to": "2030-01-01T13:15:00+01:00"}', NOON + timedelta(minutes=15)),
        (b'{"next": true}', None),
    ],
)
def test_an_advance_is_by_a_while_to_an_instant_or_to_the_next_thing(
    body: bytes, until: datetime | None
) -> None:
    assert control.load(emulator.Advance, body).until(NOON) == until


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"next": false}', b'{"seconds": 1, "next": true}', b'{"seconds": 1, "to": "2030-01-01T12:15:00Z"}'],
)  # fmt: skip
def test_an_advance_is_one_of_the_three(body: bytes) -> None:
    with pytest.raises(Malformed, match="give one of seconds, to and next"):
        control.load(emulator.Advance, body).until(NOON)


@pytest.mark.parametrize("to", ["2030-01-01T11:59:59Z", "2032-01-01T12:00:00Z"])
def test_time_goes_neither_back_nor_out_of_reach(to: str) -> None:
    asked = control.load(emulator.Advance, f'{{"to": "{to}"}}'.encode())

    with pytest.raises(Malformed, match="time does not go back"):
        asked.until(NOON)


@pytest.mark.parametrize("seconds", ["-1", "1e12", '"9"'])
def test_a_while_is_a_number_within_a_year(seconds: str) -> None:
    with pytest.raises(Malformed):
        control.load(emulator.Advance, f'{{"seconds": {seconds}}}'.encode())


@pytest.mark.parametrize(
    ("body", "lasts", "delay"),
    [
        (b'{"kind": "slow"}', None, None),
        (b'{"kind": "slow", "seconds": 60}', timedelta(minutes=1), None),
        (b'{"kind": "slow", "delay_seconds": 0.5}', None, timedelta(seconds=0.5)),
    ],
)
def test_a_fault_lasts_and_delays_as_long_as_is_said(
    body: bytes, lasts: timedelta | None, delay: timedelta | None
) -> None:
    asked = control.load(emulator.Wrong, body)

    assert (asked.lasts, asked.delay) == (lasts, delay)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ('"kind": "418"', "kind"),
        ('"kind": "429", "times": 0', "--times is a whole number from 1"),
        ('"kind": "429", "times": 1.5', "--times is a whole number from 1"),
        ('"kind": "slow", "delay_seconds": -1', "--delay is 0s to"),
        ('"kind": "slow", "seconds": 0', "seconds"),
        ('"kind": "slow", "machine": ""', "machine"),
        ('"times": 3', "kind"),
    ],
)
def test_what_shall_go_wrong_is_said_within_limits(members: str, complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        control.load(emulator.Wrong, f"{{{members}}}".encode())


def test_whoever_says_something_else_is_told_what_can_be_said() -> None:
    with pytest.raises(Malformed, match=r"kind: .*'418': give one of 429, 410, .*, webhook-reord"):
        control.load(emulator.Wrong, b'{"kind": "418"}')


def test_every_fault_can_be_said() -> None:
    assert set(get_args(emulator.FaultWord)) == {kind.value for kind in FaultKind}
