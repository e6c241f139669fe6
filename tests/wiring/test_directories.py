"""The data directory's small files: whole or not there, and private."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.errors import Refused, Unavailable
from forewarn.testing.disks import Disk
from forewarn.wiring.directories import Credentials, DataDirectory


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


FIRST = Credentials(client_id="me", client_secret="s3cret", tenant_id="here", subscription_id="all")


def test_credentials_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.credentials() is None

    data.keep_credentials(FIRST)
    data.operator.chmod(0o644)

    assert data.credentials() == FIRST
    assert mode(data.operator) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["operator.json"]
    assert "s3cret" not in repr(FIRST)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_credentials_that_cannot_be_read_are_refused(content: str, tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.operator.write_text(content)

    with pytest.raises(Refused, match=r"operator.json cannot be used .*: run this as its owner"):
        data.credentials()


def test_credentials_say_where_the_service_is_now(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.keep_credentials(FIRST)

    data.publish("https://127.0.0.1:1", [], {})

    assert data.credentials() == replace(FIRST, endpoint="https://127.0.0.1:1")
    assert mode(data.operator) == 0o600


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Refused, match="give --data a directory"):
        DataDirectory(tmp_path / "file" / "data").prepare()


def test_where_a_service_listened_that_died_is_forgotten_first(tmp_path: Path) -> None:
    """A stale address is worse than none."""
    with Disk(tmp_path / "disk", kilobytes=64) as disk:
        data = DataDirectory(disk.seen)
        data.publish("https://127.0.0.1:1", [], {"ca": "ca.pem"})
        disk.fill()
        # What the old one leaves free is taken at once.
        long = ["http://127.0.0.1:1"] * 1000

        with pytest.raises(Unavailable, match="free some space on its disk"):
            data.publish("https://127.0.0.1:2", long, {"ca": "ca.pem"})
        assert [path.name for path in disk.seen.iterdir()] == ["ballast"]

        disk.free()
        data.publish("https://127.0.0.1:2", long, {"ca": "ca.pem"})
        published = json.loads((disk.seen / "endpoint.json").read_text())
        assert (published["control"], published["ca"]) == ("https://127.0.0.1:2", "ca.pem")
        data.unpublish()
        data.unpublish()
        assert list(disk.seen.iterdir()) == []
