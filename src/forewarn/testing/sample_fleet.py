"""Scopes to tell stories of: every kind, on request and always, with hosts and without."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from forewarn.core.names import HostName, MachineName
from forewarn.core.scopes import AutoApproval, Enabling, Machine, Scope, ScopeKind
from forewarn.testing.worlds import WEB

BATCH: Final = Scope(
    name="batch",
    resource_group="rg2",
    kind=ScopeKind.SCALE_SET,
    update_domains=2,
    enabling=Enabling.ON_REQUEST,
    user_operations_max=2,
    auto_approve=(AutoApproval.USER_REBOOT,),
    machines=tuple(
        Machine(
            name=MachineName(f"batch_{number}"),
            addresses=(f"10.0.1.1{number}",),
            host=HostName("host-0") if number < 2 else None,
            update_domain=number // 2,
        )
        for number in range(4)
    ),
)
LONE: Final = Scope(
    name="lone",
    resource_group="rg3",
    kind=ScopeKind.STANDALONE,
    update_domains=1,
    enabling=Enabling.ON_REQUEST,
    user_operations_max=1,
    machines=(Machine(name=MachineName("lone"), addresses=("10.0.2.10",)),),
)
CLASSIC: Final = Scope(
    name="classic",
    resource_group="rg3",
    kind=ScopeKind.CLOUD_SERVICE,
    update_domains=2,
    enabling=Enabling.ALWAYS,
    auto_approve=tuple(AutoApproval),
    recovery=timedelta(minutes=5),
    machines=tuple(
        Machine(
            name=MachineName(f"classic-{number}"),
            addresses=(f"10.0.3.1{number}",),
            host=HostName(f"host-{number % 2}"),
            update_domain=number % 2,
        )
        for number in range(3)
    ),
)
SPOT: Final = Scope(
    name="spot",
    resource_group="rg2",
    kind=ScopeKind.SCALE_SET,
    update_domains=3,
    enabling=Enabling.ON_REQUEST,
    spot=True,
    machines=tuple(
        Machine(
            name=MachineName(f"spot_{number}"),
            addresses=(f"10.0.4.1{number}",),
            host=HostName("host-2"),
            update_domain=number,
        )
        for number in range(3)
    ),
)
POOL: Final = Scope(
    name="pool",
    resource_group="rg4",
    kind=ScopeKind.SCALE_SET,
    update_domains=2,
    enabling=Enabling.ON_REQUEST,
    terminate_notice=timedelta(minutes=15),
    machines=tuple(
        Machine(
            name=MachineName(f"pool_{number}"),
            addresses=(f"10.0.5.1{number}",),
            host=HostName(f"host-{number // 2}"),
            update_domain=number % 2,
        )
        for number in range(4)
    ),
)
# Two scopes are enough for most stories; the simulation has them all.
PAIR: Final = (WEB, BATCH)
ALL: Final = (WEB, BATCH, LONE, CLASSIC, SPOT, POOL)
