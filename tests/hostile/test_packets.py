"""Where a packet ends means nothing."""

from __future__ import annotations

import pytest

from forewarn.core.events import EventType
from forewarn.testing.endpoints import Endpoint
from forewarn.testing.hostility import HOST, METADATA, TARGET, Exchange, get, post, start_requests
from forewarn.testing.rudeness import Role, Stage, play
from forewarn.testing.sieges import ADDRESSES, PATIENCE_SECONDS, RUDE
from forewarn.testing.worlds import World

POST = b"POST " + TARGET + b" HTTP/1.1\r\n" + HOST + METADATA
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def requests(event_id: str) -> dict[str, tuple[bytes, list[int]]]:
    body = start_requests(event_id)
    in_chunks = b"5;a=b\r\n%b\r\n%x\r\n%b\r\n0\r\nX: y\r\n\r\n" % (
        body[:5],
        len(body) - 5,
        body[5:],
    )
    return {
        "pipelined": (get() + post(body) + get(), [200, 200, 200]),
        "chunked": (CHUNKED + in_chunks + get(), [200, 200]),
        "bare line feeds": (get().replace(b"\r\n", b"\n") + get(), [200, 200]),
        "broken": (get() + POST + b"Content-Length: +5\r\n\r\nhello", [200, 400]),
    }


@pytest.mark.parametrize("kind", ["pipelined", "chunked", "bare line feeds", "broken"])
def test_a_request_may_be_cut_anywhere(world: World, endpoint: Endpoint, kind: str) -> None:
    event = world.announce(EventType.REBOOT, RUDE.machines[0].name)
    sent, statuses = requests(event.id)[kind]
    place = endpoint.places[0]
    stage = Stage((place.host, place.port), PATIENCE_SECONDS)
    cast = [
        (
            Exchange(kind, (sent[:at], sent[at:]), pause_seconds=0.005),
            Role(ADDRESSES[at % len(ADDRESSES)]),
        )
        for at in range(1, len(sent))
    ]

    for outcome in play(stage, cast):
        assert outcome.verdict() is None, outcome.exchange
        assert [answer.status for answer in outcome.answers] == statuses, outcome.exchange
    assert world.event(event.id).approval is not None or kind in ("bare line feeds", "broken")


def test_whoever_asks_for_leave_is_refused_wherever_it_is_cut(endpoint: Endpoint) -> None:
    """At the head, for what it asks for; or for the body that is none, if that came along."""
    head = CHUNKED.replace(TARGET, b"/x").replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    sent = head + b"1\r\nx\r\n0\r\nbad\r\n\r\n" + get()
    place = endpoint.places[0]
    stage = Stage((place.host, place.port), PATIENCE_SECONDS)
    cast = [
        (Exchange("eager", (sent[:at], sent[at:]), pause_seconds=0.02), Role(ADDRESSES[at % 16]))
        for at in range(len(head) - 5, len(sent))
    ]

    statuses: set[int] = set()
    for outcome in play(stage, cast):
        assert outcome.verdict() is None, outcome.exchange
        (answer,) = outcome.answers
        assert answer.closes
        statuses.add(answer.status)
    assert statuses == {400, 404}
