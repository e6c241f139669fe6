"""Which service is meant: words win over the environment, an address over a data directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forewarn.cli.client import Client, Service
from forewarn.cli.connection import Connection
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Unavailable

HERE = "http://127.0.0.1:1001"
THERE = "http://10.0.0.5:8170"
NOWHERE = Surroundings()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "endpoint.json").write_text(json.dumps({"control": HERE}))
    (tmp_path / "token").write_text("from-data\n")
    return tmp_path


def test_a_data_directory_has_address_and_token(data: Path) -> None:
    service = Connection(data=data).service(NOWHERE)

    assert (service.url, service.token) == (HERE, "from-data")
    assert "from-data" not in repr(service)


def test_words_win_over_the_environment(data: Path) -> None:
    surroundings = Surroundings(endpoint=THERE, token="from-environment")

    assert Connection(data=data).service(surroundings).url == HERE
    assert Connection(data=data).service(surroundings).token == "from-data"


def test_in_the_environment_an_address_wins_over_a_data_directory(data: Path) -> None:
    surroundings = Surroundings(data_directory=data, endpoint=THERE, token="from-environment")

    service = Connection().service(surroundings)

    assert (service.url, service.token) == (THERE, "from-environment")


def test_an_address_may_go_with_the_token_of_a_data_directory(data: Path) -> None:
    service = Connection(data=data, endpoint=THERE).service(NOWHERE)

    assert (service.url, service.token) == (THERE, "from-data")


def test_a_token_file_wins_over_every_other_token(data: Path) -> None:
    (data / "other").write_text("from-file")
    surroundings = Surroundings(token="from-environment")
    connection = Connection(data=data, token_file=data / "other")

    assert connection.service(surroundings).token == "from-file"
    elsewhere = Connection(endpoint=THERE, token_file=data / "other")
    assert elsewhere.service(surroundings).token == "from-file"


def test_the_token_of_the_environments_data_directory_goes_to_no_address(data: Path) -> None:
    with pytest.raises(Malformed, match="an address needs a token"):
        Connection(endpoint=THERE).service(Surroundings(data_directory=data))

    own = Connection().service(Surroundings(data_directory=data, token="from-environment"))
    assert own.token == "from-data"


def test_an_address_needs_a_token(data: Path) -> None:
    with pytest.raises(Malformed, match="FOREWARN_TOKEN"):
        Connection(endpoint=THERE).service(NOWHERE)
    with pytest.raises(Malformed, match="--token-file"):
        Connection(endpoint=THERE, token_file=data / "missing").service(NOWHERE)
    with pytest.raises(Malformed, match="holds no token"):
        Connection(endpoint=THERE, token_file=data).service(NOWHERE)


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "{"])
def test_a_broken_endpoint_file_is_no_service(content: str, data: Path) -> None:
    (data / "endpoint.json").write_text(content)

    with pytest.raises(Unavailable, match="forewarn serve"):
        Connection(data=data).service(NOWHERE)


def test_the_token_is_not_shown_to_whoever_has_a_dead_service_s_port(data: Path) -> None:
    """A service that was killed leaves its address behind."""
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    (data / "endpoint.json").write_text(json.dumps({"control": HERE, "pid": dead.pid}))

    with pytest.raises(Unavailable, match="has died"):
        Connection(data=data).service(NOWHERE)

    for pid in (os.getpid(), 1):
        (data / "endpoint.json").write_text(json.dumps({"control": HERE, "pid": pid}))
        assert Connection(data=data).service(NOWHERE).url == HERE


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "localhost:80", "ftp://x", "http://", "http://x:y", "http://[", "http://x:0"],
)
def test_what_is_no_address_is_malformed(url: str) -> None:
    client = Client(Service(url=url, token="t", remedy="go there"))

    with pytest.raises(Malformed, match="is not an address"):
        client.fleet()
