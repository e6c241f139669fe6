"""The promises of the agent, each said once, as what must be true of any story whatever happens in it.

Goal: whatever happens, hooks run as their owner was told, what was done is undone once, and nothing is approved that
the owner did not want approved. All is checked from outside: on the documents that the agent was shown, the hooks it
began, and the approvals it asked for. Nothing here calls the agent's own rules.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Final

from forewarn.agent.hooks import Phase
from forewarn.agent.rules import Approve, Condition, OnFailure, WithoutHooks
from forewarn.client.documents import Event
from forewarn.testing.agent_plans import NAME
from forewarn.testing.agent_witnesses import Asked, Begun, Witness
from forewarn.testing.simulated_runs import SimulatedRun

WELL: Final = (0, 70)
NOTHING: Final = 70
SECOND: Final = timedelta(seconds=1)
USUAL_LIMIT: Final = timedelta(minutes=10)
GRACE: Final = timedelta(seconds=5)
# After NotBefore, an event that has not started is held.
HELD: Final = timedelta(seconds=5)


# -- what is begun -------------------------------------------------------------------------------


def nothing_is_run_for_a_neighbor(seen: Witness) -> None:
    """N7: an event that is for other VMs only is none of ours."""
    for one in seen.begun:
        assert one.event_id in seen.versions, "a hook was run for a neighbor's event"


def prepare_is_begun_only_for_what_is_ahead(seen: Witness) -> None:
    """N7: not once it has started or is gone, as far as the agent could know."""
    for one in seen.begun:
        if one.phase is Phase.PREPARE:
            assert one.event is not None, "prepare was begun for an event that is gone"
            assert not one.event.has_started, "prepare was begun for an event that has started"


def started_is_begun_only_for_what_has_started(seen: Witness) -> None:
    """N7: and is there."""
    for one in seen.begun:
        if one.phase is Phase.STARTED:
            assert one.event is not None, "started was begun for an event that is gone"
            assert one.event.has_started, "started was begun for an event that has not"


def undo_is_begun_only_for_what_is_gone(seen: Witness) -> None:
    """N7: completed, or called off."""
    for one in seen.begun:
        if one.phase is Phase.UNDO:
            assert one.event is None, "undo was begun for an event that is there"


def hooks_run_one_after_another_in_their_order(seen: Witness) -> None:
    """N7: of one event, never two at a time; and a phase after the one before it."""
    for one in seen.begun:
        assert not any(map(one.is_next_to, one.going)), "two hooks of one event at a time"
        if one.number > 0:
            before = seen.of(one.event_id, one.phase, one.number - 1)
            ended = [other.run.ended for other in before]
            is_over = any(at is not None and at <= one.run.began for at in ended)
            assert is_over or _went_down_instead(seen, one), "not in their order"
    for event_id in seen.ids:
        phases = [one.phase for one in seen.begun if one.event_id == event_id]
        places = [list(Phase).index(phase) for phase in phases]
        assert places == sorted(places), "a phase came before the one before it"


def _went_down_instead(seen: Witness, one: Begun) -> bool:
    """Whether the VM may have gone down when the hook before this one was to begin."""
    return one.phase is Phase.STARTED and one.boot > seen.first_started[one.event_id][0]


def each_hook_runs_to_its_end_once(seen: Witness) -> None:
    """N7: again only if it was cut off, or prepared a boot of the VM that is no more."""
    for event_id in seen.ids:
        for phase in Phase:
            for number, _ in enumerate(seen.plan.hooks.get(phase, ())):
                _runs_once(seen.of(event_id, phase, number))


def _runs_once(begun: list[Begun]) -> None:
    assert not begun or begun[0].attempt >= 1, "attempts are counted from one"
    for before, after in pairwise(begun):
        is_rebooted = after.boot > before.boot
        assert after.attempt > before.attempt, "two attempts have one number"
        assert after.attempt == before.attempt + 1 or is_rebooted, "an attempt was left out"
        assert is_rebooted, "a hook was run twice in one boot of the VM"
        was_cut_off = before.run.was_cut_off and not _was_killed(before.run)
        assert after.phase is Phase.PREPARE or was_cut_off, "a hook was run twice to its end"
        assert after.phase is not Phase.STARTED, "started was begun twice"


def _was_killed(run: SimulatedRun) -> bool:
    return any(number is signal.SIGKILL for _, number in run.signals)


# -- undo ------------------------------------------------------------------------------------------


def undo_follows_only_what_was_begun(seen: Witness) -> None:
    """N7: where nothing was begun, or all said that there was nothing to do, there is nothing to undo."""
    for event_id in seen.ids:
        undone = seen.of(event_id, Phase.UNDO)
        begun = list(seen.touching(event_id))
        # If the VM went down when a hook was to begin, nobody knows whether it did.
        is_unsure = bool(undone) and undone[0].boot > seen.first_boot[event_id]
        is_idle = all(one.run.code == NOTHING for one in begun)
        assert not (is_idle and undone) or is_unsure, "undo was run though nothing was done"


def undo_waits_for_other_events_of_this_vm(seen: Witness) -> None:
    """N7: a VM that leaves again at once does not come back before."""
    for one in seen.begun:
        is_first = one.phase is Phase.UNDO and one.number == 0 and one.attempt == 1
        if is_first and seen.plan.undo_waits:
            assert not one.document, "undone while another event is in hand"
            assert not one.going, "undone while another event's hooks go on"


def prepare_waits_for_an_undo_that_has_begun(seen: Witness) -> None:
    """N7: for half its notice at most, so that the one does not undo what the other prepares."""
    for one in seen.begun:
        if one.phase is Phase.PREPARE and seen.plan.undo_waits:
            undoing = any(_phase(other) is Phase.UNDO for other in one.going)
            assert one.event is not None
            opened = seen.first_seen[one.event_id]
            until = opened + ((one.event.not_before or opened) - opened) / 2
            assert not undoing or one.run.began >= until, "prepared while another is being undone"


def _phase(run: SimulatedRun) -> Phase:
    return Phase(run.environment["EVENT_PHASE"])


# -- time ------------------------------------------------------------------------------------------


def a_hook_is_told_the_truth(seen: Witness) -> None:
    """N7: of the event as it was read last, and by when it is stopped."""
    for one in seen.begun:
        said = dict(one.run.environment)
        assert said.pop("EVENT_DEADLINE") == _spelled(_deadline(seen, one)), "another deadline"
        assert said.pop("EVENT_ATTEMPT") == str(one.attempt)
        assert said.pop("EVENT_PHASE") == one.phase.value
        assert said.pop("EVENT_NAME") == NAME
        # Of one that is gone, an agent that died before it wrote down what it read last knows less.
        events = [one.event] if one.event is not None else seen.versions[one.event_id]
        assert said in [_said(event) for event in events], "a hook was told something else"


def _said(event: Event) -> dict[str, str]:
    not_before = event.not_before
    return {
        "EVENT_ID": event.id,
        "EVENT_TYPE": event.type,
        "EVENT_STATUS": event.status,
        "EVENT_SOURCE": event.source,
        "EVENT_NOTBEFORE": format_datetime(not_before, usegmt=True) if not_before else "",
        "EVENT_RESOURCES": " ".join(event.resources),
        "EVENT_RESOURCETYPE": "VirtualMachine",
        "EVENT_DESCRIPTION": event.description,
        "EVENT_DURATION": _seconds(event.duration),
    }


def _spelled(instant: datetime) -> str:
    return str(int(instant.timestamp()))


def _seconds(duration: timedelta | None) -> str:
    return "-1" if duration is None else str(int(duration.total_seconds()))


def _deadline(seen: Witness, one: Begun) -> datetime:
    """By when a hook that was begun must be over, as things stood then."""
    limit = seen.plan.hooks[one.phase][one.number].limit
    own = one.run.began + (limit or USUAL_LIMIT)
    not_before = one.event.not_before if one.event is not None else None
    if one.phase is not Phase.PREPARE or not_before is None:
        return own
    latest = not_before - SECOND
    if one.run.began >= latest:
        return own
    return latest if limit is None else min(own, latest)


def nothing_is_begun_at_the_last_moment(seen: Witness) -> None:
    """N7: a hook of `prepare` has time before NotBefore, or its event is held."""
    for one in seen.begun:
        if one.phase is Phase.PREPARE and one.event is not None and one.event.not_before:
            at, not_before = one.run.began, one.event.not_before
            assert not not_before - SECOND <= at < not_before + HELD, "begun at the last moment"


def a_hook_that_prepares_is_over_before_its_event_may_start(seen: Witness) -> None:
    """N7: it is asked to end, then killed, before NotBefore; if there is an agent to do so."""
    for one in seen.begun:
        if one.phase is not Phase.PREPARE:
            continue
        not_before = seen.not_before[one.event_id]
        is_watched = seen.unhindered is not None and seen.unhindered <= not_before - 2 * SECOND
        if is_watched and one.run.began < not_before - SECOND and one.run.ended is None:
            assert seen.now < not_before, "a hook goes on when its event may start"


def a_hook_takes_no_longer_than_its_limit(seen: Witness) -> None:
    """N7: its own, or ten minutes."""
    for one in seen.begun:
        limit = seen.plan.hooks[one.phase][one.number].limit
        if one.run.ended is None and seen.unhindered is not None and limit is not None:
            until = max(one.run.began + limit, seen.unhindered + GRACE + SECOND)
            assert seen.now <= until, "a hook goes on beyond its limit"


def a_hook_is_stopped_only_for_a_reason(seen: Witness) -> None:
    """N7: its time is over, or its event is gone; and it is asked before it is killed."""
    for one in seen.begun:
        if not one.run.signals:
            continue
        at, first = one.run.signals[0]
        assert first is signal.SIGTERM, "killed without a word"
        is_called_off = one.phase is Phase.PREPARE and seen.gone.get(one.event_id, at) < at
        is_called_off = is_called_off or seen.gone.get(one.event_id) == at
        due = _deadline(seen, one)
        grace = min(GRACE, (due - one.run.began) / 5)
        assert is_called_off or at >= due - grace, "stopped before its time"


# -- approvals -------------------------------------------------------------------------------------


def an_event_is_approved_only_when_that_was_promised(seen: Witness) -> None:
    """N7: as the rule has it, and never once it has started or is gone."""
    for one in seen.asked:
        assert one.seen is not None, "approved what is gone, or is a neighbor's"
        assert not one.seen.has_started, "approved what has started"
        broken = list(_reasons_against(seen, one.seen, one))
        assert not broken, f"approved, though {' and '.join(broken)}"


def _reasons_against(seen: Witness, event: Event, asked: Asked) -> Iterator[str]:
    rule = seen.plan.rule
    if rule.approve is Approve.NEVER:
        yield "the rule approves never"
    if rule.approve is Approve.AFTER_HOOKS:
        yield from _hooks_against(seen, asked)
    for condition in rule.only:
        if not _holds(condition, event, asked):
            yield f"{condition.value} does not hold"


def _hooks_against(seen: Witness, asked: Asked) -> Iterator[str]:
    rule = seen.plan.rule
    if not asked.prepared:
        if rule.without_hooks is WithoutHooks.HOLD:
            yield "there are no hooks"
        return
    if any(run is None or run.ended is None for run in asked.prepared):
        yield "hooks are not over"
    is_well = all(run is not None and run.code in WELL for run in asked.prepared)
    if not is_well and rule.on_failure is not OnFailure.APPROVE:
        yield "a hook failed"


def _holds(condition: Condition, event: Event, asked: Asked) -> bool:
    match condition:
        case Condition.LEADER:
            return event.resources[0] == NAME
        case Condition.PEERS_READY:
            others = {one for one in event.resources if one != NAME}
            return others <= asked.peers.ready
        case Condition.NOT_LAST:
            return bool(asked.peers.healthy)


def an_approval_that_was_promised_comes(seen: Witness) -> None:
    """N7: once nothing hinders the agent."""
    if not seen.is_quiet:
        return
    for event in seen.document.values():
        if event.has_started or event.id in seen.approved:
            continue
        asked = Asked(seen.now, event, event, seen.prepared(event.id), seen.peers)
        assert list(_reasons_against(seen, event, asked)), "promised, and not approved"


def the_owner_is_told_of_a_hook_that_failed(seen: Witness) -> None:
    """N7: under `alert`, once for each event that is held by it."""
    alerts = [news for news in seen.told if news.kind.value == "alert"]
    for news in alerts:
        assert seen.plan.rule.on_failure is OnFailure.ALERT, "nobody asked for an alert"
        assert news.event is not None, "an alert is about an event"
        failed = [one for one in seen.of(news.event.id, Phase.PREPARE) if one.has_failed]
        assert failed, "an alert, and no hook failed"


# -- what must come --------------------------------------------------------------------------------


def hooks_are_begun_when_they_should(seen: Witness) -> None:
    """N7: once nothing hinders the agent."""
    if not seen.is_quiet:
        return
    for event in seen.document.values():
        if event.has_started:
            _started_are_begun(seen, event)
        else:
            _prepare_are_begun(seen, event)


def _prepare_are_begun(seen: Witness, event: Event) -> None:
    at = seen.not_before.get(event.id)
    is_last_moment = at is not None and at - 2 * SECOND <= seen.now < at + HELD + SECOND
    undoing = any(_phase(run) is Phase.UNDO for run in seen.runs.going)
    if is_last_moment or undoing:
        return
    for run in seen.prepared(event.id):
        assert run is not None, "a hook of prepare was not begun"
        if run.ended is None:
            return


def _started_are_begun(seen: Witness, event: Event) -> None:
    boot, _ = seen.first_started[event.id]
    preparing = any(one.run.ended is None for one in seen.of(event.id, Phase.PREPARE))
    if boot != seen.boot or preparing:
        return
    for number, _ in enumerate(seen.plan.commands(Phase.STARTED)):
        begun = seen.of(event.id, Phase.STARTED, number)
        assert begun, "a hook of started was not begun"
        if begun[-1].run.ended is None:
            return


def what_was_done_is_undone(seen: Witness) -> None:
    """N7: at the end of the story, once for each event for which anything was done."""
    for event_id in seen.ids:
        begun = list(seen.touching(event_id))
        if all(one.run.code == NOTHING for one in begun):
            continue
        for number, _ in enumerate(seen.plan.commands(Phase.UNDO)):
            # Those before the last were cut off: see `each_hook_runs_to_its_end_once`.
            undone = seen.of(event_id, Phase.UNDO, number)
            assert undone, "never undone"
            last = undone[-1].run
            assert last.ended is not None, "undoing is not over"
            # One that was asked to end, as its time was over, is not begun anew.
            assert not last.was_cut_off or last.signals, "undoing was cut off"


ALWAYS: Final[tuple[Callable[[Witness], None], ...]] = (
    nothing_is_run_for_a_neighbor,
    prepare_is_begun_only_for_what_is_ahead,
    started_is_begun_only_for_what_has_started,
    undo_is_begun_only_for_what_is_gone,
    hooks_run_one_after_another_in_their_order,
    each_hook_runs_to_its_end_once,
    undo_follows_only_what_was_begun,
    undo_waits_for_other_events_of_this_vm,
    prepare_waits_for_an_undo_that_has_begun,
    a_hook_is_told_the_truth,
    nothing_is_begun_at_the_last_moment,
    a_hook_that_prepares_is_over_before_its_event_may_start,
    a_hook_takes_no_longer_than_its_limit,
    a_hook_is_stopped_only_for_a_reason,
    an_event_is_approved_only_when_that_was_promised,
    an_approval_that_was_promised_comes,
    the_owner_is_told_of_a_hook_that_failed,
    hooks_are_begun_when_they_should,
)


def check(seen: Witness) -> None:
    """Hold the story so far to every promise."""
    for promise in ALWAYS:
        promise(seen)


def check_end(seen: Witness) -> None:
    """Hold a whole story to what must have come."""
    check(seen)
    what_was_done_is_undone(seen)
