"""Ten thousand rude exchanges on real sockets, and a service that is none the worse for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from forewarn.testing.endpoints import Endpoint
from forewarn.testing.fuzzing import Campaign
from forewarn.testing.sieges import HASTY, RUDE, EndpointTarget
from forewarn.testing.worlds import World

NewLoop = Callable[[], asyncio.AbstractEventLoop]
LOOPS: dict[str, NewLoop] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_whatever_guests_send_is_answered_or_closed_and_changes_nothing(seed: int) -> None:
    """Keeps N4: a thousand exchanges for each seed; what went wrong is told byte by byte."""
    new_loop = LOOPS["asyncio" if seed % 5 == 0 else "uvloop"]
    world = World(RUDE)
    with (
        Endpoint(world, limits=HASTY, new_loop=new_loop) as endpoint,
        EndpointTarget(world, endpoint) as target,
    ):
        campaign = Campaign(target, seed, batch=250)
        campaign.run(1000)

        assert campaign.tally.exchanges == 1000
        assert not [status for status in campaign.tally.statuses if status >= 500]
