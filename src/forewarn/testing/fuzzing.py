"""Campaigns of hostile exchanges against a service, and the shortest exchange that breaks a promise.

Law: after every batch the document, the journal and the log are what they were, unless somebody
really approved, and a guest with manners is still answered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from forewarn.testing.hostility import Exchange, Vocabulary, exchange
from forewarn.testing.oracle import Outcome
from forewarn.testing.rudeness import Role, Stage, play

BATCH: Final = 500
# Every so many batches, guests know the true id of an event.
CANDID_EVERY: Final = 2
CANDOR: Final = 0.05
# An unmannered stranger among so many guests.
STRANGER_EVERY: Final = 10
# How often an exchange is played again to find a shorter one.
SHRINK_MAX: Final = 400


class Target(Protocol):
    """A service under attack."""

    stage: Stage
    # Machines that attack; all of one scope.
    addresses: Sequence[str]
    stranger: str

    def announce(self) -> str:
        """Announce an event to the attackers' scope, in place of the former one; its id."""
        ...

    def state(self) -> object:
        """The documents and the journal, to be compared."""
        ...

    def is_approved(self, event_id: str) -> bool:
        """Whether somebody approved it."""
        ...

    def document(self) -> bytes:
        """What a guest with manners, who is none of the attackers, reads now."""
        ...

    def complaints(self) -> Sequence[str]:
        """What the log says of bugs."""
        ...


class Broken(Exception):
    """A promise was broken: by which exchange, and how."""


@dataclass(slots=True)
class Tally:
    """What a campaign has seen so far."""

    exchanges: int = 0
    requests: int = 0
    approvals: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    resets: int = 0

    def note(self, outcome: Outcome) -> None:
        """Count an exchange."""
        self.exchanges += 1
        self.requests += len(outcome.asked)
        self.kinds[outcome.exchange.kind] += 1
        self.statuses.update(answer.status for answer in outcome.answers)
        self.resets += outcome.is_reset


class Campaign:
    """Attacks a target, batch by batch."""

    def __init__(self, target: Target, seed: int, *, batch: int = BATCH) -> None:
        self._target = target
        self._seed = seed
        self._batch = batch
        self.tally = Tally()

    def run(
        self, count: int, *, first: int = 0, told: Callable[[Tally], None] = lambda _: None
    ) -> None:
        """Play so many exchanges. Raises: Broken."""
        for begin in range(first, first + count, self._batch):
            numbers = range(begin, min(begin + self._batch, first + count))
            self._attack(numbers, is_candid=begin // self._batch % CANDID_EVERY == 1)
            told(self.tally)

    def _attack(self, numbers: range, *, is_candid: bool) -> None:
        event_id = self._target.announce()
        words = Vocabulary(true_ids=(event_id,), candor=CANDOR if is_candid else 0.0)
        before = self._target.state()
        cast = [(exchange(self._seed, number, words), self._role(number)) for number in numbers]
        outcomes = play(self._target.stage, cast)
        for number, (one, role), outcome in zip(numbers, cast, outcomes, strict=True):
            self.tally.note(outcome)
            problem = outcome.verdict()
            if problem is not None:
                raise Broken(self._report(number, one, role, problem))
        problem = self._aftermath(event_id, before, outcomes)
        if problem is not None:
            raise Broken(f"seed {self._seed}, exchanges {numbers}: {problem}")

    def _role(self, number: int) -> Role:
        if number % STRANGER_EVERY == 0:
            return Role(self._target.stranger, is_stranger=True)
        return Role(self._target.addresses[number % len(self._target.addresses)])

    def _aftermath(self, event_id: str, before: object, outcomes: Sequence[Outcome]) -> str | None:
        """What is wrong after a batch as a whole."""
        complaints = self._target.complaints()
        if complaints:
            return f"the log complains: {complaints[0]}"
        asked = sum(_approves(outcome, event_id) for outcome in outcomes)
        told = sum(_is_told_approved(outcome, event_id) for outcome in outcomes)
        is_approved = self._target.is_approved(event_id)
        self.tally.approvals += is_approved
        if is_approved and not asked:
            return "an event was approved that nobody approved"
        if told and not is_approved:
            return "an approval was answered 200, and is not known"
        # Where somebody approved and went away at once, it may be approved a little later.
        if not asked and self._target.state() != before:
            return f"the state changed: {before!r} became {self._target.state()!r}"
        document = json.loads(self._target.document())
        if not isinstance(document["DocumentIncarnation"], int):
            return f"a guest with manners was shown {document}"
        return None

    def _report(self, number: int, one: Exchange, role: Role, problem: str) -> str:
        shrunk, its_problem = shrink(self._target.stage, one, role, problem)
        return (
            f"seed {self._seed}, exchange {number} ({one.kind}) from {role.address}: {problem}\n"
            f"  sent: {_shown(one)}\n"
            f"  shortest that fails: {its_problem}\n"
            f"  sent: {_shown(shrunk)}"
        )


def shrink(stage: Stage, one: Exchange, role: Role, problem: str) -> tuple[Exchange, str]:
    """A shorter exchange that fails too, by leaving out ever smaller parts, and how it fails."""
    tries = 0

    def failing(candidate: Exchange) -> str | None:
        nonlocal tries
        tries += 1
        return play(stage, [(candidate, role)])[0].verdict()

    whole = replace(one, pieces=(one.sent,))
    its_problem = failing(whole)
    if its_problem is None:
        # It matters how it was cut into packets, or it is a matter of luck.
        return one, problem
    best, problem = whole, its_problem
    step = max(len(best.sent) // 2, 1)
    while step and tries < SHRINK_MAX:
        at = 0
        while at < len(best.sent) and tries < SHRINK_MAX:
            sent = best.sent[:at] + best.sent[at + step :]
            its_problem = failing(replace(best, pieces=(sent,))) if sent else None
            if its_problem is None:
                at += step
            else:
                best, problem = replace(best, pieces=(sent,)), its_problem
        step //= 2
    return best, problem


def _shown(one: Exchange) -> str:
    return f"{one.farewell.value}, pause {one.pause_seconds}, {list(one.pieces)!r}"


def _approves(outcome: Outcome, event_id: str) -> bool:
    known = [event_id.upper()]
    return not outcome.is_stranger and any(
        asked.event_ids and all(one.strip().upper().strip("{}") in known for one in asked.event_ids)
        for asked in outcome.asked
    )


def _is_told_approved(outcome: Outcome, event_id: str) -> bool:
    return any(
        answer.status == 200 and event_id in asked.event_ids
        for asked, answer in zip(outcome.asked, outcome.answers, strict=False)
    )
