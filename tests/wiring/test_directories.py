"""The data directory's small files: whole or not there, and private."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forewarn.errors import Refused, Unavailable
from forewarn.testing.disks import Disk
from forewarn.wiring.directories import DataDirectory


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    token = data.token()

    (tmp_path / "token").chmod(0o644)

    assert data.token() == token
    assert mode(tmp_path / "token") == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["token"]


def test_an_empty_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").touch()

    with pytest.raises(Refused, match="token is empty: delete it"):
        DataDirectory(tmp_path).token()


def test_a_token_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir(mode=0o600)

    with pytest.raises(
        Refused, match=r"token cannot be used .*: run this as its owner, or delete it"
    ):
        DataDirectory(tmp_path).token()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Refused, match="give --data a directory"):
        DataDirectory(tmp_path / "file" / "data").prepare()


def test_where_a_service_listened_that_died_is_forgotten_first(tmp_path: Path) -> None:
    """A stale address is worse than none."""
    with Disk(tmp_path / "disk", kilobytes=64) as disk:
        data = DataDirectory(disk.seen)
        data.publish("http://127.0.0.1:1", [])
        disk.fill()
        # What the old one leaves free is taken at once.
        long = ["http://127.0.0.1:1"] * 1000

        with pytest.raises(Unavailable, match="free some space on its disk"):
            data.publish("http://127.0.0.1:2", long)
        assert [path.name for path in disk.seen.iterdir()] == ["ballast"]

        disk.free()
        data.publish("http://127.0.0.1:2", long)
        published = json.loads((disk.seen / "endpoint.json").read_text())
        assert published["control"] == "http://127.0.0.1:2"
        data.unpublish()
        data.unpublish()
        assert list(disk.seen.iterdir()) == []
