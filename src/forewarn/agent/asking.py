"""Asking the agent that runs on this VM what it has in hand, at its own endpoint."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from forewarn.agent.endpoint import parse_address
from forewarn.agent.explaining import headline
from forewarn.agent.hooks import Phase
from forewarn.client.documents import Event, load_event
from forewarn.errors import Malformed, Unavailable

_SECONDS_MAX: Final = 5
_OK: Final = 200
# Who listens on all addresses is asked at one of them.
_ANY: Final[Mapping[str, str]] = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to be asked at


@dataclass(frozen=True, slots=True)
class Told:
    """One run, as the agent tells of it."""

    hook: str
    attempt: int
    # None if it goes on, or has not begun.
    result: str | None
    code: int | None


@dataclass(frozen=True, slots=True)
class InHand:
    """One event that the agent has in hand."""

    event: Event
    phases: Mapping[str, tuple[Told, ...]]
    is_approved: bool
    is_over: bool
    # Whether it is about to be approved; why it is, or is not.
    approves: bool
    why: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the agent says of itself."""

    # None until it knows the VM's name.
    name: str | None
    trouble: str | None
    # Whether it has read the document since it was started.
    has_read: bool
    in_hand: tuple[InHand, ...]


def ask(listen: str) -> bytes:
    """What the agent that listens there tells, as it wrote it. Raises: Unavailable."""
    host, port = _place(listen)
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS_MAX)
    try:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(
            f"no agent answers at {listen} ({error}): is it running? `systemctl status forewarn-agent`"
        ) from error
    finally:
        connection.close()
    if answer.status != _OK:
        raise Unavailable(
            f"what answers at {listen} is no agent of ours ({answer.status}): "
            "give --config the file that the agent was started with"
        )
    return body


def _place(listen: str) -> tuple[str, int]:
    host, port = parse_address(listen) if listen else ("", 0)
    if not port:
        raise Unavailable(
            f"the agent cannot be asked, as its file has listen = {listen!r}: "
            'write listen = "127.0.0.1:8171", and restart it'
        )
    return _ANY.get(host, host), port


def load_standing(body: bytes) -> Standing:
    """What the agent told. Raises: Malformed."""
    try:
        content = json.loads(body)
        return Standing(
            name=content["name"],
            trouble=content["trouble"],
            has_read=content["incarnation"] is not None,
            in_hand=tuple(_in_hand(one) for one in content["events"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(
            f"the agent's answer cannot be read ({error!r}): is it of this version?"
        ) from error


def _in_hand(content: Mapping[str, object]) -> InHand:
    phases = content["phases"]
    if not isinstance(phases, dict):
        raise TypeError("phases")
    return InHand(
        event=load_event(content["event"]),
        phases={
            phase: tuple(
                Told(one["hook"], one["attempt"], one["result"], one["code"]) for one in runs
            )
            for phase, runs in phases.items()
        },
        is_approved=bool(content["approved"]),
        is_over=bool(content["is_over"]),
        approves=bool(content["approves"]),
        why=str(content["why"]),
    )


def told(standing: Standing, now: datetime) -> Iterator[str]:
    """What the agent told, in lines."""
    count = len(standing.in_hand)
    events = "no event" if not count else "1 event" if count == 1 else f"{count} events"
    yield f"{standing.name or 'a VM whose name is not known yet'}: {events} in hand"
    if not standing.has_read and standing.trouble is None:
        yield "scheduled events were not read yet: the metadata service has not answered"
    if standing.trouble is not None:
        yield f"trouble: {standing.trouble}"
    for one in standing.in_hand:
        yield ""
        yield f"gone: {headline(one.event, None)}" if one.is_over else headline(one.event, now)
        yield from told_runs(one)
        yield told_approval(one)


def told_runs(in_hand: InHand) -> Iterator[str]:
    """What was run for an event so far, in lines."""
    for phase in Phase:
        for number, run in enumerate(in_hand.phases.get(phase.value, ())):
            again = f", attempt {run.attempt}" if run.attempt > 1 else ""
            yield f"{'' if number else phase.value:9} {run.hook} {_state(run)}{again}"
    if in_hand.is_over:
        is_waiting = Phase.UNDO.value not in in_hand.phases
        does = "waits until no hook runs and no other event is in hand" if is_waiting else "runs"
        yield f"{'':9} it is gone; undoing it {does}"


def told_approval(in_hand: InHand) -> str:
    """Whether an event is approved, and why not, in a line."""
    if in_hand.is_approved:
        said = "given"
    elif in_hand.is_over:
        said = "not given by this agent: the event is gone"
    elif in_hand.event.has_started:
        said = "not given by this agent: it has started, at its NotBefore or as somebody else approved it"
    else:
        said = f"not given: {in_hand.why}"
    return f"{'approval':9} {said}"


def _state(run: Told) -> str:
    if run.result is None:
        return "runs" if run.attempt else "has not begun"
    status = "" if run.code is None else f" (status {run.code})"
    return f"is over: {run.result}{status}"
