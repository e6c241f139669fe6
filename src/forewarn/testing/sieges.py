"""Services to attack: an endpoint of this process, and a real one. `python -m forewarn.testing.sieges`.

A failure prints the seed and the exact bytes. `--seed` and `--first` play it again.
"""

from __future__ import annotations

import argparse
import json
import logging
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from forewarn.core.events import EventType
from forewarn.core.names import MachineName
from forewarn.core.scopes import Enabling, Machine, Scope
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.fuzzing import Broken, Campaign, Tally
from forewarn.testing.processes import ServiceProcess
from forewarn.testing.rudeness import Stage
from forewarn.testing.worlds import OPERATOR, World
from forewarn.web.limits import Limits

ADDRESSES: Final = tuple(f"127.0.3.{number}" for number in range(10, 26))
NEIGHBOR: Final = "127.0.3.99"
STRANGER: Final = "127.0.3.200"
RUDE: Final = Scope(
    name="rude",
    enabling=Enabling.ALWAYS,
    machines=(
        *(Machine(name=MachineName(f"rude-{a}"), addresses=(a,)) for a in ADDRESSES),
        Machine(name=MachineName("neighbor"), addresses=(NEIGHBOR,)),
    ),
)
# As in earnest, but in a hurry. Guests must not look idle who only wait for a busy machine.
HASTY: Final = Limits(
    idle=timedelta(seconds=30),
    head=timedelta(milliseconds=500),
    body=timedelta(milliseconds=500),
    write=timedelta(seconds=10),
    linger=timedelta(seconds=1),
    sweep=timedelta(milliseconds=20),
)
PATIENCE_SECONDS: Final = 60.0
# Longer than what a head and a body may take, and the answer after that.
PATIENCE_IN_EARNEST_SECONDS: Final = 60.0


class _Complaints(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


class EndpointTarget:
    """An endpoint in this process."""

    def __init__(self, world: World, endpoint: Endpoint) -> None:
        self.addresses: Sequence[str] = ADDRESSES
        self.stranger = STRANGER
        place = endpoint.places[0]
        self.stage = Stage((place.host, place.port), PATIENCE_SECONDS, lets_idle=False)
        self._world = world
        self._endpoint = endpoint
        self._event_id: str | None = None
        self._log = _Complaints()

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self._log)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        logging.getLogger().removeHandler(self._log)

    def announce(self) -> str:
        if self._event_id is not None:
            self._world.desk.cancel(self._event_id, OPERATOR)
        self._event_id = self._world.announce(EventType.REBOOT, RUDE.machines[0].name).id
        return self._event_id

    def state(self) -> object:
        return self._world.document(RUDE.id), len(self._world.journal())

    def is_approved(self, event_id: str) -> bool:
        return self._world.event(event_id).approval is not None

    def document(self) -> bytes:
        with self._endpoint.guest(NEIGHBOR) as guest:
            return guest.ask(WELL_BEHAVED).body

    def complaints(self) -> Sequence[str]:
        return self._log.lines


WELL_BEHAVED: Final = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
    b"Host: 169.254.169.254\r\nMetadata: true\r\n\r\n"
)


class ProcessTarget:
    """A real service, with the limits that it has in earnest."""

    def __init__(self, service: ServiceProcess) -> None:
        self.addresses: Sequence[str] = ADDRESSES
        self.stranger = STRANGER
        base = urlsplit(service.metadata[0])
        assert base.hostname is not None, "it said where it serves"
        assert base.port is not None, "it said where it serves"
        # 64 connections each are allowed to sixteen callers.
        self.stage = Stage(
            (base.hostname, base.port), PATIENCE_IN_EARNEST_SECONDS, at_a_time=256, lets_idle=False
        )
        self._service = service
        self._event_id: str | None = None

    def announce(self) -> str:
        if self._event_id is not None:
            # It may be approved, and over.
            self._service.run("cancel", self._event_id)
            while json.loads(self.document())["Events"]:
                time.sleep(0.1)  # noqa: TID251 - a real process lives in real time
        (event,) = self._service.announce("Reboot", f"rude-{ADDRESSES[0]}", "--duration", "1s")
        self._event_id = event_id = str(event["event_id"])
        while "readable" not in self._happened():
            time.sleep(0.1)  # noqa: TID251 - ditto
        return event_id

    def state(self) -> object:
        return self.document(), self._happened()

    def _happened(self) -> list[str]:
        assert self._event_id is not None, "announce first"
        entries = self._service.json("journal", "--event", self._event_id)["entries"]
        return [entry["what"] for entry in entries]

    def is_approved(self, event_id: str) -> bool:
        return self._service.json("show", event_id)["approved"] is not None

    def document(self) -> bytes:
        reply = self._service.get(NEIGHBOR)
        assert reply.status == 200, reply
        return reply.body

    def complaints(self) -> Sequence[str]:
        if not self._service.is_running:
            return ["the service is dead"]
        lines = self._service.log.read_text(encoding="utf-8").splitlines()
        return [
            line for line in lines if "Traceback" in line or '"error"' in line or " ERROR " in line
        ]


def fleet() -> str:
    """The fleet of a real service under attack."""
    machines = "".join(
        f'  [[scope.machine]]\n  name = "{m.name}"\n  address = "{m.addresses[0]}"\n'
        for m in RUDE.machines
    )
    return (
        '[periods]\nrecovery = "1s"\n\n'
        f'[[scope]]\nname = "{RUDE.name}"\nkind = "cloud-service"\nenabled = "always"\n{machines}'
    )


def main(arguments: Sequence[str]) -> int:
    """Attack a real service."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}")  # noqa: T201 - a command
    begun = time.monotonic()

    def tell(tally: Tally) -> None:
        took = time.monotonic() - begun
        print(f"{tally.exchanges:>8} exchanges in {took:.0f} s", end="\r", file=sys.stderr)  # noqa: T201

    with (
        tempfile.TemporaryDirectory() as folder,
        ServiceProcess(Path(folder), fleet(), "--log-format", "json") as service,
    ):
        campaign = Campaign(ProcessTarget(service), asked.seed, batch=2500)
        try:
            campaign.run(asked.count, first=asked.first, told=tell)
        except Broken as broken:
            print(broken)  # noqa: T201
            return 1
        finally:
            _tell_all(campaign.tally, time.monotonic() - begun)
        code = service.stop()
        print(f"the service stopped with {code}")  # noqa: T201
        return code


def _tell_all(tally: Tally, seconds: float) -> None:
    print(  # noqa: T201
        f"{tally.exchanges} exchanges, {tally.requests} whole requests, {tally.approvals} events "
        f"approved, {tally.resets} resets, {seconds:.0f} s"
    )
    for title, counts in (("sent", tally.kinds), ("answered", tally.statuses)):
        told = ", ".join(f"{key} {count}" for key, count in sorted(counts.items(), key=str))
        print(f"  {title}: {told}")  # noqa: T201


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
