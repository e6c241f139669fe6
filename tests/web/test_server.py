"""The guests' endpoint over real sockets: who gets which answer, and how HTTP is spoken."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
import uvloop

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.core.journal import What
from forewarn.core.names import scope_id
from forewarn.core.scopes import Enabling
from forewarn.errors import Refused, Unavailable
from forewarn.identities.addresses import AddressBook
from forewarn.ports.store import CommitId, Lease, Write
from forewarn.stores.memory import MemoryStore
from forewarn.testing.endpoints import Endpoint, Guest, Response
from forewarn.testing.faults import FaultyStore, StoreDoor
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.web import listeners
from forewarn.web.counters import Counters
from forewarn.web.limits import Limits
from forewarn.web.listeners import Bound, Listener
from forewarn.web.metadata import Manners
from forewarn.web.server import MetadataServer
from forewarn.wire import refusals

WEB_0, WEB_1, LONER, STRANGER = "127.0.1.10", "127.0.1.11", "127.0.1.99", "127.0.1.200"
LINE = "{} /metadata/scheduledevents?api-version=2020-07-01{} HTTP/1.1\r\n"
HEAD = "Host: 169.254.169.254\r\nMetadata: true\r\n"


def get(*headers: str, more: str = "") -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"{LINE.format('GET', more)}{HEAD}{lines}\r\n".encode()


def post(event_id: str, *headers: str) -> bytes:
    body = json.dumps({"StartRequests": [{"EventId": event_id}]})
    lines = "".join(f"{h}\r\n" for h in (*headers, f"Content-Length: {len(body)}"))
    return f"{LINE.format('POST', '')}{HEAD}{lines}\r\n{body}".encode()


def documents(response: Response) -> int:
    incarnation: int = json.loads(response.body)["DocumentIncarnation"]
    return incarnation


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_guest_reads_and_approves(
    world: World, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Keeps S1, S7 and S16, on either event loop."""
    event = world.announce(EventType.REBOOT, "web-1")
    with Endpoint(world, new_loop=new_loop) as endpoint, endpoint.guest(WEB_0) as guest:
        read = guest.ask(get())
        approved = guest.ask(post(event.id, "Content-Type: application/x-www-form-urlencoded"))
        again = guest.ask(post(event.id.lower()))
    world.settle()

    assert [shown["EventId"] for shown in json.loads(read.body)["Events"]] == [event.id]
    assert (approved.status, approved.body) == (200, b"")
    assert approved.headers["content-length"] == "0"
    assert again.status == 200
    approval = next(e for e in world.journal() if e.what is What.APPROVED)
    assert (approval.actor.name, approval.actor.address) == ("web-0", WEB_0)
    assert endpoint.counters.approvals == 2
    assert endpoint.counters.answers["scheduledevents", 200] == 3


def test_an_answer_has_azures_headers(endpoint: Endpoint) -> None:
    """Keeps S7."""
    with endpoint.guest(WEB_0) as guest:
        first, second = guest.ask(get()), guest.ask(get())

    assert first.headers["content-type"] == "application/json; charset=utf-8"
    assert "IMDS" in first.headers["server"]
    assert first.headers["date"] == "Tue, 01 Jan 2030 12:00:00 GMT"
    assert first.headers["etag"] == '"1"'
    assert "connection" not in first.headers
    assert re.fullmatch(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first.headers["x-ms-request-id"]
    )
    assert first.headers["x-ms-request-id"] != second.headers["x-ms-request-id"]


def test_a_known_document_is_not_sent_again(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(get('If-None-Match: "1"'))

    assert (response.status, response.body, response.headers["etag"]) == (304, b"", '"1"')
    assert "content-length" not in response.headers


def test_a_condition_holds_each_time_that_it_is_sent(endpoint: Endpoint) -> None:
    """Keeps S9: what is remembered of a request has its conditions too."""
    with endpoint.guest(WEB_0) as guest:
        plain = [guest.ask(get()).status for _ in range(2)]
        known = [guest.ask(get('If-None-Match: "1"')).status for _ in range(3)]

    assert (plain, known) == ([200, 200], [304, 304, 304])


def test_the_same_bytes_mean_another_document_to_another_scope(
    world: World, endpoint: Endpoint
) -> None:
    """Keeps S1: what is remembered of a request never tells who sent it."""
    world.announce(EventType.FREEZE, "web-1")
    with endpoint.guest(WEB_0) as web, endpoint.guest(LONER) as loner:
        for _ in range(3):
            assert json.loads(web.ask(get()).body)["Events"]
            assert not json.loads(loner.ask(get()).body)["Events"]
        assert len(endpoint.server.memo) == 1


def test_a_stranger_is_told_so(endpoint: Endpoint) -> None:
    """Keeps S1."""
    for request in (get(), get(), post("x"), b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"):
        with endpoint.guest(STRANGER) as guest:
            response = guest.ask(request)

            assert response.status == 403
            assert response.body == refusals.stranger(STRANGER).body
            assert response.headers["connection"] == "close"
            assert guest.is_hung_up()
    assert endpoint.counters.strangers == 4
    assert len(endpoint.server.memo) == 0


@pytest.mark.parametrize(
    "claim",
    ["X-Real-IP: {}", "X-Client-IP: {}", "Forwarded: for={}", "Via: {}", "From: {}", "Host: {}"],
)
def test_no_header_says_who_is_calling(endpoint: Endpoint, claim: str) -> None:
    """Keeps S1: an address is what the network says."""
    target = "/metadata/instance/compute/name?api-version=2021-05-01&format=text"
    lines = "".join(f"{line}\r\n" for line in ("Metadata: true", claim.format(LONER)))
    host = "" if claim.startswith("Host") else "Host: 169.254.169.254\r\n"
    request = f"GET {target} HTTP/1.1\r\n{host}{lines}\r\n".encode()
    with endpoint.guest(STRANGER) as stranger, endpoint.guest(WEB_0) as guest:
        assert stranger.ask(request).status == 403
        assert guest.ask(request).body == b"web-0"


def test_a_machine_that_leaves_the_fleet_becomes_a_stranger(
    world: World, endpoint: Endpoint
) -> None:
    with endpoint.guest(LONER) as guest:
        before = guest.ask(get())
        world.declare()
        after = guest.ask(get())

    assert (before.status, after.status) == (200, 403)


def test_a_change_shows_in_the_next_answer(world: World, endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        before = documents(guest.ask(get()))
        world.announce(EventType.FREEZE, "web-1")
        after = documents(guest.ask(get()))

    assert (before, after) == (1, 2)


def test_each_version_has_bytes_of_its_own(world: World, endpoint: Endpoint) -> None:
    """Keeps S3, S5: what is ready for one version is not ready for another."""
    world.announce(EventType.PREEMPT, "web-1")
    path = "/metadata/scheduledevents?api-version="
    with endpoint.guest(WEB_0) as guest:
        shown = {
            version: json.loads(
                guest.ask(f"GET {path}{version} HTTP/1.1\r\n{HEAD}\r\n".encode()).body
            )["Events"]
            for version in ("2020-07-01", "2017-11-01", "2017-08-01")
        }

    assert [len(events) for events in shown.values()] == [1, 1, 0]
    assert shown["2020-07-01"][0].keys() - shown["2017-11-01"][0].keys() == {
        *("Description", "EventSource", "DurationInSeconds"),
    }


def test_two_listeners_serve_one_fleet(world: World) -> None:
    places = (Listener("127.0.0.1", 0), Listener("127.0.0.2", 0))
    with Endpoint(world, listeners=places) as endpoint:
        names = [place.name for place in endpoint.places]
        with endpoint.guest(WEB_0) as one, endpoint.guest(WEB_1, listener=1) as other:
            assert one.ask(get()).status == other.ask(get()).status == 200

    assert names == [f"{place.host}:{place.port}" for place in endpoint.places]
    assert names[1].startswith("127.0.0.2:")


def test_whoever_comes_to_a_pinned_listener_is_that_machine() -> None:
    world = World()
    endpoint = Endpoint(world, listeners=(Listener("127.0.0.1", 0), Listener("127.0.0.1", 0)))
    book = world.parts.identities
    assert isinstance(book, AddressBook)
    book.pin(endpoint.places[0].name, "web-2")
    world.declare(WEB)
    target = "/metadata/instance/compute/name?api-version=2021-05-01&format=text"
    with (
        endpoint,
        endpoint.guest(STRANGER) as pinned,
        endpoint.guest(STRANGER, listener=1) as not_pinned,
    ):
        name = pinned.ask(f"GET {target} HTTP/1.1\r\n{HEAD}\r\n".encode())
        nobody = not_pinned.ask(get())

    assert (name.body, nobody.status) == (b"web-2", 403)


def test_an_ipv6_listener_has_its_name_in_brackets() -> None:
    assert listeners.spell("::1", 80) == "[::1]:80"


def test_a_port_in_use_is_named() -> None:
    (taken,) = listeners.bind([Listener("127.0.0.1", 0)])
    taken.socket.listen()

    with pytest.raises(Unavailable, match=rf"{taken.name}: another process"):
        listeners.bind([Listener("127.0.0.1", 0), Listener("127.0.0.1", taken.port)])
    taken.socket.close()


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("192.0.2.1", 8080, "192.0.2.1:8080: no interface"),
        ("localhost", 8080, "IP address"),
        ("127.0.0.1", 70000, "65535"),
        ("127.0.0.1", -1, "65535"),
    ],
)
def test_an_address_that_cannot_be_had_is_explained(host: str, port: int, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        listeners.bind([Listener(host, port)])


def test_a_server_takes_its_addresses_and_gives_them_back(world: World) -> None:
    server = MetadataServer(
        world.desk,
        world.parts.identities,
        world.parts.board,
        limits=Limits(),
        counters=Counters(),
        clock=world.clock,
        subscription_id="",
        log=logging.getLogger(__name__),
    )

    async def start_and_stop() -> tuple[Bound, ...]:
        bound = listeners.bind([Listener("127.0.0.1", 0)])
        await server.serve(bound)
        with pytest.raises(Unavailable):
            listeners.bind([Listener("127.0.0.1", bound[0].port)])
        await server.stop(timedelta(seconds=1))
        return bound

    (place,) = asyncio.run(start_and_stop())
    (again,) = listeners.bind([Listener("127.0.0.1", place.port)])
    again.socket.close()


def test_a_door_is_opened_and_closed_while_others_are_open(world: World) -> None:
    (place,) = listeners.bind([Listener("127.0.0.1", 0)])
    with Endpoint(world) as endpoint:
        door = endpoint.do(lambda: endpoint.server.open(place))
        with Guest(place, WEB_0) as guest:
            assert guest.ask(get()).status == 200

        endpoint.do(door.close)

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((place.host, place.port), 10)
        with endpoint.guest(WEB_0) as guest:
            assert guest.ask(get()).status == 200


# -- enabling ----------------------------------------------------------------------------------


def world_of_one(enabling: Enabling) -> tuple[World, FaultyStore]:
    """One machine, and a store that fails when told to."""
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    machine = replace(WEB.machines[0], addresses=(WEB_0,))
    scope = replace(WEB, machines=(machine,), enabling=enabling)
    return World(scope, clock=clock, store=store), store


def enablings(world: World) -> int:
    return sum(entry.what is What.ENABLED for entry in world.journal())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.mark.parametrize(
    "request_", [get(), get("If-None-Match: *"), get("If-None-Match: *", more="&wait=1")]
)
def test_the_first_answer_comes_after_enabling(
    world: World, endpoint: Endpoint, request_: bytes
) -> None:
    """Keeps S13: 304 and long polls count."""
    with endpoint.guest(LONER) as guest:
        guest.ask(request_)

        assert enablings(world) == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(more="&wait=x"), 400),
        (get("X-Forwarded-For: 10.0.0.1"), 400),
        (f"GET /metadata/instance?api-version=2021-02-01 HTTP/1.1\r\n{HEAD}\r\n".encode(), 200),
        (f"GET /metadata/versions HTTP/1.1\r\n{HEAD}\r\n".encode(), 200),
    ],
)
def test_nothing_else_enables(
    world: World, endpoint: Endpoint, request_: bytes, status: int
) -> None:
    """Keeps S13."""
    with endpoint.guest(LONER) as guest:
        assert guest.ask(request_).status == status

    assert enablings(world) == 0


def test_many_first_requests_enable_once() -> None:
    """Keeps S13: all of them are answered once the scope is enabled, and none before."""
    world, store = world_of_one(Enabling.ON_REQUEST)
    may_go_on = threading.Event()
    store.overtake(lambda: may_go_on.wait(5))
    with Endpoint(world) as endpoint:
        guests = [endpoint.guest(WEB_0) for _ in range(20)]
        for guest in guests:
            guest.send(get())
        assert guests[0].is_silent_for(timedelta(milliseconds=100))
        may_go_on.set()
        statuses = {guest.receive().status for guest in guests}
        for guest in guests:
            guest.close()

    assert statuses == {200}
    assert enablings(world) == 1


def test_a_request_too_soon_for_a_mark_is_heard_all_the_same(
    world: World, endpoint: Endpoint
) -> None:
    """Keeps S13: a day of silence begins with the last request."""
    half_an_hour = timedelta(minutes=30)
    posting = world.parts.board.posting
    with endpoint.guest(LONER) as guest:
        guest.ask(get())
        guest.ask(get())
        world.advance(half_an_hour)
        date = (NOON + half_an_hour).strftime("%H:%M")
        # Answers are dated anew every now and then, and what is heard goes by that clock.
        wait_until(lambda: date in guest.ask(get()).headers["date"])

    world.advance(timedelta(hours=24) - timedelta(minutes=1))
    before = posting(scope_id("default", "loner"))
    world.advance(timedelta(minutes=2))
    after = posting(scope_id("default", "loner"))

    assert before is not None
    assert after is not None
    assert (before.is_enabled, after.is_enabled) == (True, False)


def test_an_enabled_scope_is_read_without_the_store() -> None:
    """Keeps S7: what is known is answered, whatever became of the store."""
    world, store = world_of_one(Enabling.ON_REQUEST)
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        store.is_away = True
        not_enabled = guest.ask(get())
        store.is_away = False
        enabled = guest.ask(get())
        asked = len(store.asked)
        world.clock.advance(timedelta(hours=2))
        store.is_away = True
        later = guest.ask(get())
        # The endpoint looks at the clock now and then.
        wait_until(lambda: guest.ask(get()).status == 200 and endpoint.counters.attend_failures > 1)
        store.is_away = False
        again = guest.ask(get())
        wait_until(lambda: guest.ask(get()).status == 200 and len(store.asked) == asked + 1)

    assert {r.status for r in (not_enabled, enabled, later, again)} == {200}
    assert enablings(world) == 1


class SlowToTell(StoreDoor):
    """A store whose next commit takes effect, and is told of only when the test says so."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.next: threading.Event | None = None

    def commit(
        self,
        commit_id: CommitId,
        writes: Sequence[Write],
        journal: Sequence[bytes],
        lease: Lease | None = None,
    ) -> Mapping[str, int]:
        told, self.next = self.next, None
        versions = super().commit(commit_id, writes, journal, lease)
        if told is not None:
            assert told.wait(10), "the test never said so"
        return versions


def test_a_mark_of_days_ago_enables_nobody() -> None:
    """Keeps S13: whoever asks while an old mark is being made is answered after enabling, too."""
    clock = SimulatedClock(NOON)
    store = SlowToTell(MemoryStore(clock))
    machine = replace(WEB.machines[0], addresses=(WEB_0,))
    scope = replace(WEB, machines=(machine,), enabling=Enabling.ON_REQUEST)
    world = World(scope, clock=clock, store=store)
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as one, endpoint.guest(WEB_0) as other:
        one.ask(get())
        clock.advance(timedelta(hours=2))
        told = store.next = threading.Event()
        wait_until(lambda: one.ask(get()).status == 200 and store.next is None)
        world.advance(timedelta(hours=25))
        was_enabled = world.desk.books.load(scope.id).is_enabled
        other.send(get())
        assert other.is_silent_for(timedelta(milliseconds=50))
        told.set()
        answer = other.receive()
        is_enabled = world.desk.books.load(scope.id).is_enabled

    assert (was_enabled, answer.status, is_enabled) == (False, 200, True)
    assert enablings(world) == 2


def test_an_approval_without_the_store_is_never_a_200() -> None:
    """Keeps S16."""
    world, store = world_of_one(Enabling.ALWAYS)
    event = world.announce(EventType.REBOOT, "web-0")
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        store.is_away = True
        away = guest.ask(post(event.id))
        store.is_away = False
        back = guest.ask(post(event.id))

    assert (away.status, back.status) == (503, 200)
    assert endpoint.counters.approvals == 1


def fail() -> None:
    raise ZeroDivisionError


def test_a_bug_while_approving_is_no_200() -> None:
    """Keeps S16."""
    world, store = world_of_one(Enabling.ALWAYS)
    event = world.announce(EventType.REBOOT, "web-0")
    store.overtake(fail)
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(post(event.id)).status == 500
        assert guest.ask(post(event.id)).status == 200


def test_an_unknown_event_is_refused(endpoint: Endpoint) -> None:
    with endpoint.guest(WEB_0) as guest:
        response = guest.ask(post("00000000-0000-0000-0000-000000000000"))

    assert response.status == 400
    assert b"nothing was approved" in response.body


def test_a_lenient_endpoint_takes_approvals_without_the_header(world: World) -> None:
    event = world.announce(EventType.REBOOT, "web-1")
    bare = post(event.id).replace(b"Metadata: true\r\n", b"")
    lenient = Manners(lenient_post=True)
    with Endpoint(world, manners=lenient) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(bare).status == 200
    with Endpoint(world) as endpoint, endpoint.guest(WEB_0) as guest:
        assert guest.ask(bare).status == 400


def test_a_scope_without_posting_is_our_fault_and_costs_one_answer(world: World) -> None:
    ghost = replace(
        WEB,
        name="ghost",
        machines=(replace(WEB.machines[0], addresses=(STRANGER,)),),
    )
    world.parts.identities.enroll(ghost)
    with Endpoint(world) as endpoint, endpoint.guest(STRANGER) as guest:
        assert guest.ask(get()).status == 500
        with endpoint.guest(WEB_0) as other:
            assert other.ask(get()).status == 200
    assert world.parts.board.posting(scope_id("rg1", "ghost")) is None
