"""What was begun is followed to its end, or left to itself."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.cli import screens
from forewarn.cli.arm import Arm
from forewarn.cli.client import Client
from forewarn.cli.errands import Errand, phrase_of_nothing
from forewarn.cli.options import Length
from forewarn.cli.pictures import SHORT_ID, events_table
from forewarn.cli.tables import print_json, print_line, print_table
from forewarn.clocks import SystemClock
from forewarn.errors import Malformed, Unavailable, Unfinished, Unsuccessful
from forewarn.tables.durations import parse_duration

LOOK_SECONDS: Final = 1.0
# A service that restarts is back by then.
UNREACHABLE_MAX: Final = timedelta(seconds=60)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Whether to wait for the end, and for how long."""

    wait: Annotated[
        bool,
        Parameter(negative="--no-wait", help="Follow it until it is over; else only begin it."),
    ] = False
    timeout: Annotated[
        Length | None, Parameter(help="How long to --wait, such as 20m; else until it is over.")
    ] = None

    def limit(self) -> timedelta | None:
        """How long to wait. Raises: Malformed."""
        if self.timeout is not None and not self.wait:
            raise Malformed("--timeout says how long to wait: give --wait too")
        return None if self.timeout is None else parse_duration(self.timeout)


NONE: Final = Patience()


@dataclass(frozen=True, slots=True)
class Lookout:
    """Looks how far errands are."""

    client: Client

    def look(self, errand: Errand) -> None:
        """See how far an errand is. Raises: what the client raises."""
        if errand.address is not None:
            errand.operation = Arm(self.client.transport).operation(errand.address)
            errand.event_ids = errand.operation["properties"]["events"]
        errand.events = [self.client.event(event_id) for event_id in errand.event_ids]

    def finish(self, errands: Sequence[Errand], patience: Patience, *, as_json: bool) -> None:
        """Tell what was begun; and how it ends, if somebody waits for that.

        Raises: Unsuccessful, Unfinished, and what the client raises.
        """
        limit = patience.limit()
        for errand in errands:
            self.look(errand)
        if patience.wait:
            with screens.screen(is_quiet=as_json) as screen, _left_to_itself(errands):
                self._await(errands, limit, screen)
        if as_json:
            _print_json(errands)
        elif not patience.wait:
            _print_table(errands)
        _judge(errands, patience)

    def _await(
        self, errands: Sequence[Errand], limit: timedelta | None, screen: screens.Screen
    ) -> None:
        clock = SystemClock()
        began = reached = clock.elapsed()
        while True:
            screen.show(errands, clock.now())
            late = limit is not None and clock.elapsed() - began >= limit
            if late or all(errand.is_over for errand in errands):
                return
            threading.Event().wait(LOOK_SECONDS)
            try:
                for errand in errands:
                    if not errand.is_over:
                        self.look(errand)
                reached = clock.elapsed()
            except Unavailable:
                if clock.elapsed() - reached > UNREACHABLE_MAX:
                    raise


def _judge(errands: Iterable[Errand], patience: Patience) -> None:
    """Raises: Unsuccessful, Unfinished."""
    if not patience.wait:
        return
    going = [errand for errand in errands if not errand.is_over]
    if going:
        raise Unfinished(f"not over after {patience.timeout}; {_how_to_follow(going)}")
    faults = [f"{errand.label}: {errand.fault}" for errand in errands if errand.fault]
    if faults:
        raise Unsuccessful("; ".join(faults))


@contextmanager
def _left_to_itself(errands: Sequence[Errand]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        going = [errand for errand in errands if not errand.is_over]
        if going:
            sys.stderr.write(f"forewarn: {_how_to_follow(going)}\n")
        raise


def _how_to_follow(errands: Sequence[Errand]) -> str:
    ids = [event_id[:SHORT_ID] for errand in errands for event_id in errand.event_ids]
    return f"it goes on: `forewarn wait {' '.join(ids)}` follows it"


def _print_json(errands: Sequence[Errand]) -> None:
    print_json(
        {
            "operations": [one.operation for one in errands if one.operation is not None],
            "events": [event for errand in errands for event in errand.events],
        }
    )


def _print_table(errands: Sequence[Errand]) -> None:
    made = [event for errand in errands for event in errand.events]
    if made:
        print_table(events_table(made, SystemClock().now()))
    for errand in errands:
        if not errand.events:
            print_line(phrase_of_nothing(errand))
