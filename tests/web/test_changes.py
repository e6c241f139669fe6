"""The change stream over real sockets: told as it happens, taken up where it was left."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.journal import Role
from forewarn.core.rights import Principal
from forewarn.stores.sqlite import SqliteStore
from forewarn.testing.control_planes import OPERATOR, ControlPlane, Extras, faces
from forewarn.testing.sample_fleet import BATCH, CLASSIC
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.testing.worlds import OPERATOR as ACTOR
from forewarn.web import routes
from forewarn.web.calls import Call, Stream
from forewarn.web.streaming import Pace

OWNER = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg3",))
CHANGES = "/fabric/v1/changes"
# Looked after often, so that a test need not wait for it.
BRISK = Pace(
    look_again=timedelta(milliseconds=10),
    beat=timedelta(milliseconds=200),
    patience=timedelta(seconds=1),
    streams_max=3,
    streams_of_one_max=2,
)
SECONDS_MAX = 10

Block = dict[str, str]


def blocks(response: HTTPResponse) -> Iterator[Block]:
    """What is told, as a browser reads it; a comment's name is empty."""
    block: Block = {}
    while line := response.readline():
        text = line.decode().removesuffix("\n")
        if text:
            name, _, value = text.partition(":")
            block[name] = value.removeprefix(" ")
        else:
            yield block
            block = {}


def told(response: HTTPResponse, count: int) -> list[Block]:
    """The next changes, whatever is sent in between."""
    found: list[Block] = []
    until = time.monotonic() + SECONDS_MAX
    for block in blocks(response):
        assert time.monotonic() < until, f"{len(found)} of {count}: {found}"
        if block.get("event") == "change":
            found.append(block)
            if len(found) == count:
                break
    return found


def data(block: Block) -> Any:  # noqa: ANN401 - JSON is anything
    return json.loads(block["data"])


def whats(found: list[Block]) -> list[tuple[str, str]]:
    return [(data(block)["what"], data(block)["event"]["status"]) for block in found]


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(World(WEB, CLASSIC, BATCH), OPERATOR, OWNER, pace=BRISK) as plane:
        yield plane


@contextmanager
def following(plane: ControlPlane, target: str = CHANGES, **headers: str) -> Iterator[HTTPResponse]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with plane.asking("GET", target, headers=given) as response:
        assert response.status == 200, response.read()
        yield response


def canceled(plane: ControlPlane, machine: str = "web-0") -> str:
    event = plane.world.announce(EventType.FREEZE, machine)
    plane.world.desk.cancel(event.id, ACTOR)
    return event.id


def test_every_change_is_told_as_it_happens_to_the_very_end(plane: ControlPlane) -> None:
    """Keeps N10: a stream of all changes with Completed and Canceled."""
    with following(plane) as stream:
        greeting = next(blocks(stream))
        first = plane.world.announce(EventType.FREEZE, "web-0")
        plane.world.approve("10.0.0.10", first.id)
        plane.world.advance(timedelta(hours=1))
        canceled(plane, "web-1")
        found = told(stream, 8)

    assert stream.getheader("Content-Type") == "text/event-stream"
    assert stream.getheader("Cache-Control") == "no-store"
    assert greeting["retry"] == "2000"
    assert whats(found) == [
        ("announced", "Scheduled"),
        ("readable", "Scheduled"),
        ("approved", "Scheduled"),
        ("started", "Started"),
        ("completed", "Completed"),
        ("announced", "Scheduled"),
        ("readable", "Scheduled"),
        ("canceled", "Canceled"),
    ]


def test_whoever_comes_back_misses_nothing(plane: ControlPlane) -> None:
    with following(plane) as stream:
        canceled(plane)
        seen = told(stream, 2)[-1]["id"]
    second = canceled(plane, "web-1")

    with following(plane, f"{CHANGES}?after=1", Last_Event_ID=seen) as stream:
        found = told(stream, 4)

    assert whats(found)[0] == ("canceled", "Canceled")
    assert {data(block)["event"]["event_id"] for block in found[1:]} == {second}


def test_what_one_commit_wrote_is_told_together_or_again(plane: ControlPlane) -> None:
    """Only the last line of a commit bears its cursor."""
    body = {"type": "Reboot", "machines": ["web-0", "web-1"]}
    with following(plane) as stream:
        assert plane.ask("POST", "/fabric/v1/events", body).status == 201
        found = told(stream, 2)

    assert len({data(block)["cursor"] for block in found}) == 1
    assert ["id" in block for block in found] == [False, True]


def test_a_whole_past_is_told_page_by_page(plane: ControlPlane) -> None:
    for _ in range(40):
        canceled(plane)

    with following(plane, f"{CHANGES}?after=&scope=rg1/web") as stream:
        found = told(stream, 120)

    assert whats(found).count(("canceled", "Canceled")) == 40


@pytest.mark.parametrize(
    ("query", "machine"),
    [
        ("scope=rg3/classic", "classic-0"),
        ("group=RG3", "classic-0"),
        ("machine=classic-0", "classic-0"),
        ("type=reboot", "web-1"),
    ],
)
def test_a_reader_may_want_only_some(plane: ControlPlane, query: str, machine: str) -> None:
    with following(plane, f"{CHANGES}?{query}") as stream:
        canceled(plane, "web-0")
        if machine == "classic-0":
            canceled(plane, "classic-0")
        else:
            plane.world.announce(EventType.REBOOT, machine)
        (block,) = told(stream, 1)

    assert data(block)["event"]["resources"] == [machine]


def test_an_owner_is_told_of_its_own_groups_only(plane: ControlPlane) -> None:
    with plane.asking("GET", CHANGES, token="olga") as stream:
        canceled(plane, "web-0")
        canceled(plane, "classic-0")
        (block,) = told(stream, 1)

    assert data(block)["resource_group"] == "rg3"
    assert plane.ask("GET", f"{CHANGES}?group=rg1", token="olga").status == 403
    assert plane.ask("GET", f"{CHANGES}?scope=rg1/web", token="olga").status == 403
    assert plane.ask("GET", f"{CHANGES}?scope=web", token="olga").status == 404


def test_where_nothing_happens_a_sign_of_life_moves_the_cursor_on(plane: ControlPlane) -> None:
    with following(plane, f"{CHANGES}?group=rg2") as stream:
        reading = blocks(stream)
        greeting = next(reading)
        canceled(plane, "web-0")
        time.sleep(0.1)
        beats = [next(reading), next(reading)]

    assert [beat[""] for beat in beats] == ["still here", "still here"]
    assert int(beats[1]["id"]) > int(greeting["id"])


@pytest.mark.parametrize(
    ("query", "status", "complaint"),
    [
        ("after=soon", 400, "not a cursor"),
        ("after=999", 410, "follow without a cursor"),
        ("type=Explosion", 400, "no type is called 'Explosion'"),
        ("scope=rg1/none", 404, "no scope rg1/none"),
        ("group=none", 404, "no scope is in a resource group none"),
        ("limit=5", 400, "no parameter is called 'limit'"),
    ],
)
def test_what_cannot_be_followed_is_told_at_once(
    plane: ControlPlane, query: str, status: int, complaint: str
) -> None:
    reply = plane.ask("GET", f"{CHANGES}?{query}")

    assert reply.status == status
    assert complaint in reply.json["error"]["message"]


def test_a_cursor_that_was_pruned_is_gone(plane: ControlPlane) -> None:
    canceled(plane)
    plane.world.store.prune(plane.world.store.head())

    reply = plane.ask("GET", f"{CHANGES}?after=1")

    assert (reply.status, reply.json["error"]["code"]) == (410, "Gone")


def test_the_head_of_a_stream_ends(plane: ControlPlane) -> None:
    reply = plane.ask("HEAD", CHANGES)

    assert (reply.status, reply.body) == (200, b"")


def test_streams_end_cleanly_when_the_service_does(plane: ControlPlane) -> None:
    with following(plane) as stream:
        next(blocks(stream))
        plane.stop()

        # To the end, chunk by chunk: had it been cut off, this would say so.
        stream.read()


def test_whoever_loses_the_token_is_told_nothing_more(plane: ControlPlane) -> None:
    with plane.asking("GET", CHANGES, token="olga") as stream:
        next(blocks(stream))
        plane.authority.take_back("olga")
        time.sleep(0.1)
        canceled(plane, "classic-0")

        # To its end, or until a sign of life comes too late: it would never end by itself.
        assert told(stream, 1) == []


def test_whoever_loses_the_token_while_waiting_for_news_is_told_none(plane: ControlPlane) -> None:
    end = plane.ask("GET", "/fabric/v1/journal").json["cursor"]
    target = f"/fabric/v1/journal?after={end}&wait=30"
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(plane.ask, "GET", target, token="olga")
        time.sleep(0.2)
        plane.authority.take_back("olga")
        canceled(plane, "classic-0")

        reply = waiting.result(10)

    assert (reply.status, b"classic-0" in reply.body) == (401, False)


def test_whoever_loses_the_token_while_sending_a_body_does_nothing_more(
    plane: ControlPlane,
) -> None:
    head = (
        "POST /fabric/v1/webhooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer olga\r\n"
        "Connection: close\r\nContent-Length: 2\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", plane.port), timeout=10) as caller:
        caller.sendall(head.encode())
        time.sleep(0.2)
        plane.authority.take_back("olga")
        caller.sendall(b"}")

        assert caller.recv(100).startswith(b"HTTP/1.1 401 ")


def test_nobody_has_more_streams_than_are_good_for_others(plane: ControlPlane) -> None:
    with ExitStack() as stack:
        for _ in range(BRISK.streams_of_one_max):
            stack.enter_context(following(plane))

        reply = plane.ask("GET", CHANGES)
        stack.enter_context(plane.asking("GET", CHANGES, token="olga"))
        others = plane.ask("GET", CHANGES, token="olga")

        assert (reply.status, reply.headers["retry-after"]) == (429, "10")
        assert others.status == 429, "three in all"

    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        with plane.asking("GET", CHANGES) as response:
            if response.status == 200:
                return
    raise AssertionError("readers who left make room")


def test_a_reader_who_does_not_read_is_hung_up_on(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(150):
        canceled(plane)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(SECONDS_MAX)
        slow.connect(("127.0.0.1", plane.port))
        slow.sendall(
            f"GET {CHANGES}?after= HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ada\r\n\r\n".encode()
        )
        time.sleep(BRISK.patience.total_seconds() * 2)

        asked_at = time.monotonic()
        assert plane.ask("GET", "/healthz").status == 200
        received = 0
        try:
            while (chunk := slow.recv(65536)) and received < 1_000_000:
                received += len(chunk)
        except ConnectionResetError:
            pass

    assert time.monotonic() - asked_at < SECONDS_MAX / 2
    assert 0 < received < 300_000, "not all of it"
    assert not caplog.records


def followed(world: World) -> Stream:
    """A stream as the app has it in hand, without sockets."""
    found = faces(world, Extras()).table().find(CHANGES)
    assert found is not None
    call = Call(method="GET", path=CHANGES, principal=OPERATOR)
    stream = routes.answer(found.routes["GET"], call).stream
    assert stream is not None
    return stream


def test_a_reader_whom_pruning_overtakes_is_told_that_it_is_gone() -> None:
    world = World(WEB)
    stream = followed(world)
    world.announce(EventType.FREEZE, "web-0")
    world.announce(EventType.FREEZE, "web-1")
    world.store.prune(world.store.head())

    last = stream.more()

    assert last.stream is None
    assert last.body.startswith(b'event: gone\ndata: {"error":{"code":"Gone"')


def test_a_stream_ends_while_the_store_is_away(tmp_path: Path) -> None:
    clock = SimulatedClock(NOON)
    store = SqliteStore(tmp_path / "forewarn.db", clock)
    stream = followed(World(WEB, clock=clock, store=store))
    store.close()

    last = stream.more()

    assert (last.stream, last.body) == (None, b": the store is away\n\n")


def test_nobody_asks_the_store_before_there_is_news() -> None:
    world = World(WEB)
    stream = followed(world)
    before = stream.is_news()

    world.announce(EventType.FREEZE, "web-0")

    assert (before, stream.is_news()) == (False, True)
    more = stream.more().stream
    assert more is not None
    assert not more.is_news()
