"""Casebooks: what was written is there, whole, whatever happens while it is written."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agent.cases_at_hand import EVENT, NOW, opened

from forewarn.agent.casebook import Casebook, DirectoryCasebook, MemoryCasebook
from forewarn.errors import Unavailable
from forewarn.testing.disks import Disk

OTHER = opened(replace(EVENT, id="OTHER"))


@pytest.fixture(params=["memory", "directory"])
def casebook(request: pytest.FixtureRequest, tmp_path: Path) -> Casebook:
    return MemoryCasebook() if request.param == "memory" else DirectoryCasebook(tmp_path / "a/b")


def test_what_was_written_last_is_there_until_it_is_closed(casebook: Casebook) -> None:
    later = replace(opened(), approved=NOW)

    casebook.write(opened())
    casebook.write(OTHER)
    casebook.write(later)
    assert list(casebook.cases()) == [later, OTHER]

    casebook.close("E")
    casebook.close("E")
    assert list(casebook.cases()) == [OTHER]


def test_cases_outlive_the_process(tmp_path: Path) -> None:
    DirectoryCasebook(tmp_path).write(opened())

    assert list(DirectoryCasebook(tmp_path).cases()) == [opened()]


def test_a_casebook_is_the_agents_alone(tmp_path: Path) -> None:
    DirectoryCasebook(tmp_path / "cases")

    assert (tmp_path / "cases").stat().st_mode & 0o777 == 0o700


def test_what_was_cut_off_while_it_was_written_leaves_what_was_before(tmp_path: Path) -> None:
    casebook = DirectoryCasebook(tmp_path)
    casebook.write(opened())

    (tmp_path / "E.new").write_bytes(b'{"event": {"Event')

    assert list(casebook.cases()) == [opened()]
    casebook.write(replace(opened(), approved=NOW))
    assert [case.approved for case in casebook.cases()] == [NOW]


def test_what_cannot_be_read_is_put_aside_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    casebook = DirectoryCasebook(tmp_path)
    casebook.write(OTHER)
    (tmp_path / "E.json").write_bytes(b"{}")

    assert list(casebook.cases()) == [OTHER]

    assert sorted(file.name for file in tmp_path.iterdir()) == ["E.unreadable", "OTHER.json"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "E.json cannot be read" in caplog.text


def test_where_no_directory_can_be_made_the_owner_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Unavailable, match="make room, or have `state` name another directory"):
        DirectoryCasebook(tmp_path / "file" / "cases")


def test_a_casebook_that_is_gone_is_away(tmp_path: Path) -> None:
    casebook = DirectoryCasebook(tmp_path / "cases")
    (tmp_path / "cases").rmdir()

    with pytest.raises(Unavailable, match="cannot keep cases"):
        casebook.write(opened())
    with pytest.raises(Unavailable, match="cannot keep cases"):
        casebook.close("E")
    with pytest.raises(Unavailable):
        list(casebook.cases())


def test_on_a_full_disk_nothing_is_lost_and_nothing_is_believed_written(tmp_path: Path) -> None:
    """Keeps N7: whoever cannot write down what it will do does not do it."""
    with Disk(tmp_path / "disk", 256) as disk:
        casebook = DirectoryCasebook(disk.seen / "cases")
        casebook.write(opened())
        disk.fill()

        with pytest.raises(Unavailable, match="No space left"):
            casebook.write(replace(opened(), approved=NOW))
        assert list(casebook.cases()) == [opened()]

        disk.free()
        casebook.write(replace(opened(), approved=NOW))
        assert [case.approved for case in casebook.cases()] == [NOW]


def test_on_a_disk_that_is_read_only_what_is_damaged_is_told_of(tmp_path: Path) -> None:
    with Disk(tmp_path / "disk", 256) as disk:
        (disk.seen / "cases").mkdir()
        (disk.seen / "cases" / "E.json").write_bytes(b"{}")
        casebook = DirectoryCasebook(disk.seen / "cases")
        disk.set_read_only()

        with pytest.raises(Unavailable, match="Read-only"):
            list(casebook.cases())
