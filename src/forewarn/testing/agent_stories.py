"""Telling an agent's story: each act is done, and all promises are held to after every step."""

from __future__ import annotations

from pathlib import Path

from forewarn.agent.rules import Peers
from forewarn.client import Client
from forewarn.core.events import ANNOUNCED_TYPES
from forewarn.errors import Refused, UnknownEvent
from forewarn.testing import agent_promises
from forewarn.testing.agent_plans import (
    MACHINES,
    NAME,
    Act,
    Announce,
    ApproveElsewhere,
    Break,
    Cancel,
    Die,
    Gather,
    Jam,
    Mute,
    Pass,
    Plan,
    Postpone,
    Spoil,
)
from forewarn.testing.agent_stages import Stage
from forewarn.testing.agent_witnesses import Witness
from forewarn.testing.emulated_events import Event
from forewarn.testing.plain_azure import Knowing
from forewarn.testing.scheduled_events import OPERATOR
from forewarn.web.faults import DELAYS, FaultKind

TYPES = tuple(sorted(type_.value for type_ in ANNOUNCED_TYPES))
_OTHERS = tuple(name for name in MACHINES if name != NAME)


def tell(plan: Plan, directory: Path, knowing: Knowing | None = None) -> Witness:
    """Tell a story to its end. Raises: AssertionError, with the promise that was not kept."""
    with Stage(plan, directory, knowing) as stage:
        stage.check = lambda: agent_promises.check(stage.witness)
        stage.settle()
        for act in plan.acts:
            # What cannot be, such as canceling what has started, is no part of the story.
            try:
                _play(stage, act)
            except (Refused, UnknownEvent):
                continue
            stage.settle()
        stage.come_to_rest()
        if not stage.is_deleted:
            agent_promises.check_end(stage.witness)
            assert not stage.written, "a case is left in the casebook"
            assert not stage.runs.kept, "runs were not forgotten"
        return stage.witness


def _play(stage: Stage, act: Act) -> None:
    match act:
        case Pass(by):
            stage.let_pass(by)
        case Announce(type_, machines):
            stage.events.announce(type_, *machines)
        case Break():
            stage.events.hardware_failure(NAME)
        case Cancel(which) | Postpone(which) | ApproveElsewhere(which):
            for event in _open(stage, which):
                _change(stage, event, act)
        case Die() | Gather() | Spoil() | Jam() | Mute():
            _hinder(stage, act)


def _hinder(stage: Stage, act: Die | Gather | Spoil | Jam | Mute) -> None:
    match act:
        case Die(steps, down, reboots):
            stage.doom(steps, down, reboots=reboots)
        case Gather(are_ready, are_healthy):
            everybody, nobody = frozenset(_OTHERS), frozenset[str]()
            stage.witness.peers = Peers(
                ready=everybody if are_ready else nobody,
                healthy=everybody if are_healthy else nobody,
            )
            stage.witness.unhindered = None
        case Spoil(kind, times):
            is_once = kind is FaultKind.INCARNATION_RESTART
            delay = 1 if kind in DELAYS else None
            stage.events.faults.add(kind, vm=NAME, times=None if is_once else times, delay=delay)
            stage.forget_what_was_read()
        case Jam(times):
            stage.casebook.jams = times
        case Mute(times):
            stage.approvals.mutes = times


def _change(stage: Stage, event: Event, act: Cancel | Postpone | ApproveElsewhere) -> None:
    match act:
        case Cancel():
            stage.events.cancel(event)
        case Postpone(_, by):
            stage.world.assembly.desk.postpone(event.id, by, OPERATOR)
        case ApproveElsewhere():
            with Client(stage.events.url_of(_OTHERS[0])) as neighbor:
                neighbor.approve(event.id)


def _open(stage: Stage, which: int) -> list[Event]:
    """One of the events that are scheduled, if there is any."""
    scheduled = [event for event in stage.events.events if event.status == "Scheduled"]
    return [scheduled[which % len(scheduled)]] if scheduled else []
