"""What only time brings, told over a real socket while the test moves the clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from forewarn.core import enabling
from forewarn.core.events import EventSource, EventType
from forewarn.core.names import MachineName, ScopeId
from forewarn.core.scopes import Enabling, Machine, Scope, ScopeKind
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Refused
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.processes import PATH, HttpReply, request
from forewarn.testing.worlds import OPERATOR, World

pytestmark = pytest.mark.end_to_end

QUIET = Scope(
    name="quiet",
    kind=ScopeKind.CLOUD_SERVICE,
    enabling=Enabling.ON_REQUEST,
    machines=tuple(
        Machine(name=MachineName(f"quiet-{n}"), addresses=(f"127.0.3.1{n}",), update_domain=n)
        for n in range(2)
    ),
)


class Story:
    def __init__(self, world: World, base: str) -> None:
        self.world = world
        self.base = base

    def get(self, machine: int = 0) -> HttpReply:
        target = f"{PATH}?api-version=2020-07-01"
        headers = {"Metadata": "true"}
        reply = request(self.base, "GET", target, source=f"127.0.3.1{machine}", headers=headers)
        # The answer does not wait for the coarse mark; the clock, which we move, must.
        deadline = time.monotonic() + 10
        while enabling.needs_mark(self.world.desk.books.load(QUIET.id), self.world.clock.now()):
            assert time.monotonic() < deadline, "the mark was not committed"
            time.sleep(0.01)
        return reply

    def statuses(self) -> list[str]:
        return [event["EventStatus"] for event in self.get().json["Events"]]


@pytest.fixture
def story() -> Iterator[Story]:
    world = World(QUIET, turn=threading.RLock())
    with Endpoint(world) as endpoint:
        yield Story(world, f"http://{endpoint.places[0].name}")


def test_a_day_of_silence_disables_and_the_next_request_enables_again(story: Story) -> None:
    """Keeps S13, S9: the incarnation goes on where it was, unlike Azure's."""
    assert story.get().body == b'{"DocumentIncarnation":1,"Events":[]}'
    story.world.announce(EventType.REBOOT, "quiet-0")
    story.world.advance(timedelta(hours=23))
    assert story.get(machine=1).json["DocumentIncarnation"] == 4, "announced, started, gone"
    story.world.advance(timedelta(hours=23, minutes=59))
    assert story.world.desk.books.load(ScopeId("default/quiet")).is_enabled

    story.world.advance(timedelta(minutes=2))
    with pytest.raises(Refused, match="not enabled"):
        story.world.announce(EventType.REBOOT, "quiet-0")
    wish = Wish(type=EventType.REBOOT, machines=("quiet-0",), if_not_told=IfNotTold.RUN_UNANNOUNCED)
    story.world.desk.announce(wish, (), OPERATOR)

    assert story.get().json == {"DocumentIncarnation": 4, "Events": []}
    assert story.world.announce(EventType.FREEZE, "quiet-1").is_open


def test_the_notice_runs_out_exactly_when_promised(story: Story) -> None:
    """Keeps S11, S17, S8: not a second before NotBefore; `""` once Started; then gone."""
    story.get()
    event = story.world.announce(EventType.REDEPLOY, "quiet-0", source=EventSource.USER)
    left = event.not_before - story.world.clock.now()
    assert left >= timedelta(minutes=10)

    story.world.advance(left - timedelta(seconds=1))
    assert story.statuses() == ["Scheduled"]
    story.world.advance(timedelta(seconds=1))
    (notice,) = story.get().json["Events"]
    assert (notice["EventStatus"], notice["NotBefore"]) == ("Started", "")
    story.world.advance(timedelta(minutes=5))
    assert story.statuses() == []


def test_a_clock_set_forward_starts_nothing_early(story: Story) -> None:
    """Keeps S11, S17: the notice must really have passed, whatever the time of day says."""
    story.get()
    event = story.world.announce(EventType.REBOOT, "quiet-0")

    story.world.clock.jump(timedelta(days=3))
    story.world.settle()
    assert story.statuses() == ["Scheduled"]
    story.world.advance(event.notice + timedelta(seconds=2))
    assert story.statuses() == ["Started"]


def test_a_machine_outside_the_resources_approves_for_all(story: Story) -> None:
    """Keeps S14, S16: any machine of the scope, on behalf of all."""
    story.get()
    event = story.world.announce(EventType.REBOOT, "quiet-0")
    body = json.dumps({"StartRequests": [{"EventId": event.id}]}).encode()

    reply = request(
        story.base, "POST", f"{PATH}?api-version=2019-08-01",
        source="127.0.3.11", headers={"Metadata": "true"}, body=body,
    )  # fmt: skip
    story.world.settle()

    assert (reply.status, story.statuses()) == (200, ["Started"])
    assert story.world.event(event.id).started_at == story.world.clock.now()
