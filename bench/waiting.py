"""Guests that wait: what a waiting guest costs, and how soon all of them know."""

from __future__ import annotations

import http.client
import json
import os
import resource
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from bench import callers, measuring
from bench.contenders import Service
from bench.fleets import fleet_file, machine_name
from forewarn.testing.processes import connect

ADDRESSES: Final = 1000
# Below what one caller may have.
PER_ADDRESS: Final = 50
WAIT_SECONDS: Final = 300
PATIENCE_SECONDS: Final = 60
MILLI: Final = 1e3
DESCRIPTORS: Final = 60_000
# Guests that are noticed with one look.
TOLD_AT_ONCE: Final = 256


def measure(*, guests: int, many: int, few: int, rounds: int) -> dict[str, float]:
    """The memory of `guests` (and of `many`) that wait; the time until all of them have the news."""
    _allow_descriptors()
    os.sched_setaffinity(0, {measuring.cores()[1]})
    figures: dict[str, float] = {}
    with _service() as service:
        bytes_each, seconds_each, times = _one_change(service, guests)
        figures["longpoll_kb_each"] = bytes_each / measuring.KB
        figures["longpoll_wake_us_each"] = seconds_each * measuring.MICRO
        figures[f"longpoll_first_ms_of_{guests}"] = min(times)
        figures[f"longpoll_last_ms_of_{guests}"] = max(times)
    with _service() as service:
        waves = _changes(service, few, rounds)
        spread = [moment for wave in waves for moment in wave]
        figures[f"announce_to_{few}_guests_ms_p99"] = measuring.percentile(spread, 99)
        figures[f"announce_to_{few}_guests_ms_p50"] = measuring.percentile(spread, 50)
    if many and resource.getrlimit(resource.RLIMIT_NOFILE)[0] > many + 1000:
        with _service() as service:
            bytes_each, _, times = _one_change(service, many)
            figures[f"longpoll_kb_each_of_{many}"] = bytes_each / measuring.KB
            figures[f"longpoll_last_ms_of_{many}"] = max(times)
    return figures


@contextmanager
def _service() -> Iterator[Service]:
    """All guests in one scope, so that one announcement concerns every one of them."""
    with measuring.workplace() as directory:
        fleet = fleet_file(machines=ADDRESSES, per_scope=ADDRESSES, options='enabled = "always"')
        with Service(directory / "data", fleet) as service:
            yield service


def _one_change(service: Service, guests: int) -> tuple[float, float, list[float]]:
    """The bytes that a waiting guest costs, the processor time to tell it, and when each was told."""
    with _crowd(service, 1) as warmed_up:
        _wait(service, warmed_up)
    before = measuring.resident_bytes(service.pid)
    with _crowd(service, guests) as crowd:
        _wait(service, crowd)
        each = (measuring.resident_bytes(service.pid) - before) / guests
        began = measuring.processor_seconds(service.pid)
        told = _tell(service, crowd, "/events", _reboot())
        return each, (measuring.processor_seconds(service.pid) - began) / guests, told


def _changes(service: Service, guests: int, rounds: int) -> list[list[float]]:
    with _crowd(service, guests) as crowd:
        told: list[list[float]] = []
        for _ in range(rounds):
            _wait(service, crowd)
            told.append(_tell(service, crowd, "/events", _reboot()))
        return told


def _reboot() -> dict[str, object]:
    return {"type": "Reboot", "machines": [machine_name(0)], "notice_seconds": 7200}


@contextmanager
def _crowd(service: Service, guests: int) -> Iterator[Sequence[socket.socket]]:
    server = service.contender.server
    with ExitStack() as stack:
        crowd = []
        for number in range(guests):
            source = callers.address(number // PER_ADDRESS if guests > ADDRESSES else number)
            crowd.append(stack.enter_context(callers.connect(server, source)))
        yield crowd


def _wait(service: Service, crowd: Sequence[socket.socket]) -> None:
    """Let everybody ask for another document than the one that is up."""
    known = service.document(callers.address(0))["DocumentIncarnation"]
    texts = callers.requests(
        closing=False,
        target=f"{callers.TARGET}&wait={WAIT_SECONDS}",
        more=(f'If-None-Match: "{known}"',),
    )
    for number, guest in enumerate(crowd):
        guest.setblocking(True)  # noqa: FBT003 - the socket's own word
        guest.sendall(texts[number % len(texts)])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _waiting(service) < len(crowd):
        assert time.monotonic() < deadline, "not everybody waits"
        time.sleep(0.05)


def _waiting(service: Service) -> int:
    for line in service.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith("forewarn_guest_polls_waiting "):
            return int(float(line.split()[1]))
    raise AssertionError("the service counts those that wait")


def _tell(
    service: Service, crowd: Sequence[socket.socket], path: str, body: dict[str, object]
) -> list[float]:
    """Have something happen; milliseconds from asking for it until each guest has its answer."""
    headers = {**service.authorized, "Content-Type": "application/json"}
    operator = connect(service.control, seconds_max=PATIENCE_SECONDS, ca=service.ca)
    answered: list[int] = []
    with select.epoll() as epoll:
        by_number = {guest.fileno(): guest for guest in crowd}
        for number in by_number:
            # Each tells once: an answer arrives in one piece.
            epoll.register(number, select.EPOLLIN | select.EPOLLET)
        began = time.perf_counter()
        operator.request("POST", f"/fabric/v1{path}", json.dumps(body).encode(), headers)
        told: list[float] = []
        while len(told) < len(crowd):
            ready = epoll.poll(PATIENCE_SECONDS, TOLD_AT_ONCE)
            assert ready, "not everybody was told"
            # An answer is looked at once it is known when it came: the guests share one processor,
            # and what they do with it must not count as time until the next one is told.
            told += [(time.perf_counter() - began) * MILLI] * len(ready)
            answered.extend(number for number, _ in ready)
    for number in answered:
        answer = by_number[number].recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:100]
    assert operator.getresponse().status == http.HTTPStatus.CREATED
    operator.close()
    return told


def _allow_descriptors() -> None:
    """As many descriptors as may be had; a mighty root may have more than it was given."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (max(hard, DESCRIPTORS), hard):
        with suppress(ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return
