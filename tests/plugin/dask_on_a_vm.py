"""A scheduler and a worker on one VM, with the handler exactly as its page has it, until it acts."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Scheduler, Worker


async def main(folder: str) -> None:
    place: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    async with (
        Scheduler(**place) as scheduler,
        Worker(
            scheduler.address,
            plugins=(AzurePreemptibleWorkerPlugin(),),
            local_directory=folder,
            **place,
        ) as worker,
    ):
        assert scheduler.workers
        await worker.finished()
        assert not scheduler.workers
        sys.stdout.write("retired\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
