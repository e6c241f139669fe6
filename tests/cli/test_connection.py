"""Which service is meant: words win over the environment, an address over a data directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forewarn.cli import logins
from forewarn.cli.client import Client
from forewarn.cli.connection import Connection
from forewarn.cli.transport import NOBODY, Credentials, Service, Transport
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Unavailable

HERE = "https://127.0.0.1:1001"
THERE = "https://10.0.0.5:8443"
NOWHERE = Surroundings()
OWN = Credentials("from-data", "s3cret")
ENVIRONMENT = Credentials("from-environment", "t0ken")


def written(file: Path, client_id: str, secret: str = "s3cret", **members: str) -> Path:
    file.write_text(json.dumps({"client_id": client_id, "client_secret": secret, **members}))
    return file


def surrounded(endpoint: str | None = THERE, data: Path | None = None) -> Surroundings:
    return Surroundings(
        data_directory=data,
        endpoint=endpoint,
        client_id=ENVIRONMENT.client_id,
        client_secret=ENVIRONMENT.client_secret,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "endpoint.json").write_text(json.dumps({"control": HERE, "ca": "ca.pem"}))
    (tmp_path / "ca.pem").touch()
    written(tmp_path / "operator.json", "from-data")
    return tmp_path


def test_a_data_directory_has_address_certificate_and_operator(data: Path) -> None:
    service = Connection(data=data).service(NOWHERE)

    assert (service.url, service.ca, service.credentials) == (HERE, data / "ca.pem", OWN)
    assert "s3cret" not in repr(service)


def test_an_emulator_s_directory_has_its_token_and_nobody_logs_in(tmp_path: Path) -> None:
    told = {"control": "http://127.0.0.1:1001", "token": "p4ss"}
    (tmp_path / "endpoint.json").write_text(json.dumps(told))

    service = Connection(data=tmp_path).service(surrounded())

    assert (service.url, service.credentials) == (told["control"], NOBODY)
    assert logins.session(None, service).token == "p4ss"
    assert "p4ss" not in repr(service)


def test_whoever_says_who_he_is_logs_in_to_an_emulator_too(tmp_path: Path) -> None:
    told = {"control": "http://127.0.0.1:1001", "token": "p4ss"}
    (tmp_path / "endpoint.json").write_text(json.dumps(told))
    file = written(tmp_path / "ann.json", "ann")

    service = Connection(data=tmp_path, credentials=file).service(NOWHERE)

    assert service.credentials.client_id == "ann"
    assert logins.session(None, service).token == ""


def test_words_win_over_the_environment(data: Path) -> None:
    service = Connection(data=data).service(surrounded())

    assert (service.url, service.credentials) == (HERE, OWN)


def test_in_the_environment_an_address_wins_over_a_data_directory(data: Path) -> None:
    service = Connection().service(surrounded(data=data))

    assert (service.url, service.ca, service.credentials) == (THERE, None, ENVIRONMENT)


def test_an_address_may_go_with_the_operator_of_a_data_directory(data: Path) -> None:
    service = Connection(data=data, endpoint=THERE).service(NOWHERE)

    assert (service.url, service.ca, service.credentials) == (THERE, data / "ca.pem", OWN)


def test_a_certificate_may_be_named_or_be_in_the_environment(data: Path) -> None:
    (data / "ca.pem").unlink()
    named = Connection(endpoint=THERE, data=data, ca=data / "other.pem")
    told = Surroundings(endpoint=THERE, ca=data / "env.pem", client_id="x", client_secret="y")

    assert named.service(told).ca == data / "other.pem"
    assert Connection(data=data, ca=data / "other.pem").service(told).ca == data / "other.pem"
    assert Connection(endpoint=THERE, data=data).service(told).ca == data / "env.pem"
    assert Connection().service(told).ca == data / "env.pem"


def test_a_credentials_file_wins_over_all_others(data: Path) -> None:
    file = written(data / "other", "from-file")
    connection = Connection(data=data, credentials=file)

    assert connection.service(surrounded()).credentials.client_id == "from-file"
    elsewhere = Connection(endpoint=THERE, credentials=file)
    assert elsewhere.service(surrounded()).credentials.client_id == "from-file"


def test_a_credentials_file_may_say_where(data: Path) -> None:
    file = written(data / "other", "from-file", endpoint=THERE)

    assert Connection(credentials=file).service(NOWHERE).url == THERE
    assert Connection(credentials=file, data=data).service(NOWHERE).url == HERE


def test_the_secret_of_the_environments_data_directory_goes_to_no_address(data: Path) -> None:
    with pytest.raises(Malformed, match="needs to know who you are"):
        Connection(endpoint=THERE).service(Surroundings(data_directory=data))

    own = Connection().service(surrounded(endpoint=None, data=data))
    assert own.credentials == OWN


def test_an_address_needs_to_know_who_you_are(data: Path) -> None:
    with pytest.raises(Malformed, match="FOREWARN_CLIENT_ID"):
        Connection(endpoint=THERE).service(NOWHERE)
    with pytest.raises(Malformed, match="--credentials"):
        Connection(endpoint=THERE, credentials=data / "missing").service(NOWHERE)
    for content in ("", "[]", "{}", '{"client_id": "x"}'):
        (data / "broken").write_text(content)
        with pytest.raises(Malformed, match="says nobody's client_id"):
            Connection(endpoint=THERE, credentials=data / "broken").service(NOWHERE)


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "{"])
def test_a_broken_endpoint_file_is_no_service(content: str, data: Path) -> None:
    (data / "endpoint.json").write_text(content)

    with pytest.raises(Unavailable, match="forewarn serve"):
        Connection(data=data).service(NOWHERE)


def test_an_emulator_that_has_ended_is_not_to_be_started_as_a_service(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="start another with `forewarn emulate`"):
        Connection(data=tmp_path / "forewarn-gone").service(NOWHERE)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    left = {"control": "http://127.0.0.1:1", "pid": dead.pid, "token": "t"}
    (tmp_path / "endpoint.json").write_text(json.dumps(left))

    with pytest.raises(Unavailable, match="has died: start another with `forewarn emulate`"):
        Connection(data=tmp_path).service(NOWHERE)


def test_the_secret_is_not_shown_to_whoever_has_a_dead_service_s_port(data: Path) -> None:
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
    [
        "",
        "localhost",
        "localhost:80",
        "http://x",
        "https://",
        "https://x:y",
        "https://[",
        "https://x:0",
    ],
)
def test_what_is_no_address_is_malformed(url: str) -> None:
    client = Client(Transport(Service(url=url, credentials=OWN, remedy="go there")))

    with pytest.raises(Malformed, match="is not an address"):
        client.fleet()


def test_a_file_that_is_no_certificate_is_malformed(data: Path) -> None:
    for ca in (data / "ca.pem", data / "missing.pem"):
        client = Client(Transport(Service(url=HERE, credentials=OWN, ca=ca, remedy="go there")))
        with pytest.raises(Malformed, match="give --ca a file of certificates"):
            client.fleet()
