"""A world of rude guests, and one neighbor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import uvloop

from forewarn.testing.endpoints import Endpoint
from forewarn.testing.sieges import RUDE
from forewarn.testing.worlds import World


@pytest.fixture
def world() -> World:
    return World(RUDE)


@pytest.fixture
def endpoint(world: World) -> Iterator[Endpoint]:
    with Endpoint(world, new_loop=uvloop.new_event_loop) as endpoint:
        yield endpoint
