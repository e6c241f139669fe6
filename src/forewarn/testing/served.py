"""A world whose guests' endpoint is served on a real socket, over a clock that a test moves."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from forewarn.testing.worlds import World
from forewarn.web.counters import Counters
from forewarn.web.limits import Limits
from forewarn.web.listeners import Listener, bind
from forewarn.web.server import MetadataServer

GRACE: Final = timedelta(seconds=5)
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"


@contextmanager
def served(world: World) -> Iterator[str]:
    """Serve the world's guests while the block runs; yields the endpoint's base URL.

    The world must have been made with a lock as its `turn`: guests commit in threads of the
    server, while the test moves the clock in its own.
    """
    (bound,) = bind([Listener("127.0.0.1", 0)])
    started = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        server = MetadataServer(
            world.desk,
            world.parts.identities,
            world.parts.board,
            limits=Limits(),
            counters=Counters(),
            clock=world.clock,
            subscription_id=SUBSCRIPTION,
            log=logging.getLogger("forewarn.testing"),
        )
        await server.serve([bound])
        started.set()
        await stop.wait()
        await server.stop(GRACE)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="served-world")
    thread.start()
    try:
        assert started.wait(GRACE.total_seconds()), "the endpoint did not start"
        yield f"http://{bound.name}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        bound.socket.close()
