"""A service that may open few files, and crowds that open many connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.end_to_end.test_stories import ALONE, BATCH, FLEET, ROLE, WEB, journal, wait_for

from forewarn.testing.processes import PATH, ServiceProcess

pytestmark = pytest.mark.end_to_end

# Enough for what is always open, and for some sixty guests.
DESCRIPTORS = 192


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    inside = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
    with ServiceProcess(tmp_path / "data", FLEET, inside=inside) as running:
        yield running


def crowd(base: str, sources: tuple[str, ...], count: int, stack: ExitStack) -> None:
    """Connections that are opened and kept, as far as anybody lets them."""
    place = urlsplit(base)
    assert place.hostname is not None
    assert place.port is not None
    for number in range(count):
        source = sources[number % len(sources)]
        address = (place.hostname, place.port)
        stack.enter_context(socket.create_connection(address, 10, (source, 0)))


def is_answered(service: ServiceProcess, source: str) -> bool:
    try:
        return service.get(source).status == 200
    except (ConnectionError, TimeoutError):
        return False


def test_guests_beyond_the_last_descriptor_are_refused_and_the_rest_served(
    service: ServiceProcess,
) -> None:
    """Keeps S16: whoever is connected goes on; when the crowd is gone, everybody is served."""
    (event,) = service.announce("Freeze", "web-0", "--duration", "1s")
    place = urlsplit(service.metadata[0])
    with ExitStack() as stack:
        early = stack.enter_context(
            socket.create_connection((place.hostname, place.port), 10, (WEB[1], 0))
        )
        crowd(service.metadata[0], (BATCH, ROLE, ALONE), 400, stack)

        early.sendall(
            f"GET {PATH}?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\r\n".encode()
        )
        assert early.recv(65536).startswith(b"HTTP/1.1 200")
        # What operators need is kept free, and a commit needs no descriptor.
        assert service.ask("GET", "/readyz").status == 200
        assert service.run("approve", event["event_id"]).returncode == 0
        wait_for(lambda: journal(service, event["event_id"])[-1] == "completed")

    wait_for(lambda: is_answered(service, WEB[0]), seconds=10)
    assert service.is_running
    assert "Traceback" not in service.log.read_text()


def test_operators_that_take_every_descriptor_do_not_kill_the_service(
    service: ServiceProcess,
) -> None:
    """Keeps S7: a guest that is connected is served; nothing crashes; it recovers by itself."""
    (event,) = service.announce("Freeze", "web-0", "--duration", "1s")
    place = urlsplit(service.metadata[0])
    with ExitStack() as stack:
        early = stack.enter_context(
            socket.create_connection((place.hostname, place.port), 10, (WEB[1], 0))
        )
        crowd(service.control, ("127.0.0.1",), 300, stack)

        for _ in range(3):
            early.sendall(
                f"GET {PATH}?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\r\n".encode()
            )
            assert early.recv(65536).startswith(b"HTTP/1.1 200")
        assert service.is_running

    wait_for(lambda: is_answered(service, WEB[0]), seconds=10)
    assert service.approve(WEB[0], event["event_id"]).status == 200
    wait_for(lambda: journal(service, event["event_id"])[-1] == "completed")
    assert "Traceback" not in service.log.read_text()
