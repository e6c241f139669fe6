"""A world whose machines can speak from this host's loopback addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from forewarn.core.names import MachineName
from forewarn.core.scopes import Enabling, Machine, Scope
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.worlds import WEB, World

# web-0 to web-3 speak from 127.0.1.10 to 127.0.1.13.
LOOPBACK_WEB = replace(
    WEB,
    machines=tuple(
        replace(machine, addresses=(f"127.0.1.1{number}",))
        for number, machine in enumerate(WEB.machines)
    ),
)
# Not told of events until it asks.
LONER = Scope(
    name="loner",
    enabling=Enabling.ON_REQUEST,
    machines=(Machine(name=MachineName("loner"), addresses=("127.0.1.99",)),),
)


@pytest.fixture
def world() -> World:
    return World(LOOPBACK_WEB, LONER)


@pytest.fixture
def endpoint(world: World) -> Iterator[Endpoint]:
    with Endpoint(world) as endpoint:
        yield endpoint
