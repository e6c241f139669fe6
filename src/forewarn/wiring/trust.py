"""Trust, put together: the certificate we show, who may call, and the first of them."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from forewarn.core.journal import SERVICE, Actor, Role
from forewarn.core.rights import Principal
from forewarn.errors import Malformed, Refused
from forewarn.ports.clock import Clock
from forewarn.ports.trust import Authority
from forewarn.service.accounts import Accounts
from forewarn.service.logins import TOKEN_LASTS, Logins
from forewarn.service.refusals import Refusals
from forewarn.service.suspicion import Suspicion
from forewarn.trust.secrets import Argon2Secrets
from forewarn.trust.tokens import JwtTokens
from forewarn.trust.vault import Vault
from forewarn.web.principals import PrincipalsParts
from forewarn.wire import principals as wire
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.directories import Credentials, DataDirectory, disk_trouble

FIRST: Final = "operator"
# Whoever answers for names may take his time; we do not.
NAME_SECONDS_MAX: Final = 1.0

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettings:
    """Which certificate to show, and how long tokens last."""

    # Somebody's own certificate with its chain, and its key if that is in a file of its own; else
    # we make one.
    certificate: Path | None = None
    key: Path | None = None
    # The file by which that certificate is known, if the system does not know it.
    authority: Path | None = None
    # What the service is called beside the names that this machine knows of.
    names: tuple[str, ...] = ()
    token_lasts: timedelta = TOKEN_LASTS
    # Whether to make a first operator although there are others: all their secrets were lost.
    new_operator: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if not _is_name(name):
                raise Malformed(f"--tls-name {name[:80]!r}: give a host's name or an IP address")
        if self.certificate is None and (self.key or self.authority):
            raise Malformed("--tls-key and --tls-ca go with --tls-cert: give that too")


class Tls:
    """The certificate of the control plane."""

    def __init__(
        self, settings: TrustSettings, data: DataDirectory, host: str, clock: Clock
    ) -> None:
        """For a service on this address; the certificate is taken, or made. Raises: as `renew`."""
        self._settings = settings
        self._data = data
        self._clock = clock
        self._names = _names(settings.names, host)
        self._host = host
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self.is_new = self.renew()

    def renew(self) -> bool:
        """Take the certificate anew, for connections to come; whether we made another.

        Raises: Refused, Unavailable.
        """
        certificate, made = self._settings.certificate, False
        if certificate is None:
            vault = Vault(self._data.path)
            try:
                made = vault.keep_server(self._names, self._clock.now())
            except OSError as error:
                raise disk_trouble(f"{vault.server} cannot be made", error) from error
            certificate = vault.server
        try:
            self.context.load_cert_chain(certificate, self._settings.key)
        # SSLError is an OSError; a file without any certificate is a ValueError at times.
        except (OSError, ValueError) as error:
            raise Refused(
                f"the certificate {certificate} cannot be used ({error}): give --tls-cert and "
                "--tls-key files in PEM that belong together"
            ) from error
        return made

    def url(self, port: int) -> str:
        """Where callers find us: under our own name, or the address we listen on."""
        address = ip_address(self._host)
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(address), str(address))  # noqa: S104
        if self._settings.certificate is not None and self._settings.names:
            host = self._settings.names[0]
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    @property
    def trusted(self) -> Mapping[str, str]:
        """By which file the command line on this machine knows us."""
        if self._settings.certificate is None:
            # Beside the file that says so, wherever the directory is seen.
            return {"ca": Vault(self._data.path).authority.name}
        if self._settings.authority is not None:
            return {"ca": str(self._settings.authority.absolute())}
        return {}


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Who may call, over an assembled service."""

    accounts: Accounts
    logins: Logins
    tokens: JwtTokens
    clock: Clock
    tenant: str
    authority: Authority

    def principals(self, pause_webhooks_of: Callable[[str, Actor], None]) -> PrincipalsParts:
        """What people can ask about principals stands on this."""
        return PrincipalsParts(
            clock=self.clock,
            accounts=self.accounts,
            tenant=self.tenant,
            pause_webhooks_of=pause_webhooks_of,
        )

    def knowing(self, authority: Authority) -> Doorkeeper:
        """The same door, with somebody else to tell whom a token stands for."""
        return replace(self, authority=authority)


def keep_door(
    assembly: Assembly,
    data: DataDirectory,
    settings: TrustSettings,
    subscription_id: str,
) -> Doorkeeper:
    """Let principals log in; with the first of them, if there is none.

    Raises: Refused, Unavailable.
    """
    with _disk(data):
        key = Vault(data.path).token_key()
    door = open_door(assembly, partial(JwtTokens, key), settings.token_lasts)
    accounts = door.accounts
    credentials = data.credentials()
    if credentials is None and (settings.new_operator or not _has_operator(accounts)):
        credentials = Credentials(
            client_id=assembly.ids.event_id().lower(),
            client_secret=Argon2Secrets().make(),
            tenant_id=door.tenant,
            subscription_id=subscription_id,
        )
        # The file comes first: a secret that was lost on the way would open nothing.
        data.keep_credentials(credentials)
    if credentials is not None and accounts.known(credentials.client_id) is None:
        first = Principal(id=credentials.client_id.lower(), name=FIRST, role=Role.OPERATOR)
        accounts.open(first, credentials.client_secret, SERVICE)
    return door


def open_door(
    assembly: Assembly, tokens_of: Callable[[str], JwtTokens], token_lasts: timedelta
) -> Doorkeeper:
    """Let whoever is known log in, for tokens of their tenant. Raises: Refused, Unavailable."""
    clock, secrets = assembly.clock, Argon2Secrets()
    accounts = Accounts(clock, assembly.ids, assembly.store, secrets, threading.Lock())
    assembly.feed.hear(wire.PREFIX, accounts.hear)
    accounts.read_all()
    tenant = accounts.tenant()
    tokens = tokens_of(tenant)
    logins = Logins(
        clock=clock,
        accounts=accounts,
        secrets=secrets,
        tokens=tokens,
        refusals=Refusals(clock, assembly.books, threading.Lock()),
        suspicion=Suspicion(clock, threading.Lock()),
        token_lasts=token_lasts,
    )
    return Doorkeeper(accounts, logins, tokens, clock, tenant, logins)


def _has_operator(accounts: Accounts) -> bool:
    return any(
        account.principal.role is Role.OPERATOR and account.revoked_at is None
        for account in accounts.all()
    )


def _names(given: tuple[str, ...], host: str) -> tuple[str, ...]:
    """What a certificate of ours is for: each once, in a stable order."""
    own = (host,) if not ip_address(host).is_unspecified else ()
    machine = socket.gethostname()
    found = ("localhost", "127.0.0.1", "::1", *own, *given, machine, _full_name(machine))
    return tuple(dict.fromkeys(name for name in found if _is_name(name)))


def _full_name(machine: str) -> str:
    """The name of this machine with its domain; without it where nobody answers in time."""
    found = [machine]
    asking = threading.Thread(target=lambda: found.append(socket.getfqdn(machine)), daemon=True)
    asking.start()
    asking.join(NAME_SECONDS_MAX)
    return found[-1]


def _is_name(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return _HOST.fullmatch(text) is not None
    return True


@contextmanager
def _disk(data: DataDirectory) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_trouble(f"a key cannot be made in {data.path}", error) from error
