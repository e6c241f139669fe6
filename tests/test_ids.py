"""Names from a seed."""

from __future__ import annotations

from forewarn.ids import SeededEventIds


def test_ids_of_events_follow_from_the_seed_however_many_commits_there_are() -> None:
    one, other = SeededEventIds(7), SeededEventIds(7)
    one.commit_id()

    assert [one.event_id() for _ in range(3)] == [other.event_id() for _ in range(3)]
    assert one.commit_id() != other.commit_id()


def test_another_seed_names_events_otherwise() -> None:
    assert SeededEventIds(7).event_id() != SeededEventIds(8).event_id()
