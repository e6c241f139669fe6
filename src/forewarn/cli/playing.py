"""Plays a scenario against an emulator, over HTTP alone, and says whether what it expects came true.

On a clock that stands still, time passes when a step wants it to; on one that goes, the player waits.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from forewarn.cli import guests, sights
from forewarn.cli.answers import Clock, Event, Scope
from forewarn.cli.client import Client
from forewarn.cli.phrases import seconds, spell
from forewarn.cli.sights import Sight
from forewarn.config.scenario_steps import (
    Announce,
    AnyStep,
    Approve,
    Cancel,
    ExpectAnswer,
    ExpectApproval,
    Expectation,
    ExpectEvent,
    Inject,
)
from forewarn.config.scenarios import Scenario
from forewarn.core.periods import spell as spell_length
from forewarn.errors import Conflict, Malformed, Refused

# How often an expectation is looked at while it may come true, where time stands still otherwise.
LOOKS: Final = 60
LOOK_SECONDS: Final = 0.05
WAIT_SECONDS_MAX: Final = 1.0
# What our own requests may take, where time does not wait for them.
GRACE: Final = timedelta(seconds=2)
# Who expects no answer does not wait for long.
NO_ANSWER_SECONDS: Final = 1.0


class Outcome(Enum):
    """What came of a step."""

    DONE = "done"
    KEPT = "kept"
    NOT_KEPT = "not kept"
    # Somebody approved the event, which therefore started early.
    PASSED_OVER = "passed over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A step that was taken: when, by the emulated clock, and what came of it."""

    step: AnyStep
    at: datetime
    after: timedelta
    outcome: Outcome
    # What was done, or what was expected; and what was seen instead or in the end.
    what: str
    seen: str = ""


class Player:
    """Plays one scenario, once."""

    def __init__(self, client: Client, scenario: Scenario, clock: Clock) -> None:
        """`clock` is what the emulator's shows at the beginning."""
        self._client = client
        self._scenario = scenario
        self._speed = clock["speed"]
        self._begun = _instant(clock)
        self._urls = {name.lower(): u for name, u in client.addresses()["machines"].items()}
        # By the scenario's names for them.
        self._events: dict[str, Event] = {}
        self._approved: set[str] = set()
        # How often we asked as each VM ourselves, by its short name.
        self.asked: Counter[str] = Counter()

    def play(self) -> Iterator[Played]:
        """Take the steps one by one; one that the emulator refuses is the last."""
        for step in self._scenario.steps:
            self._pass_until(self._begun + step.at)
            if isinstance(step, ExpectEvent | ExpectApproval | ExpectAnswer):
                yield self._judge(step)
                continue
            try:
                outcome, what, seen = self._act(step)
            except (Malformed, Refused, Conflict) as error:
                yield self._played(step, Outcome.NOT_KEPT, _named(step), str(error))
                return
            yield self._played(step, outcome, what, seen)

    # -- what is done --------------------------------------------------------------------------

    def _act(self, step: Announce | Cancel | Approve | Inject) -> tuple[Outcome, str, str]:
        if isinstance(step, Cancel):
            return self._cancel(step)
        if isinstance(step, Announce):
            told = self._announce(step)
        elif isinstance(step, Approve):
            told = self._approve(step)
        else:
            told = self._inject(step)
        self._client.settle()
        return Outcome.DONE, told, ""

    def _announce(self, step: Announce) -> str:
        if step.started_for is not None:
            # Before it is announced: on a fast clock it may be over before anybody could say.
            for machine in step.machines or self._on_host(step.host or ""):
                self._client.take(machine, step.type.value, seconds(step.started_for))
        wish = {
            "type": step.type.value,
            "machines": list(step.machines),
            "hosts": [] if step.host is None else [step.host],
            "source": step.source.value,
            "cause": step.cause.value,
            "notice_seconds": None if step.notice is None else seconds(step.notice),
            "duration_seconds": None if step.duration is None else seconds(step.duration),
            "description": step.description,
        }
        made = self._client.announce(wish)
        if step.names and len(step.names) != len(made["events"]):
            raise Refused(
                f"`as` has {len(step.names)} names, and it became {len(made['events'])} event(s): "
                "VMs of different hosts or update domains get an event each"
            )
        self._events |= zip(step.names, made["events"], strict=False)
        return f"{_named(step)}: {_listed(step.names, made['events'])}"

    def _cancel(self, step: Cancel) -> tuple[Outcome, str, str]:
        try:
            self._client.step(self._events[step.event]["event_id"], "cancel", {})
        except Refused:
            approval = self._approval_by_others(step.event)
            if approval is None:
                raise
            return Outcome.PASSED_OVER, _named(step), approval
        return Outcome.DONE, _named(step), ""

    def _approve(self, step: Approve) -> str:
        word = guests.approve(self._as(step.machine), self._events[step.event]["event_id"])
        if word != "200":
            raise Refused(f"{step.machine} was answered {word}")
        self._approved.add(step.event)
        return _named(step)

    def _inject(self, step: Inject) -> str:
        told = {
            "kind": step.kind,
            "machine": step.machine,
            "times": step.times,
            "seconds": None if step.lasts is None else seconds(step.lasts),
            "delay_seconds": None if step.delay is None else seconds(step.delay),
        }
        self._client.add_fault({key: value for key, value in told.items() if value is not None})
        return _named(step)

    def _on_host(self, host: str) -> list[str]:
        return [
            self._whole(machine["name"], scope)
            for scope in self._client.fleet()["scopes"]
            for machine in scope["machines"]
            if machine["host"] == host
        ]

    def _whole(self, machine: str, place: Event | Scope) -> str:
        """The name of a machine that is nobody else's."""
        is_known = machine.lower() in self._urls
        return machine if is_known else f"{place['resource_group']}/{place['scope']}/{machine}"

    # -- what is expected ----------------------------------------------------------------------

    def _judge(self, step: Expectation) -> Played:
        if isinstance(step, ExpectEvent):
            return self._judge_event(step)
        if isinstance(step, ExpectApproval):
            return self._judge_approval(step)
        what = f"{' and '.join(step.machines)} to be answered {step.answer}"
        sight = self._await(step, self._deadline(step), lambda: self._see_answer(step))
        return self._played(step, _verdict(sight), what, sight.seen)

    def _judge_event(self, step: ExpectEvent) -> Played:
        event = self._events[step.event]
        readers = step.machines or tuple(self._whole(name, event) for name in event["resources"])
        what = sights.expected_event(step, readers)
        sight = self._await(step, self._deadline(step), lambda: self._see_event(step, readers))
        if sight.is_early:
            approval = self._approval_by_others(step.event)
            if approval is not None:
                return self._played(step, Outcome.PASSED_OVER, what, approval)
        return self._played(step, _verdict(sight), what, sight.seen)

    def _judge_approval(self, step: ExpectApproval) -> Played:
        what = (
            f"{step.machine or 'a VM'} to approve {step.event} within {spell_length(step.within)}"
        )
        # The record says when an approval came: how late we look makes no difference.
        latest = self._now() + step.within
        sight = self._await(
            step, latest, lambda: sights.of_approval(step, self._event(step.event), latest)
        )
        seen = sight.seen
        if not sight.is_met and not self._speed:
            seen += " (this clock waits for no handler: play it with --speed 60)"
        return self._played(step, _verdict(sight), what, seen)

    def _see_event(self, step: ExpectEvent, readers: tuple[str, ...]) -> Sight:
        seen = [
            sights.of_event(step, self._events[step.event], reader, self._read(reader))
            for reader in readers
        ]
        # One that fails says more than one that does not.
        return next((sight for sight in seen if not sight.is_met), seen[0])

    def _see_answer(self, step: ExpectAnswer) -> Sight:
        patience = NO_ANSWER_SECONDS if step.answer == "none" else guests.ANSWER_SECONDS_MAX
        words = {
            machine: guests.read(self._as(machine), patience).word for machine in step.machines
        }
        seen = ", ".join(f"{machine} is answered {word}" for machine, word in words.items())
        return Sight(is_met=set(words.values()) == {step.answer}, seen=seen)

    def _deadline(self, step: Expectation) -> datetime:
        """Until when it may come true."""
        return self._now() + step.within + GRACE * self._speed

    def _await(self, step: Expectation, deadline: datetime, look: Callable[[], Sight]) -> Sight:
        """Look until it is as expected, or its time is over."""
        while True:
            now = self._now()
            sight = look()
            if sight.is_met or sight.is_final or now >= deadline:
                return sight
            if self._speed:
                _wait(LOOK_SECONDS)
            else:
                a_while = max(step.within / LOOKS, timedelta(seconds=1))
                self._pass_until(min(now + a_while, deadline))

    def _read(self, machine: str) -> guests.GuestAnswer:
        return guests.read(self._as(machine))

    def _as(self, machine: str) -> str:
        """Where we ask as a VM."""
        self.asked[machine.rpartition("/")[2].lower()] += 1
        return self._urls[machine.lower()]

    def _event(self, name: str) -> Event:
        return self._client.event(self._events[name]["event_id"])

    def _approval_by_others(self, name: str) -> str | None:
        """Who approved an event, if that was not the scenario."""
        approval = self._event(name)["approved"]
        if approval is None or name in self._approved:
            return None
        return f"{approval['by']} approved {name} at {approval['at']}, so it started early"

    # -- time ----------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return _instant(self._client.clock())

    def _pass_until(self, instant: datetime) -> None:
        if not self._speed:
            if instant > self._now():
                self._client.advance({"to": spell(instant)})
            return
        while (rest := instant - self._now()) > timedelta():
            _wait(min(rest.total_seconds() / self._speed, WAIT_SECONDS_MAX))

    def _played(self, step: AnyStep, outcome: Outcome, what: str, seen: str) -> Played:
        now = self._now()
        after = now - self._begun
        return Played(step=step, at=now, after=after, outcome=outcome, what=what, seen=seen)


def _named(step: Announce | Cancel | Approve | Inject) -> str:
    """What a step does, in words."""
    match step:
        case Announce():
            whom = ", ".join(step.machines) or f"all on {step.host}"
            why = "" if step.cause.value == "maintenance" else f" ({step.cause.value})"
            return f"announce {step.type.value} by {step.source.value} to {whom}{why}"
        case Cancel():
            return f"cancel {step.event}"
        case Approve():
            return f"approve {step.event} as {step.machine}"
        case Inject():
            return f"fault {step.kind} for {step.machine or 'all VMs'}"


def _listed(names: tuple[str, ...], events: list[Event]) -> str:
    labels = names or ("event",) * len(events)
    return ", ".join(
        f"{label} is {event['event_id'][:8]}" for label, event in zip(labels, events, strict=True)
    )


def _verdict(sight: Sight) -> Outcome:
    return Outcome.KEPT if sight.is_met else Outcome.NOT_KEPT


def _instant(clock: Clock) -> datetime:
    return datetime.fromisoformat(clock["now"])


def _wait(amount: float) -> None:
    threading.Event().wait(amount)
