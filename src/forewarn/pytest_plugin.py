"""The pytest plugin: the fixture `scheduled_events`, and the mark that says of which VMs.

Law: whoever has forewarn installed loads this file with every run of pytest, so it imports nothing
but pytest; all else comes with the first test that uses the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from forewarn.testing.scheduled_events import ScheduledEvents

MARK: Final = "scheduled_events"
OPTIONS: Final = ("vms", "spots", "availability_sets", "scale_sets", "fleet", "seed")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers",
        f"{MARK}({', '.join(f'{name}=...' for name in OPTIONS)}): the VMs of the fixture {MARK}; "
        'for example vms=["web-0", "db-0"], spots=["cheap"], availability_sets=["web:3"], '
        'scale_sets=["batch:2"], or fleet="fleet.toml"; seed=7 makes ids and times repeatable',
    )


@pytest.fixture
def scheduled_events(request: pytest.FixtureRequest) -> Iterator[ScheduledEvents]:
    """VMs with scheduled events of their own, over HTTP, on a clock that moves only when told.

    One VM, web-0, unless the mark of the same name says otherwise.
    """
    from forewarn.errors import ForewarnError  # noqa: PLC0415 - see the law
    from forewarn.testing.scheduled_events import emulated  # noqa: PLC0415

    mark = request.node.get_closest_marker(MARK)
    wanted = {} if mark is None else dict(mark.kwargs)
    unknown = [*(() if mark is None else mark.args), *(set(wanted) - set(OPTIONS))]
    if unknown:
        raise _refusal(f"does not know {unknown[0]!r}: give {', '.join(OPTIONS)}, by name")
    fleet = wanted.get("fleet")
    if isinstance(fleet, str | Path):
        # Beside the test, unless the path is a whole one.
        wanted["fleet"] = request.path.parent / fleet
    elif fleet is not None:
        raise _refusal(f'cannot be meant: fleet is a path, such as "fleet.toml", and not {fleet!r}')
    with ExitStack() as stack:
        try:
            world = stack.enter_context(emulated(**wanted))
        except ForewarnError as error:
            raise _refusal(f"cannot be meant: {error}") from None
        yield world


def _refusal(why: str) -> BaseException:
    return pytest.fail.Exception(f"@pytest.mark.{MARK} {why}", pytrace=False)
