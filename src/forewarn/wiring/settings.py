"""What a service is told, and what it tells whoever started it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from forewarn.core.scopes import Enabling
from forewarn.core.targets import AllowedHost
from forewarn.systemd import Systemd
from forewarn.web.limits import Limits
from forewarn.web.listeners import Bound, Listener
from forewarn.web.metadata import STRICT, Manners
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.directories import DataDirectory
from forewarn.wiring.grounds import Ground
from forewarn.wiring.hosting import LibvirtSettings
from forewarn.wiring.trust import TrustSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `forewarn serve` was told."""

    data: DataDirectory
    fleet: Path | None = None
    metadata: tuple[Listener, ...]
    # Files of links on which guests are answered, beside those addresses.
    networks: tuple[Path, ...] = ()
    control: tuple[str, int]
    default_enabling: Enabling = Enabling.ON_REQUEST
    limits: Limits = field(default_factory=Limits)
    manners: Manners = STRICT
    # How long an impact of the simulated fabric takes; None: as long as it would on real machines.
    impacts_take: timedelta | None = None
    libvirt: LibvirtSettings = field(default_factory=LibvirtSettings)
    # Where webhooks may be told things; nowhere, if nothing is said.
    webhook_allow: tuple[AllowedHost, ...] = ()
    systemd: Systemd = field(default_factory=lambda: Systemd(None))
    trust: TrustSettings = field(default_factory=TrustSettings)
    # What the service stands on; None: this machine.
    ground: Ground | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """A service that is being served, for whoever started it."""

    assembly: Assembly
    metadata: tuple[Bound, ...]
    control: str
    data: DataDirectory
