"""The measurements run, at sizes that measure nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from bench import approving, callers, emulating, loading, measuring, noticing, pages, waiting
from bench.__main__ import MEANINGS, table
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


def test_emulating_is_measured() -> None:
    figures = emulating.measure(starts=1, stories=1)

    assert all(value > 0 for value in figures.values())
    assert figures.keys() <= MEANINGS.keys()


def test_noticing_is_measured() -> None:
    figures = noticing.measure(rounds=1)

    assert all(value > 0 for value in figures.values())
    assert figures.keys() <= MEANINGS.keys()


def test_the_table_says_where_it_was_measured() -> None:
    found = {**measuring.machine(), "load_average_1m_after": 0.5, "approvals_per_s": 1234.5}

    assert "1234.5" in table(found)
    assert str(found["python"]) in table(found)


FOUND = {
    **measuring.machine(),
    "command": "make bench",
    "load_average_1m_after": 0.5,
    "poll_keepalive_vs_nginx": 0.7234,
    "poll_keepalive_us_forewarn": 12.345,
    "poll_keepalive_us_nginx": 15.0,
    "approvals_per_s": 12345.6,
}


def test_readme_has_the_figures_with_the_machine_and_the_command() -> None:
    page = pages.placed(pages.README.read_text(encoding="utf-8"), pages.markdown(FOUND, MEANINGS))

    assert "| poll, kept connection: processor time, nginx = 1 | 0.72 | at most 1.0 |\n" in page
    assert "| poll, kept connection: microseconds | 12.3 |  |\n" in page
    assert "| poll, kept connection: microseconds, nginx | 15.0 |  |\n" in page
    assert "| durable approvals a second | 12,346 |  |\n" in page
    assert "idling" not in page.partition(pages.BEGIN)[2].partition(pages.END)[0]
    assert f"by `make bench` on {FOUND['cpu_model']}, {FOUND['cpu_count']} cores" in page


def test_figures_take_the_place_of_those_before() -> None:
    page = f"a\n{pages.BEGIN}old\n{pages.END}b\n"

    assert pages.placed(page, "new\n") == f"a\n{pages.BEGIN}new\n{pages.END}b\n"


@pytest.mark.parametrize("command", ['make bench BENCH="--quick"', None])
def test_figures_of_a_part_and_rough_ones_do_not_get_into_readme(command: str | None) -> None:
    with pytest.raises(pages.NotWhole, match="run `make bench` first"):
        pages.markdown({**FOUND, "command": command}, MEANINGS)
