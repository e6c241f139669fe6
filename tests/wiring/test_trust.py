"""The first operator, the certificate's names, and own certificates."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from forewarn.clocks import SystemClock
from forewarn.errors import Malformed, Refused
from forewarn.service.logins import Denied, Granted
from forewarn.testing.worlds import OPERATOR, World
from forewarn.trust.vault import Vault
from forewarn.wire.principals import NewPrincipal
from forewarn.wiring.directories import Credentials, DataDirectory
from forewarn.wiring.trust import Doorkeeper, Tls, TrustSettings, keep_door

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"


def opened(world: World, data: DataDirectory, *, new_operator: bool = False) -> Doorkeeper:
    settings = TrustSettings(new_operator=new_operator)
    return keep_door(world.parts, data, settings, SUBSCRIPTION)


def kept(data: DataDirectory) -> Credentials:
    credentials = data.credentials()
    assert credentials is not None
    return credentials


def is_let_in(door: Doorkeeper, credentials: Credentials) -> bool:
    found = door.logins.login(credentials.client_id, credentials.client_secret, "127.0.0.1")
    return isinstance(found, Granted)


def test_a_first_operator_is_made_once(tmp_path: Path) -> None:
    world, data = World(), DataDirectory(tmp_path)

    door = opened(world, data)
    first = kept(data)
    again = opened(world, data)

    assert kept(data) == first
    assert is_let_in(door, first)
    assert is_let_in(again, first)
    assert (first.subscription_id, first.tenant_id) == (SUBSCRIPTION, door.accounts.tenant())
    assert len(door.accounts.all()) == 1


def test_a_first_start_that_died_before_it_was_durable_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    data = DataDirectory(tmp_path)
    opened(World(), data)
    first = kept(data)

    # The database was lost, the file was not.
    door = opened(World(), data)

    assert kept(data) == first
    assert is_let_in(door, first)


def test_whoever_takes_the_file_away_is_not_given_another(tmp_path: Path) -> None:
    world, data = World(), DataDirectory(tmp_path)
    opened(world, data)
    first = kept(data)
    data.operator.unlink()

    door = opened(world, data)

    assert data.credentials() is None
    assert is_let_in(door, first)


def test_a_lost_secret_can_be_had_anew(tmp_path: Path) -> None:
    world, data = World(), DataDirectory(tmp_path)
    opened(world, data)
    lost = kept(data)
    data.operator.unlink()

    door = opened(world, data, new_operator=True)

    assert kept(data).client_id != lost.client_id
    assert is_let_in(door, kept(data))
    assert len(door.accounts.all()) == 2


def test_a_first_operator_that_was_revoked_stays_so(tmp_path: Path) -> None:
    world, data = World(), DataDirectory(tmp_path)
    door = opened(world, data)
    door.accounts.add(NewPrincipal(name="ann", role="operator"), OPERATOR)
    door.accounts.revoke("operator", OPERATOR)

    again = opened(world, data)

    first = kept(data)
    assert again.logins.login(first.client_id, first.client_secret, "127.0.0.1") == Denied()


def test_a_certificate_has_the_names_of_the_machine_and_those_given(tmp_path: Path) -> None:
    settings = TrustSettings(names=("forewarn.example", "10.1.2.3"))
    tls = Tls(settings, DataDirectory(tmp_path), "127.0.0.7", SystemClock())

    said = Vault(tmp_path).server.read_text().partition("\n")[0]

    for name in ("localhost", "127.0.0.1", "::1", "127.0.0.7", "forewarn.example", "10.1.2.3"):
        assert f'"{name}"' in said
    assert f'"{socket.gethostname()}"' in said
    assert tls.is_new
    assert not tls.renew()
    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:5"),
        ("0.0.0.0", "https://127.0.0.1:5"),
        ("::", "https://[::1]:5"),
        ("10.0.0.7", "https://10.0.0.7:5"),
    ],
)
def test_callers_are_told_an_address_that_they_can_call(
    host: str, url: str, tmp_path: Path
) -> None:
    tls = Tls(TrustSettings(), DataDirectory(tmp_path), host, SystemClock())

    assert tls.url(5) == url
    assert tls.trusted == {"ca": "ca.pem"}


def test_somebodys_own_certificate_is_shown_as_it_is(tmp_path: Path) -> None:
    own = Vault(tmp_path)
    own.keep_server(("forewarn.example",), SystemClock().now())
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    plain = TrustSettings(certificate=own.server, names=("forewarn.example",))
    known = TrustSettings(certificate=own.server, authority=own.authority)

    tls = Tls(plain, data, "127.0.0.1", SystemClock())

    assert tls.url(5) == "https://forewarn.example:5"
    assert tls.trusted == {}
    assert Tls(known, data, "127.0.0.1", SystemClock()).trusted == {"ca": str(own.authority)}
    assert list(data.path.iterdir()) == []


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "junk.pem").write_text("junk")
    for file in ("junk.pem", "missing.pem"):
        with pytest.raises(Refused, match="give --tls-cert and --tls-key"):
            Tls(
                TrustSettings(certificate=tmp_path / file),
                DataDirectory(tmp_path),
                "127.0.0.1",
                SystemClock(),
            )


def test_options_that_make_no_sense_are_malformed() -> None:
    with pytest.raises(Malformed, match="go with --tls-cert"):
        TrustSettings(key=Path("x"))
    for name in ("", "a b", "-x", "é"):
        with pytest.raises(Malformed, match="--tls-name"):
            TrustSettings(names=(name,))
