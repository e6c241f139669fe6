"""`forewarn emulate` and `forewarn clock`, before anything is served: what is refused, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.cli.announce import Announced
from forewarn.cli.main import main
from forewarn.cli.transport import Credentials, Service, Transport
from forewarn.core.events import ANNOUNCED_TYPES
from forewarn.errors import Malformed, Unavailable


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--clock", "manual", "--speed", "2"], "--clock manual has no --speed"),
        (["--speed", "0"], "--speed 0: give more than 0"),
        (["--speed", "3601"], "at most 3600"),
        (["--speed", "nan"], "--speed nan: give more than 0"),
        (["--fleet", "fleet.toml", "--vm", "web-0"], "--fleet says which VMs there are"),
        (["--availability-set", "web"], "say NAME:COUNT"),
        (["--vm", "web 0"], "is not a name"),
        (["--vm", "web-0", "--port", "65535"], "a port that has 1 more after it"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emulate", *options]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["emulate", "--data", ""],
        ["emulate", "--data="],
        ["--data", "", "events"],
        ["demo", "--data="],
    ],
)
def test_an_empty_directory_is_not_the_one_that_you_are_in(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "--data is empty, is a variable not set?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["5m", "--next"], ["5m", "--to", "2030-01-01T00:00:00Z"]])
def test_an_advance_says_how_far_in_one_way(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clock", "advance", *words, "--data", str(tmp_path)]) == 2
    assert "say how far" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://10.0.0.5:80", "http://localhost:80", "http://:80"])
def test_plain_http_leads_to_loopback_addresses_only(url: str) -> None:
    service = Service(url=url, credentials=Credentials("", ""), remedy="", token="secret")

    with pytest.raises(Malformed, match="is not an address"):
        Transport(service).ask("GET", "/")


def test_an_emulator_that_is_gone_is_said_to_be() -> None:
    nobody = Credentials("", "")
    service = Service(url="http://127.0.0.1:1", credentials=nobody, remedy="start it", token="t")

    with pytest.raises(Unavailable, match="start it"):
        Transport(service).ask("GET", "/")


def test_only_what_can_be_announced_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.value for one in Announced] == [one.value for one in ANNOUNCED_TYPES]

    assert main(["announce", "restart", "web-0"]) == 2

    told = capsys.readouterr().err
    assert '"reboot"' in told
    assert '"start"' not in told
