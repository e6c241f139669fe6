"""Both clients over real sockets: before forewarn, and before what knows no more than Azure does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar

import pytest

from forewarn.client import Change, Client, Event, Kind, Pace, questions
from forewarn.client.asynchronous import AsyncClient
from forewarn.client.contact import Find
from forewarn.client.discovery import Endpoint, parse_endpoint
from forewarn.client.documents import dump_event, load_event
from forewarn.client.line import Line
from forewarn.client.messages import Failure
from forewarn.errors import Malformed, Refused, Unavailable
from forewarn.testing.plain_azure import Knowing, PlainAzure
from forewarn.testing.scheduled_events import ScheduledEvents

T = TypeVar("T")


def ms(number: float) -> timedelta:
    return timedelta(milliseconds=number)


# As usual, but for tests that have no seconds to lose.
PACE = Pace(
    every=ms(10), fresh=ms(100), wait=ms(1000), trial=ms(1000), retry_first=ms(5), retry_max=ms(20)
)


class InThreads:
    """A client whose watch is kept in a thread."""

    def __init__(
        self, url: str | Find, *, pace: Pace = PACE, known: tuple[Event, ...] = ()
    ) -> None:
        endpoint, find = (url, None) if isinstance(url, str) else (None, url)
        self.client = Client(endpoint, pace=pace, find=find)
        self.changes: list[Change] = []
        self._thread = threading.Thread(target=self._watch, args=(known,), daemon=True)

    def _watch(self, known: tuple[Event, ...]) -> None:
        for change in self.client.watch(known):
            self.changes.append(change)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "closing ends the watch"

    @property
    def trouble(self) -> str | None:
        return self.client.trouble

    def approve(self, *events: Event | str) -> None:
        self.client.approve(*events)

    def events(self, *, within: timedelta = timedelta(minutes=1)) -> tuple[Event, ...]:
        return self.client.events(within=within)

    def name(self) -> str:
        return self.client.name()


class InALoop:
    """A client whose watch is kept in an event loop."""

    def __init__(
        self, url: str | Find, *, pace: Pace = PACE, known: tuple[Event, ...] = ()
    ) -> None:
        endpoint, find = (url, None) if isinstance(url, str) else (None, url)
        self.client = AsyncClient(endpoint, pace=pace, find=find)
        self.changes: list[Change] = []
        self._known = known
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    async def _watch(self) -> None:
        async for change in self.client.watch(self._known):
            self.changes.append(change)

    def __enter__(self) -> Self:
        self._thread.start()
        self._watching = asyncio.run_coroutine_threadsafe(self._watch(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._watching.cancel()
        self._run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        assert not self._thread.is_alive()
        self._loop.close()

    def _run(self, errand: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(errand, self._loop).result(timeout=30)

    @property
    def trouble(self) -> str | None:
        return self.client.trouble

    def approve(self, *events: Event | str) -> None:
        self._run(self.client.approve(*events))

    def events(self, *, within: timedelta = timedelta(minutes=1)) -> tuple[Event, ...]:
        return self._run(self.client.events(within=within))

    def name(self) -> str:
        return self._run(self.client.name())


Watcher = InThreads | InALoop
Making = type[InThreads] | type[InALoop]


@pytest.fixture(params=[InThreads, InALoop])
def making(request: pytest.FixtureRequest) -> Making:
    made: Making = request.param
    return made


@pytest.fixture(params=[None, *Knowing], ids=lambda one: "forewarn" if one is None else one.name)
def url(request: pytest.FixtureRequest, scheduled_events: ScheduledEvents) -> Iterator[str]:
    """The address of the first VM, with and without what forewarn adds to Azure's protocol."""
    with ExitStack() as stack:
        if request.param is None:
            yield scheduled_events.url
        else:
            yield stack.enter_context(PlainAzure(scheduled_events.url, request.param)).url


def told(watcher: Watcher) -> list[tuple[Kind, str]]:
    return [(change.kind, change.event.type) for change in watcher.changes]


@contextmanager
def at_rest(
    making: Making, url: str, scheduled_events: ScheduledEvents, pace: Pace = PACE
) -> Iterator[Watcher]:
    """A watcher that has read the document, and waits for the next."""
    with making(url, pace=pace) as watcher:
        scheduled_events.wait_until(
            lambda: any(r.route == "scheduledevents" for r in scheduled_events.requests)
        )
        yield watcher


def test_a_reboot_is_told_from_its_announcement_to_its_end(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    with at_rest(making, url, scheduled_events) as watcher:
        event = scheduled_events.reboot("web-0")
        scheduled_events.wait_until(lambda: len(watcher.changes) == 1)
        watcher.approve(watcher.changes[0].event)
        assert event.approved_by == "web-0"
        assert event.started
        scheduled_events.wait_until(lambda: len(watcher.changes) == 2)
        scheduled_events.advance_to_next()
        scheduled_events.wait_until(lambda: len(watcher.changes) == 3)

    assert [kind for kind, _ in told(watcher)] == [Kind.ANNOUNCED, Kind.STARTED, Kind.GONE]
    assert {change.event.id for change in watcher.changes} == {event.id}
    assert all(change.concerns_me for change in watcher.changes)
    assert watcher.changes[0].event.not_before == event.not_before.replace(microsecond=0)


def test_what_is_there_already_is_told_first(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    scheduled_events.hardware_failure("web-0")

    with making(url) as watcher:
        scheduled_events.wait_until(lambda: watcher.changes)

    assert told(watcher) == [(Kind.STARTED, "Reboot")]


@pytest.mark.scheduled_events(availability_sets=["web:2"])
def test_a_neighbors_event_does_not_concern_me(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    """Keeps S22: a VM checks that it is in Resources."""
    with making(scheduled_events.url_of("web-1")) as watcher:
        scheduled_events.reboot("web-0")
        scheduled_events.freeze("web-1")
        scheduled_events.wait_until(lambda: len(watcher.changes) == 2)
        assert watcher.name() == "web-1"

    assert {(c.event.type, c.concerns_me) for c in watcher.changes} == {
        ("Reboot", False),
        ("Freeze", True),
    }


def test_who_comes_back_is_told_what_happened_meanwhile(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    first, second = scheduled_events.reboot("web-0"), scheduled_events.freeze("web-0")
    with making(url) as before:
        scheduled_events.wait_until(lambda: len(before.changes) == 2)
    kept = tuple(load_event(dump_event(change.event)) for change in before.changes)
    scheduled_events.cancel(first)

    with making(url, known=kept) as watcher:
        scheduled_events.wait_until(lambda: watcher.changes)
        assert [event.id for event in watcher.events()] == [second.id]

    assert [(c.kind, c.event.id) for c in watcher.changes] == [(Kind.GONE, first.id)]


@pytest.mark.parametrize("kind", ["429", "410", "500", "503", "empty", "truncated", "reset"])
def test_a_bad_answer_is_asked_for_again_and_nothing_is_made_up(
    making: Making, url: str, scheduled_events: ScheduledEvents, kind: str
) -> None:
    event = scheduled_events.reboot("web-0")
    with making(url) as watcher:
        scheduled_events.wait_until(lambda: watcher.changes)
        scheduled_events.faults.add(kind)
        scheduled_events.wait_until(lambda: watcher.trouble)
        scheduled_events.freeze("web-0")
        assert told(watcher) == [(Kind.ANNOUNCED, "Reboot")]
        scheduled_events.faults.clear()
        scheduled_events.wait_until(lambda: len(watcher.changes) == 2)
        assert watcher.trouble is None
        assert event.status == "Scheduled"

    assert told(watcher) == [(Kind.ANNOUNCED, "Reboot"), (Kind.ANNOUNCED, "Freeze")]


@pytest.mark.parametrize("kind", ["429", "410", "500", "503", "truncated", "reset", "empty"])
def test_an_approval_is_given_through_every_fault(
    making: Making, url: str, scheduled_events: ScheduledEvents, kind: str
) -> None:
    event = scheduled_events.reboot("web-0")
    with making(url) as watcher:
        scheduled_events.wait_until(lambda: watcher.changes)
        scheduled_events.faults.add(kind, times=3)

        watcher.approve(event.id)

        assert event.approved_by == "web-0"
        assert event.started


def test_the_slow_first_answer_is_waited_for(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    """Azure may take two minutes to enable events."""
    scheduled_events.faults.add("slow-first")
    scheduled_events.redeploy("web-0", notice=timedelta(days=365))
    pace = Pace(answer=ms(20), every=ms(10))
    with making(url, pace=pace) as watcher:
        scheduled_events.advance(seconds=10)
        assert not watcher.changes
        assert watcher.trouble is None
        scheduled_events.wait_until(lambda: _advanced(scheduled_events, watcher))

    assert told(watcher) == [(Kind.ANNOUNCED, "Redeploy")]


def _advanced(scheduled_events: ScheduledEvents, watcher: Watcher) -> bool:
    # Whether the question has arrived is not known from outside; time passes until it was answered.
    scheduled_events.advance(seconds=10)
    return bool(watcher.changes)


def test_an_answer_that_is_too_slow_is_given_up_on_and_asked_for_again(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    pace = Pace(answer=ms(50), every=ms(10), retry_first=ms(5), wait=ms(0), first_answer=ms(100))
    with at_rest(making, scheduled_events.url, scheduled_events, pace=pace) as watcher:
        scheduled_events.wait_until(lambda: watcher.trouble is None)
        fault = scheduled_events.faults.add("slow")
        scheduled_events.wait_until(lambda: watcher.trouble)
        assert watcher.trouble == "did not answer in time"
        scheduled_events.faults.remove(fault)
        scheduled_events.freeze("web-0")
        scheduled_events.wait_until(lambda: watcher.changes)

    assert told(watcher) == [(Kind.ANNOUNCED, "Freeze")]


def test_an_incarnation_that_begins_anew_hides_nothing(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    with at_rest(making, url, scheduled_events) as watcher:
        scheduled_events.reboot("web-0")
        scheduled_events.wait_until(lambda: len(watcher.changes) == 1)
        scheduled_events.faults.add("incarnation-restart")
        scheduled_events.freeze("web-0")
        scheduled_events.wait_until(lambda: len(watcher.changes) == 2)

    assert told(watcher) == [(Kind.ANNOUNCED, "Reboot"), (Kind.ANNOUNCED, "Freeze")]


def test_the_client_waits_at_a_server_that_can(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    """Keeps N4, the client's half."""
    pace = Pace(trial=timedelta(seconds=1), wait=timedelta(seconds=300), fresh=timedelta(hours=1))
    with at_rest(making, scheduled_events.url, scheduled_events, pace=pace) as watcher:
        # The name, the document, and the trial that ended without news.
        scheduled_events.wait_until(lambda: len(scheduled_events.requests) == 3)
        scheduled_events.freeze("web-0")
        scheduled_events.wait_until(lambda: watcher.changes)
        scheduled_events.reboot("web-0")
        scheduled_events.wait_until(lambda: len(watcher.changes) == 2)

        assert [request.status for request in scheduled_events.requests] == [
            200,
            200,
            304,
            200,
            200,
        ]


def test_a_server_that_cannot_wait_is_tried_once(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    with PlainAzure(scheduled_events.url) as azure, making(azure.url) as watcher:
        scheduled_events.wait_until(lambda: len(azure.heads) > 20)
        assert not watcher.changes

        waited = [b"&wait=" in head for head in azure.heads]
        assert waited.count(True) == 1
        assert any(b"If-None-Match" in head for head in azure.heads[3:])


@pytest.mark.scheduled_events(vms=["web-0", "db-0"])
def test_what_is_refused_is_said(
    making: Making, url: str, scheduled_events: ScheduledEvents
) -> None:
    other = scheduled_events.reboot("db-0")
    with making(url) as watcher:
        with pytest.raises(Refused, match="answered 400"):
            watcher.approve(other.id)
        with pytest.raises(Malformed):
            watcher.approve()


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_nobody_there_is_unavailable_and_a_watch_goes_on(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    with making(closed_port()) as watcher:
        scheduled_events.wait_until(lambda: watcher.trouble)
        with pytest.raises(Unavailable, match="cannot be reached"):
            watcher.events(within=ms(30))

    assert not watcher.changes


def test_places_are_tried_until_one_of_them_answers(
    making: Making, scheduled_events: ScheduledEvents
) -> None:
    """Keeps S2, the client's half: where Azure's address is out of reach, a lease names another."""
    away, there = parse_endpoint(closed_port()), parse_endpoint(scheduled_events.url)
    leases: list[Endpoint] = []
    scheduled_events.reboot("web-0")
    with making(lambda: (away, *leases)) as watcher:
        scheduled_events.wait_until(lambda: watcher.trouble)
        leases.append(there)
        scheduled_events.wait_until(lambda: watcher.changes)
        assert watcher.client.endpoint == scheduled_events.url

    assert told(watcher) == [(Kind.ANNOUNCED, "Reboot")]


def test_a_kept_connection_that_was_closed_is_no_trouble(making: Making) -> None:
    """Servers close connections that idle; whoever finds one closed asks again on another."""
    answered = threading.Semaphore(0)
    with closing_server(answered) as url, making(url) as watcher:
        for _ in range(5):
            assert answered.acquire(timeout=10)
        assert watcher.trouble is None


@contextmanager
def closing_server(answered: threading.Semaphore, headers: bytes = b"") -> Iterator[str]:
    """A server that closes each connection after its answer, whether or not it says so."""
    body = b'{"DocumentIncarnation":1,"Events":[],"compute":{"name":"web-0"}}'
    head = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (headers, len(body))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(4096):
                        connection.sendall(head + body)
                        answered.release()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)


def test_a_server_that_says_that_it_hangs_up_is_called_again(making: Making) -> None:
    answered = threading.Semaphore(0)
    with (
        closing_server(answered, b"Connection: close\r\n") as url,
        making(url) as watcher,
    ):
        for _ in range(5):
            assert answered.acquire(timeout=10)
        assert watcher.trouble is None


def test_no_time_is_no_answer(scheduled_events: ScheduledEvents) -> None:
    endpoint = parse_endpoint(scheduled_events.url)

    with Line() as line:
        outcome = line.exchange(endpoint, questions.DOCUMENT, connect=ms(1000), patience=ms(0))

    assert isinstance(outcome, Failure)


def test_a_vm_may_ask_who_it_is(scheduled_events: ScheduledEvents) -> None:
    with Client(scheduled_events.url) as client:
        assert client.name() == client.name() == "web-0"
    assert asyncio.run(AsyncClient(scheduled_events.url).name()) == "web-0"
    assert Client(closed_port(), name="db-0").name() == "db-0"

    assert [request.route for request in scheduled_events.requests] == ["instance", "instance"]


def test_closing_ends_whoever_waits(scheduled_events: ScheduledEvents) -> None:
    client = Client(scheduled_events.url, pace=PACE)
    scheduled_events.faults.add("slow")
    ended: list[object] = []

    def ask(errand: Callable[[], object]) -> None:
        try:
            ended.append(errand())
        except Unavailable as error:
            ended.append(error)

    threads = [
        threading.Thread(target=ask, args=(errand,), daemon=True)
        for errand in (client.events, lambda: list(client.watch()))
    ]
    for thread in threads:
        thread.start()
    client.close()
    for thread in threads:
        thread.join(timeout=10)

    assert len(ended) == 2
    assert client.endpoint == scheduled_events.url


def test_an_approval_on_its_way_is_heard_out(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot("web-0")
    scheduled_events.faults.add("slow", delay=1, times=1)
    client = Client(scheduled_events.url, pace=PACE)
    ended: list[str] = []

    def approve() -> None:
        client.approve(event.id)
        ended.append("approved")

    thread = threading.Thread(target=approve, daemon=True)
    thread.start()
    # Once it has struck, the request is there.
    scheduled_events.wait_until(lambda: not scheduled_events.faults.in_force)
    client.close()
    scheduled_events.advance(seconds=1)
    thread.join(timeout=10)

    assert ended == ["approved"]


def test_a_watch_in_a_loop_may_be_left(scheduled_events: ScheduledEvents) -> None:
    scheduled_events.reboot("web-0")

    async def first() -> Change:
        client = AsyncClient(scheduled_events.url, pace=PACE)
        assert client.endpoint == scheduled_events.url
        async for change in client.watch():
            return change
        raise AssertionError("a watch does not end by itself")

    assert asyncio.run(first()).kind is Kind.ANNOUNCED


def test_a_whole_document_is_shown_once_it_was_read_and_when_it_is_another(
    scheduled_events: ScheduledEvents,
) -> None:
    with Client(scheduled_events.url, pace=PACE) as client:
        assert client.known_name is None
        documents = client.documents()
        empty = next(documents)
        event = scheduled_events.reboot("web-0")
        announced = next(documents)

    assert empty.events == ()
    assert [one.id for one in announced.events] == [event.id]
    assert announced.incarnation > empty.incarnation
    assert client.known_name == "web-0"
    assert next(documents, None) is None


def test_in_a_loop_a_whole_document_is_shown_as_well(scheduled_events: ScheduledEvents) -> None:
    async def shown() -> list[int]:
        counts: list[int] = []
        async for document in AsyncClient(scheduled_events.url, pace=PACE).documents():
            counts.append(len(document.events))
            if counts == [0]:
                scheduled_events.reboot("web-0")
            else:
                break
        return counts

    assert asyncio.run(shown()) == [0, 1]
