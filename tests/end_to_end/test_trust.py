"""Who may call a real service, over real TLS; and what is left of it on the disk."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.end_to_end.test_stories import FLEET

from forewarn.testing.processes import HttpReply, ServiceProcess, log_in

pytestmark = pytest.mark.end_to_end

EVENTS = "/fabric/v1/events"
PRINCIPALS = "/fabric/v1/principals"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path / "data", FLEET) as running:
        yield running


def add(service: ServiceProcess, name: str, *options: str) -> Any:  # noqa: ANN401 - JSON
    return service.json("principal", "add", name, *options)


def token_of(service: ServiceProcess, principal: Any) -> str:  # noqa: ANN401 - JSON
    reply = log_in(service.control, service.ca, principal["client_id"], principal["client_secret"])
    assert reply.status == 200, reply
    token: str = reply.json["access_token"]
    return token


def asked_with(service: ServiceProcess, token: str, target: str = EVENTS) -> HttpReply:
    return service.ask("GET", target, headers={"Authorization": f"Bearer {token}"})


def kept(service: ServiceProcess) -> bytes:
    """All that the service wrote, but for the files that are there to keep secrets."""
    secret = {"operator.json", "ca.key", "server.pem", "token.key"}
    files = [path for path in service.data.iterdir() if path.name not in secret]
    return b"".join(path.read_bytes() for path in files)


def test_the_control_plane_speaks_tls_and_nothing_else(service: ServiceProcess) -> None:
    place = urlsplit(service.control)
    assert place.scheme == "https"
    context = ssl.create_default_context(cafile=service.ca)
    with (
        socket.create_connection((place.hostname, place.port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        assert secured.version() in {"TLSv1.2", "TLSv1.3"}

    clear = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    clear.request("GET", "/healthz")
    with pytest.raises((OSError, http.client.HTTPException)):
        clear.getresponse()
    clear.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        log_in(service.control, Path(ssl.get_default_verify_paths().cafile or "/dev/null"), "", "")


def test_each_role_may_do_its_own_and_refusals_are_on_record(service: ServiceProcess) -> None:
    reader = token_of(service, add(service, "dashboard", "--role", "reader"))
    owner = token_of(service, add(service, "team", "--role", "owner", "--group", "nowhere"))

    assert asked_with(service, reader).status == 200
    assert asked_with(service, reader, PRINCIPALS).status == 403
    assert asked_with(service, owner, PRINCIPALS).status == 403
    assert asked_with(service, service.token, PRINCIPALS).status == 200
    assert service.ask("GET", EVENTS).status == 401
    entries = service.json("journal")["entries"]
    refused = [entry["by"]["name"] for entry in entries if entry["what"] == "call refused"]
    assert refused == ["dashboard", "team", "stranger"]


def test_whoever_is_revoked_stops_at_once_and_for_good(service: ServiceProcess) -> None:
    """Also after kill -9."""
    made = add(service, "dashboard", "--role", "reader")
    token = token_of(service, made)
    assert asked_with(service, token).status == 200

    assert service.run("principal", "revoke", "dashboard").returncode == 0
    assert asked_with(service, token).status == 401
    service.restart()

    assert asked_with(service, token).status == 401
    reply = log_in(service.control, service.ca, made["client_id"], made["client_secret"])
    assert (reply.status, reply.json["error"]) == (401, "invalid_client")
    names = [one["name"] for one in service.json("principal", "list")["principals"]]
    assert names == ["operator"]


def test_principals_and_tokens_survive_a_death(service: ServiceProcess) -> None:
    """Keeps S9: what was answered is durable."""
    made = add(service, "team", "--role", "owner", "--group", "rg1")
    token = token_of(service, made)
    first = (service.data / "operator.json").read_bytes()

    service.restart()

    assert asked_with(service, token).status == 200
    (team,) = [
        one for one in service.json("principal", "list")["principals"] if one["name"] == "team"
    ]
    assert (team["id"], team["groups"]) == (made["client_id"], ["rg1"])
    now = json.loads((service.data / "operator.json").read_bytes())
    assert {**json.loads(first), "endpoint": service.control} == now


def test_a_secret_can_be_replaced_while_the_old_one_goes_on(service: ServiceProcess) -> None:
    old = add(service, "dashboard", "--role", "reader")

    new = service.json("principal", "rotate", "dashboard", "--keep-old", "1h")
    assert asked_with(service, token_of(service, old)).status == 200
    assert asked_with(service, token_of(service, new)).status == 200
    old_token = token_of(service, old)
    last = service.json("principal", "rotate", "dashboard")

    assert asked_with(service, old_token).status == 401
    assert asked_with(service, token_of(service, last)).status == 200
    reply = log_in(service.control, service.ca, old["client_id"], old["client_secret"])
    assert reply.status == 401


def test_what_principal_add_prints_is_a_file_to_log_in_with(
    service: ServiceProcess, tmp_path: Path
) -> None:
    done = service.run("principal", "add", "dashboard", "--role", "reader", "--json")
    file = tmp_path / "dashboard.json"
    file.write_text(done.stdout)

    listed = service.run("events", "--credentials", str(file))
    refused = service.run("announce", "freeze", "web-0", "--credentials", str(file))

    assert listed.returncode == 0, listed.stderr
    assert refused.returncode == 3
    assert "dashboard has the role reader" in refused.stderr


def test_wrong_secrets_are_slowed_down(service: ServiceProcess) -> None:
    first = json.loads((service.data / "operator.json").read_bytes())
    statuses = [
        log_in(service.control, service.ca, first["client_id"], "wrong").status for _ in range(4)
    ]

    assert statuses == [401, 401, 401, 429]
    reply = log_in(service.control, service.ca, first["client_id"], "wrong")
    assert int(reply.headers["retry-after"]) >= 1
    # Others are let in from there meanwhile.
    assert asked_with(service, service_token(service, first)).status == 200


def service_token(service: ServiceProcess, first: Any) -> str:  # noqa: ANN401 - JSON
    """A token of the first operator, once it need not wait any more."""
    while True:
        reply = log_in(service.control, service.ca, first["client_id"], first["client_secret"])
        if reply.status == 200:
            token: str = reply.json["access_token"]
            return token
        assert reply.status == 429, reply


def test_secrets_and_tokens_are_in_no_log_and_no_journal(service: ServiceProcess) -> None:
    """Neither those that are right nor those that are wrong, wherever they were put."""
    first = json.loads((service.data / "operator.json").read_bytes())
    made = add(service, "dashboard", "--role", "reader")
    rotated = service.json("principal", "rotate", "dashboard", "--keep-old", "1h")
    tokens = [service.token, token_of(service, made), token_of(service, rotated)]
    wrong = "wr0ng-secret-of-somebody"
    log_in(service.control, service.ca, made["client_id"], wrong)
    log_in(service.control, service.ca, wrong, made["client_id"])
    asked_with(service, wrong)
    asked_with(service, tokens[1], PRINCIPALS)
    service.stop()

    everything = kept(service)

    for secret in (first["client_secret"], made["client_secret"], rotated["client_secret"], wrong):
        assert secret.encode() not in everything
    for token in tokens:
        assert token.encode() not in everything
        assert token.rpartition(".")[2].encode() not in everything
    assert b"$argon2id$" in everything


def test_a_certificate_of_ones_own_is_shown(service: ServiceProcess, tmp_path: Path) -> None:
    """The files of another service will do."""
    options = ("--tls-cert", str(service.data / "server.pem"), "--tls-ca", str(service.ca))
    with ServiceProcess(tmp_path / "other", FLEET, *options) as other:
        assert other.run("events").returncode == 0
        assert not (other.data / "server.pem").exists()
