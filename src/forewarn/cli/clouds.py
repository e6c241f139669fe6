"""A service as a cloud of Azure's: what its clients must be told, and the directory of their own.

Theirs is a directory apart, so that whatever they know of Azure itself stays as it is: in the data
directory of a service on this machine, else in this user's configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from forewarn.cli.arm import Arm
from forewarn.cli.connection import Connection
from forewarn.cli.transport import Service
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Refused
from forewarn.trust import vault

# To Azure's clients, an authority that is asked nothing about other tenants.
_AUTHORITY_TENANT: Final = "adfs"
_FOR_OWNER_ALONE: Final = 0o700
_AZ_SETTINGS: Final = b"[core]\ncollect_telemetry = no\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """What Azure's clients need to know of a service."""

    service: Service
    subscription_id: str
    tenant_id: str
    # Where az keeps what it knows of this service; nobody else's.
    directory: Path
    # The service's certificate and all that this system trusts.
    bundle: Path

    @property
    def url(self) -> str:
        # az appends to it.
        return self.service.url.rstrip("/")

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of Azure's clients."""
        ca = self.service.ca
        return {
            "ARM_ENDPOINT": self.url,
            "REQUESTS_CA_BUNDLE": str(self.bundle),
            "NODE_EXTRA_CA_CERTS": str(self.bundle if ca is None else ca.absolute()),
            "AZURE_CONFIG_DIR": str(self.directory),
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": _AUTHORITY_TENANT,
            "AZURE_CLIENT_ID": self.service.credentials.client_id,
            "AZURE_CLIENT_SECRET": self.service.credentials.client_secret,
            "AZURE_SUBSCRIPTION_ID": self.subscription_id,
        }


def reach(connection: Connection) -> Cloud:
    """The cloud that a connection leads to, whose credentials were tried; its directory is made.

    Raises: the families.
    """
    transport = connection.transport()
    service = transport.service
    if service.token:
        raise Refused(
            "an emulator speaks plain HTTP, to which Azure's clients tell no secret: let them talk "
            "to `forewarn serve`"
        )
    subscription = Arm(transport).subscription()
    directory = _directory(service, Surroundings.of_this_process().config_home)
    try:
        return Cloud(
            service=service,
            subscription_id=subscription["subscriptionId"],
            tenant_id=subscription["tenantId"],
            directory=_furnished(directory),
            bundle=_bundle(directory, service),
        )
    except OSError as error:
        raise Refused(
            f"{directory} cannot be written ({error.strerror}): set XDG_CONFIG_HOME to a directory "
            "of your own"
        ) from error


def _directory(service: Service, config_home: Path | None) -> Path:
    """One for each service and principal: az must not mix up their logins."""
    who = quote(service.credentials.client_id, safe="")
    if service.data is not None and os.access(service.data, os.W_OK):
        return service.data.absolute() / "azure" / who
    if config_home is None:
        raise Refused("there is no place for az to keep its logins: set HOME or XDG_CONFIG_HOME")
    where = quote(urlsplit(service.url).netloc, safe=":[]")
    return config_home / "forewarn" / "azure" / where / who


def _furnished(directory: Path) -> Path:
    directory.mkdir(mode=_FOR_OWNER_ALONE, parents=True, exist_ok=True)
    settings = directory / "config"
    if not settings.exists():
        # Whom az would report to is of no concern to a cloud of one's own.
        vault.write(settings, _AZ_SETTINGS, vault.OWNER_ONLY)
    return directory


def _bundle(directory: Path, service: Service) -> Path:
    ca = None if service.ca is None else service.ca.absolute()
    own = None if service.data is None else vault.Vault(service.data.absolute())
    if own is not None and ca == own.authority and own.bundle.exists():
        return own.bundle
    bundle = directory / "ca-bundle.pem"
    vault.keep_bundle(bundle, service.ca)
    return bundle
