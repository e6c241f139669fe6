"""The measurements run, at sizes that measure nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from bench import approving, callers, loading, measuring, waiting
from bench.__main__ import table
from bench.contenders import Service
from bench.fleets import fleet_file

pytestmark = pytest.mark.end_to_end


@pytest.fixture(autouse=True)
def anywhere() -> Iterator[None]:
    """Measurements choose their core; other tests want all of them."""
    cores = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, cores)


def test_guests_poll_on_connections_of_both_kinds() -> None:
    with (
        measuring.workplace() as directory,
        Service(directory / "data", fleet_file(machines=4, per_scope=2)) as service,
    ):
        before = measuring.processor_seconds(service.pid)
        callers.poll_keeping(service.contender.server, guests=4, polls=100)
        callers.poll_closing(service.contender.server, guests=4, polls=100)

        assert measuring.processor_seconds(service.pid) > before


def test_there_are_twenty_ways_to_ask() -> None:
    assert len(set(callers.requests(closing=True))) == callers.HEADER_SETS


def test_waiting_guests_are_told() -> None:
    figures = waiting.measure(guests=20, many=0, few=5, rounds=2)

    assert figures["longpoll_last_ms_of_20"] >= figures["longpoll_first_ms_of_20"] > 0
    assert figures["announce_to_5_guests_ms_p99"] > 0


def test_approvals_are_counted() -> None:
    figures = approving.measure(approvals=8, rounds=1)

    assert figures["approvals_per_s"] > 0
    assert figures["approve_vs_sqlite"] > 0


def test_a_fleet_is_loaded_and_idles() -> None:
    figures = loading.measure(scopes=3, idle_seconds=0.1)

    assert figures["load_1m_machines_s"] > 0
    assert figures["machines_loaded"] == 30


def test_the_table_says_where_it_was_measured() -> None:
    found = {**measuring.machine(), "load_average_1m_after": 0.5, "approvals_per_s": 1234.5}

    assert "1234.5" in table(found)
    assert str(found["python"]) in table(found)
