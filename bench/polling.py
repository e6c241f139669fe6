"""The poll: what one costs each server, in processor time."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import Final

from bench import callers, contenders, measuring
from bench.contenders import Contender, Service
from bench.fleets import fleet_file, machine_name

GUESTS: Final = 128
PER_SCOPE: Final = 8

Poll = Callable[[Contender, int], None]


def measure(*, rounds: int, polls: int) -> dict[str, float]:
    """Processor time for each request, of each server; and ours as a multiple of theirs."""
    os.sched_setaffinity(0, {measuring.cores()[1]})
    with ExitStack() as stack:
        directory = stack.enter_context(measuring.workplace())
        fleet = fleet_file(machines=GUESTS, per_scope=PER_SCOPE)
        service = stack.enter_context(Service(directory / "data", fleet))
        for first in range(0, GUESTS, PER_SCOPE):
            service.get(callers.address(first))
            service.announce_to(machine_name(first))
        documents = {
            callers.address(n): service.document(callers.address(n)) for n in range(GUESTS)
        }
        body = service.get(callers.address(0)).body
        running = [
            service.contender,
            stack.enter_context(contenders.nginx(directory, body, GUESTS)),
        ]
        keeping = _rounds(running, callers.poll_keeping, rounds=rounds, polls=polls)
        closing = _rounds(running, callers.poll_closing, rounds=rounds, polls=polls // 4)
        slow = [service.contender, stack.enter_context(contenders.flask(directory, documents))]
        if shutil.which("go"):
            slow.append(stack.enter_context(contenders.go(directory, documents)))
        beside = _rounds(slow, callers.poll_keeping, rounds=max(rounds // 3, 1), polls=polls // 10)
    figures = {
        "poll_keepalive_vs_nginx": measuring.ratio(keeping["forewarn"], keeping["nginx"]),
        "poll_close_vs_nginx": measuring.ratio(closing["forewarn"], closing["nginx"]),
        "poll_body_bytes": len(body),
    }
    for name in ("flask", "go"):
        if name in beside:
            figures[f"poll_keepalive_vs_{name}"] = measuring.ratio(beside["forewarn"], beside[name])
            figures[f"poll_keepalive_us_{name}"] = median(beside[name])
    for name in ("forewarn", "nginx"):
        figures[f"poll_keepalive_us_{name}"] = median(keeping[name])
        figures[f"poll_close_us_{name}"] = median(closing[name])
    return figures


def _rounds(
    running: list[Contender], poll: Callable[..., None], *, rounds: int, polls: int
) -> dict[str, list[float]]:
    """Microseconds of processor time for each request, by server, a value for each round."""
    found: dict[str, list[float]] = defaultdict(list)
    polls = max(polls // GUESTS, 1) * GUESTS
    for contender in running:
        _cost(contender, poll, polls // 10)
    for number in range(rounds):
        # Each goes first as often as the other.
        for contender in running if number % 2 else reversed(running):
            found[contender.name].append(_cost(contender, poll, polls))
    return found


def _cost(contender: Contender, poll: Callable[..., None], polls: int) -> float:
    polls = max(polls // GUESTS, 1) * GUESTS
    before = measuring.processor_seconds(contender.pid)
    poll(contender.server, guests=GUESTS, polls=polls)
    return (measuring.processor_seconds(contender.pid) - before) / polls * measuring.MICRO
