"""Certificates that strict clients accept, in files that are private, renewed in time."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn.errors import Refused
from forewarn.trust import certificates
from forewarn.trust.vault import RENEWED_BEFORE, Vault

NAMES = ("localhost", "127.0.0.1", "::1", "myhost")
NOW = datetime.now(UTC)  # noqa: TID251 - TLS looks at the real clock


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str | None:
    """The version of TLS that both agree on, over a real socket."""
    ours, theirs = socket.socketpair()
    failures: list[Exception] = []

    def serve() -> None:
        try:
            with server.wrap_socket(ours, server_side=True) as answered:
                answered.recv(1)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(theirs, server_hostname=name) as called:
            return called.version()
    finally:
        theirs.close()
        thread.join(10)
        ours.close()


def server_of(vault: Vault) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(vault.server)
    return context


def strict_client(authority: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    # What Python 3.13 and others do by themselves.
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def test_a_strict_client_accepts_it_under_every_name(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    assert vault.keep_server(NAMES, NOW)

    for name in NAMES:
        assert shake_hands(server_of(vault), strict_client(vault.authority), name) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(server_of(vault), strict_client(vault.authority), "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server_of(vault), ssl.create_default_context(), "localhost")


def test_the_bundle_holds_ours_and_those_of_the_system(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)

    assert vault.bundle.read_bytes().endswith(vault.authority.read_bytes())
    assert shake_hands(server_of(vault), ssl.create_default_context(cafile=vault.bundle), "::1")


def test_openssl_verifies_it_strictly(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)

    verified = subprocess.run(
        [openssl, "verify", "-x509_strict", "-CAfile", str(vault.authority), str(vault.server)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert verified.returncode == 0, verified.stderr + verified.stdout


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)
    vault.token_key()

    modes = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert modes == {
        "ca.key": 0o600,
        "ca.pem": 0o644,
        "ca-bundle.pem": 0o644,
        "server.pem": 0o600,
        "token.key": 0o600,
    }
    vault.server.chmod(0o644)
    assert not vault.keep_server(NAMES, NOW)
    assert mode(vault.server) == 0o600


def test_it_stays_until_it_must_be_renewed_and_the_authority_stays_even_then(
    tmp_path: Path,
) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)
    first, authority = vault.server.read_bytes(), vault.authority.read_bytes()

    last = NOW + certificates.SERVER_LASTS - RENEWED_BEFORE
    assert not vault.keep_server(NAMES[:2], last - timedelta(minutes=1))
    assert vault.server.read_bytes() == first
    assert vault.keep_server(NAMES, last)
    assert vault.server.read_bytes() != first
    assert vault.keep_server((*NAMES, "new.example"), last)
    assert vault.authority.read_bytes() == authority


def test_an_authority_that_ends_is_replaced(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)
    authority = vault.authority.read_bytes()
    end = NOW + certificates.AUTHORITY_LASTS

    vault.keep_server(NAMES, end - timedelta(days=100))
    assert vault.authority.read_bytes() == authority
    vault.keep_server(NAMES, end - timedelta(days=20))
    assert vault.authority.read_bytes() != authority


@pytest.mark.parametrize("content", [b"x", b"forewarn {}\n", b"forewarn []\n", b"\xff\n"])
def test_a_file_that_says_nothing_is_written_anew(content: bytes, tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)

    vault.server.write_bytes(content)

    assert vault.keep_server(NAMES, NOW)
    assert shake_hands(server_of(vault), strict_client(vault.authority), "localhost")


def test_what_is_left_of_a_start_that_died_is_made_good(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)

    vault.authority.unlink()
    (tmp_path / "server.pem.new").write_bytes(b"half")

    assert vault.keep_server(NAMES, NOW)
    assert shake_hands(server_of(vault), strict_client(vault.authority), "localhost")
    assert not (tmp_path / "server.pem.new").exists()


def test_a_damaged_authority_is_for_somebody_to_look_at(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep_server(NAMES, NOW)
    other = Vault(tmp_path / "other")
    other.path.mkdir()
    other.keep_server(NAMES, NOW)
    key, _, _ = (tmp_path / "ca.key").read_bytes().partition(b"-----BEGIN CERT")
    for content in (b"junk", key + other.authority.read_bytes()):
        (tmp_path / "ca.key").write_bytes(content)
        vault.server.unlink(missing_ok=True)
        with pytest.raises(Refused, match=r"ca\.key cannot be used .*delete it"):
            vault.keep_server(NAMES, NOW)

    (tmp_path / "ca.key").unlink()
    assert vault.keep_server(NAMES, NOW)


def test_the_token_key_is_made_once(tmp_path: Path) -> None:
    vault = Vault(tmp_path)

    assert vault.token_key() == vault.token_key()
    (tmp_path / "token.key").write_bytes(b"")
    with pytest.raises(Refused, match="is empty: delete it"):
        vault.token_key()
    (tmp_path / "token.key").write_bytes(b"junk")
    with pytest.raises(Refused, match="is no key: delete it"):
        vault.token_key()
    (tmp_path / "token.key").unlink()
    (tmp_path / "token.key").mkdir()
    with pytest.raises(Refused, match="run this as its owner, or delete it"):
        vault.token_key()


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    (tmp_path / "server.pem").mkdir()

    with pytest.raises((OSError, Refused)):
        vault.keep_server(NAMES, NOW)

    assert not list(tmp_path.glob("*.new"))
