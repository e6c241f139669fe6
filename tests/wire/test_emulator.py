"""How far an emulator is to advance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.errors import Malformed
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
