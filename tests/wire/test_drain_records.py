"""Drained hosts as they lie in a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forewarn.core.hosts import Drain
from forewarn.core.names import HostName
from forewarn.errors import Damaged, Refused
from forewarn.wire import drain_records

DRAIN = Drain(HostName("Host-A"), datetime(2026, 11, 16, 9, 0, tzinfo=UTC), "ann")


def test_what_is_written_is_read() -> None:
    assert drain_records.load(drain_records.dump(DRAIN)) == DRAIN
    assert drain_records.host_of(drain_records.key(DRAIN.host)) == "host-a"


@pytest.mark.parametrize("value", [b"", b"{}", b'{"format":1,"drain":{"host":3}}'])
def test_damage_is_told(value: bytes) -> None:
    with pytest.raises(Damaged, match="restore a backup"):
        drain_records.load(value)


def test_what_a_newer_forewarn_wrote_is_left_alone() -> None:
    with pytest.raises(Refused, match="format 2"):
        drain_records.load(b'{"format":2}')
