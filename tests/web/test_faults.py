"""What goes wrong on purpose: the list of faults, and each of them as a guest feels it on its socket."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from forewarn.core.events import EventType
from forewarn.errors import Malformed, Refused, Unknown
from forewarn.testing.endpoints import Endpoint, Guest
from forewarn.testing.worlds import World
from forewarn.web import faults as faults_module
from forewarn.web.faults import DELAYS, Fault, FaultKind, Faults, Happening

WEB_0, WEB_1 = "127.0.1.10", "127.0.1.11"
HEAD = "Host: 169.254.169.254\r\nMetadata: true\r\n"
A_MOMENT = timedelta(milliseconds=100)
PATH = "/metadata/scheduledevents?api-version=2020-07-01"
GET = f"GET {PATH} HTTP/1.1\r\n{HEAD}\r\n".encode()
INSTANCE = f"GET /metadata/versions HTTP/1.1\r\n{HEAD}\r\n".encode()


def post(event_id: str) -> bytes:
    body = json.dumps({"StartRequests": [{"EventId": event_id}]})
    return f"POST {PATH} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def poll(wait: int, tag: int) -> bytes:
    condition = f'If-None-Match: "{tag}"\r\n'
    return f"GET {PATH}&wait={wait} HTTP/1.1\r\n{HEAD}{condition}\r\n".encode()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def faults(world: World) -> Faults:
    """By a clock that stands still until it is advanced."""
    return Faults(world.clock, speed=0)


@pytest.fixture
def endpoint(world: World, faults: Faults) -> Iterator[Endpoint]:
    with Endpoint(world, faults=faults) as endpoint:
        yield endpoint


@pytest.fixture
def guest(endpoint: Endpoint) -> Iterator[Guest]:
    with endpoint.guest(WEB_0) as guest:
        yield guest


# -- the list ----------------------------------------------------------------------------------


def test_a_fault_stays_until_it_is_removed(faults: Faults) -> None:
    one = faults.add(FaultKind.THROTTLED)
    other = faults.add("empty", machine="web-0")

    assert list(faults.in_force) == [one, other]
    assert [fault.id for fault in faults.in_force] == ["1", "2"]
    faults.remove("1")
    assert list(faults.in_force) == [other]
    faults.clear()
    assert list(faults.in_force) == []
    with pytest.raises(Unknown, match="no fault 2 is in force"):
        faults.remove("2")


def test_a_fault_ends_after_its_time_on_the_emulated_clock(world: World, faults: Faults) -> None:
    fault = faults.add("503", lasts=timedelta(minutes=1))

    assert fault.until == world.clock.now() + timedelta(minutes=1)
    world.clock.advance(timedelta(seconds=59))
    assert faults.strike([FaultKind.AWAY], "rg1/web", ["web-0"]) == fault
    world.clock.advance(timedelta(seconds=1))
    assert faults.strike([FaultKind.AWAY], "rg1/web", ["web-0"]) is None
    assert faults.in_force == ()


@pytest.mark.parametrize(
    ("named", "is_meant"),
    [(None, True), ("web-0", True), ("WEB-0", True), ("rg1/web/web-0", True), ("web-1", False), ("rg2/web/web-0", False)],
)  # fmt: skip
def test_a_fault_is_for_one_machine_or_for_all(named: str | None, is_meant: bool) -> None:  # noqa: FBT001
    fault = Fault(id="1", kind=FaultKind.GONE, machine=named)

    assert fault.concerns("rg1/web", ["web-0"]) is is_meant


def test_all_that_happens_to_a_fault_is_told(faults: Faults) -> None:
    told: list[tuple[Happening, str, int | None]] = []
    faults.watch(lambda happening, fault, whom: told.append((happening, whom, fault.times)))

    faults.add("429", times=2)
    for machine in ("web-0", "web-1", "web-2"):
        faults.strike([FaultKind.THROTTLED], "rg1/web", [machine])

    assert told == [
        (Happening.BEGAN, "", 2),
        (Happening.STRUCK, "web-0", 1),
        (Happening.STRUCK, "web-1", 0),
        (Happening.ENDED, "", 0),
    ]


@pytest.mark.parametrize(
    ("add", "complaint"),
    [
        (lambda faults: faults.add("418"), "no fault '418': give one of 429, 410"),
        (lambda faults: faults.add("429", times=0), "give 1 or more"),
        (lambda faults: faults.add("429", lasts=timedelta()), "more than 0"),
        (lambda faults: faults.add("429", delay=timedelta(1)), "delays nothing"),
        (lambda faults: faults.add("slow", delay=timedelta(-1)), "not negative"),
        (lambda faults: faults.add("incarnation-restart", times=1), "leave times out"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    faults: Faults, add: Callable[[Faults], Fault], complaint: str
) -> None:
    with pytest.raises(Malformed, match=complaint):
        add(faults)


def test_faults_are_not_piled_up_without_end(faults: Faults) -> None:
    for _ in range(faults_module.FAULTS_MAX):
        faults.add("429")

    with pytest.raises(Refused, match="clear some first"):
        faults.add("429")


def test_delays_are_azure_s_unless_told_otherwise(faults: Faults) -> None:
    assert faults.add("slow-first").delay == timedelta(minutes=2)
    assert faults.add("slow").delay == DELAYS[FaultKind.SLOW]
    assert faults.add("slow", delay=timedelta(seconds=3)).delay == timedelta(seconds=3)


# -- on the socket -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 410, 500, 503])
def test_a_refusing_fault_answers_in_azure_s_form_as_often_as_told(
    faults: Faults, guest: Guest, status: int
) -> None:
    faults.add(str(status), times=2)

    replies = [guest.ask(GET) for _ in range(3)]

    assert [reply.status for reply in replies] == [status, status, 200]
    assert list(json.loads(replies[0].body)) == ["error"]
    assert replies[0].headers["server"].startswith("IMDS/")
    assert replies[0].headers["content-type"] == "application/json; charset=utf-8"


def test_an_approval_that_was_refused_was_not_given(
    world: World, faults: Faults, guest: Guest
) -> None:
    event = world.announce(EventType.REBOOT, "web-0")
    faults.add("500", times=1)

    assert guest.ask(post(event.id)).status == 500
    assert world.event(event.id).approval is None
    assert guest.ask(post(event.id)).status == 200
    assert world.event(event.id).approval is not None


def test_a_fault_strikes_the_one_vm_that_is_meant(
    faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    faults.add("410", machine="web-0")

    with endpoint.guest(WEB_1) as other:
        assert other.ask(GET).status == 200
    assert [guest.ask(GET).status, guest.ask(INSTANCE).status] == [410, 410]


def test_an_empty_answer_is_a_200_without_a_body(faults: Faults, guest: Guest) -> None:
    faults.add("empty", times=1)

    reply = guest.ask(GET)

    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert guest.ask(GET).body


def test_a_truncated_answer_breaks_off(faults: Faults, endpoint: Endpoint, guest: Guest) -> None:
    faults.add("truncated", times=1)

    with pytest.raises(ConnectionAbortedError, match="DocumentInc"):
        guest.ask(GET)
    with endpoint.guest(WEB_0) as again:
        assert json.loads(again.ask(GET).body)["Events"] == []


def test_an_approval_has_no_body_to_spoil(world: World, faults: Faults, guest: Guest) -> None:
    event = world.announce(EventType.REBOOT, "web-0")
    faults.add("truncated", times=1)
    faults.add("empty", times=1)

    assert guest.ask(post(event.id)).status == 200
    assert len(faults.in_force) == 2


def test_a_reset_is_a_reset_and_the_approval_was_given(
    world: World, faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    event = world.announce(EventType.REBOOT, "web-0")
    faults.add("reset", times=2)

    with pytest.raises(ConnectionResetError):
        guest.ask(post(event.id))
    with endpoint.guest(WEB_0) as again, pytest.raises(ConnectionResetError):
        again.ask(GET)

    assert world.event(event.id).approval is not None


def test_a_slow_answer_comes_when_the_emulated_clock_has_passed(
    world: World, faults: Faults, guest: Guest
) -> None:
    faults.add("slow", times=1, delay=timedelta(seconds=30))

    guest.send(GET)
    assert guest.is_silent_for(A_MOMENT)
    world.clock.advance(timedelta(seconds=29))
    assert guest.is_silent_for(A_MOMENT)
    world.clock.advance(timedelta(seconds=1))

    assert guest.receive().status == 200
    assert guest.ask(GET).status == 200


def test_a_slow_answer_takes_real_time_on_a_clock_that_goes(world: World) -> None:
    faults = Faults(world.clock)
    faults.add("slow", delay=timedelta(seconds=1))
    with Endpoint(world, faults=faults) as endpoint, endpoint.guest(WEB_0) as guest:
        guest.send(GET)

        assert guest.is_silent_for(A_MOMENT)
        assert guest.receive().status == 200


def test_the_first_answer_to_each_vm_is_slow_and_no_other(
    world: World, faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    faults.add("slow-first")
    with endpoint.guest(WEB_1) as other:
        for asking in (guest, other):
            asking.send(GET)
            assert asking.is_silent_for(A_MOMENT)

        world.clock.advance(timedelta(minutes=2))

        assert [asking.receive().status for asking in (guest, other)] == [200, 200]
        assert [asking.ask(GET).status for asking in (guest, other)] == [200, 200]


def test_a_slow_request_is_done_though_nobody_waits_for_its_answer(
    world: World, faults: Faults, endpoint: Endpoint
) -> None:
    event = world.announce(EventType.REBOOT, "web-0")
    faults.add("slow")
    with endpoint.guest(WEB_0) as guest:
        guest.send(post(event.id))
        wait_until(lambda: endpoint.counters.connections == 1)
        assert guest.is_silent_for(A_MOMENT)

    world.clock.advance(timedelta(seconds=10))

    wait_until(lambda: world.event(event.id).approval is not None)


def test_one_fault_delays_and_another_one_refuses(
    world: World, faults: Faults, guest: Guest
) -> None:
    faults.add("slow")
    faults.add("503")

    guest.send(GET)
    assert guest.is_silent_for(A_MOMENT)
    world.clock.advance(timedelta(seconds=10))

    assert guest.receive().status == 503


def test_a_server_that_stops_does_not_wait_for_delays(
    faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    faults.add("slow-first")
    guest.send(GET)
    assert guest.is_silent_for(A_MOMENT)

    endpoint.stop()

    assert guest.receive().status == 200


def test_a_server_that_stops_does_not_have_the_delayed_wait_for_news(
    faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    faults.add("slow")
    guest.send(poll(300, 1))
    assert guest.is_silent_for(A_MOMENT)

    endpoint.stop()

    assert guest.receive().status == 304


def test_a_server_that_stops_delays_nobody_any_more(
    faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    faults.add("slow", times=1)
    guest.send(GET[:20])
    wait_until(lambda: endpoint.counters.connections == 1)
    stopping = threading.Thread(target=endpoint.stop)
    stopping.start()
    wait_until(lambda: _refuses(endpoint))

    guest.send(GET[20:])

    assert guest.receive().status == 200
    stopping.join()
    assert faults.in_force


def _refuses(endpoint: Endpoint) -> bool:
    try:
        with endpoint.guest(WEB_1):
            return False
    except ConnectionRefusedError:
        return True


def test_incarnations_begin_anew_and_go_on_from_there(
    world: World, faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    """Only on the wire: nothing is written down otherwise."""
    world.announce(EventType.REBOOT, "web-0")
    before = json.loads(guest.ask(GET).body)["DocumentIncarnation"]
    assert before > 1

    faults.add("incarnation-restart", machine="web-0")
    first = guest.ask(GET)
    world.announce(EventType.FREEZE, "web-1")
    second = guest.ask(GET)

    assert json.loads(first.body)["DocumentIncarnation"] == 1
    assert first.headers["etag"] == '"1"'
    assert json.loads(second.body)["DocumentIncarnation"] == 2
    assert guest.ask(poll(0, 2)).status == 304
    # All of a scope read the same document, and others have their own.
    with endpoint.guest(WEB_1) as neighbor:
        assert neighbor.ask(GET).body == second.body
    faults.clear()
    assert json.loads(guest.ask(GET).body)["DocumentIncarnation"] == before + 1


def test_incarnations_can_begin_anew_again(world: World, faults: Faults, guest: Guest) -> None:
    seen = []
    for machine in ("web-0", "web-1"):
        world.announce(EventType.FREEZE, machine)
        faults.add("incarnation-restart")
        seen.append(json.loads(guest.ask(GET).body)["DocumentIncarnation"])

    assert seen == [1, 1]


def test_whoever_waits_hears_of_another_number(
    world: World, faults: Faults, endpoint: Endpoint, guest: Guest
) -> None:
    world.announce(EventType.REBOOT, "web-0")
    guest.send(poll(300, json.loads(guest.ask(GET).body)["DocumentIncarnation"]))
    wait_until(lambda: endpoint.counters.waiting == 1)

    faults.add("incarnation-restart")

    assert guest.receive().headers["etag"] == '"1"'


def test_a_fault_in_force_is_in_the_log(
    faults: Faults, endpoint: Endpoint, guest: Guest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    faults.add("429", machine="web-0", times=1, lasts=timedelta(minutes=1))
    guest.ask(GET)
    faults.add("slow")
    faults.clear()

    lines = [record.getMessage() for record in caplog.records if "fault" in record.getMessage()]
    assert lines[0].startswith("fault 1 began: 429, for web-0, strikes left: 1, until 20")
    assert lines[1].startswith("fault 1 struck web-0: 429")
    assert lines[2].startswith("fault 1 ended: 429")
    assert lines[3:] == [
        "fault 2 began: slow, for all VMs, by 10 s",
        "fault 2 ended: slow, for all VMs, by 10 s",
    ]
    assert endpoint.counters.answers["scheduledevents", 429] == 1


def test_strangers_are_turned_away_and_not_struck(faults: Faults, endpoint: Endpoint) -> None:
    faults.add("slow")
    faults.add("reset")
    with endpoint.guest("127.0.1.66") as stranger:
        assert stranger.ask(GET).status == 403
