"""The commands of `forewarn agent` that people type: test, explain, status, approve."""

from __future__ import annotations

import json
import secrets
import socket
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.agent import asking, explaining
from forewarn.agent.asking import InHand
from forewarn.agent.explaining import Question
from forewarn.agent.handbook import FileHandbook
from forewarn.agent.hooks import Phase
from forewarn.agent.imagining import SOURCES, Idea, imagined
from forewarn.agent.rehearsing import LimitedHandbook, Outcome, Rehearsal
from forewarn.agent.rules import Verdict
from forewarn.agent.settings import Settings, load_settings
from forewarn.agent.wording import a
from forewarn.client import Client, Event
from forewarn.errors import Malformed, Refused, Unavailable, Unknown, Unsuccessful
from forewarn.statuses import INTERRUPTED

# Whoever types a command waits for it.
_WITHIN: Final = timedelta(seconds=10)
_NAME_WITHIN: Final = timedelta(seconds=3)
# So much of an event's id names it, where a mistake would hurt.
_ID_MIN: Final = 4


def test(options: Namespace, environment: Mapping[str, str]) -> int:
    """Run the hooks as if. Raises: Malformed, Unsuccessful."""
    settings = load_settings(options.config)
    name = _name(settings, options.name)
    event = imagined(_idea(options), event_id=_made_up_id(), name=name, now=_now())
    _refuse_neighbors(event, name)
    _say(f"{a(event.type)} is played to {name}: hooks are really run, nothing is approved")
    handbook = FileHandbook(settings, name)
    handbook.warn()
    with tempfile.TemporaryDirectory(prefix="forewarn-agent-test-") as directory:
        outcome = Rehearsal(
            event,
            name,
            handbook=LimitedHandbook(handbook, options.limit),
            directory=Path(directory),
            environment=environment,
            now=_now,
            say=_say,
        ).play()
    if outcome.is_interrupted:
        return INTERRUPTED
    _tell_verdict(outcome, settings)
    return 0


def _idea(options: Namespace) -> Idea:
    return Idea(
        type=options.type,
        source=options.source or SOURCES[0],
        duration=options.duration,
        resources=options.resources,
        notice=options.notice,
    )


def _tell_verdict(outcome: Outcome, settings: Settings) -> None:
    if outcome.bad:
        remedy = "mend them and test again" if len(outcome.bad) > 1 else "mend it and test again"
        raise Unsuccessful(f"{'; '.join(outcome.bad)}: {remedy}")
    if not any(outcome.case.phases.values()):
        _say(
            f"no hook was run: put programs into {settings.hooks}/prepare, and make them executable"
        )
    else:
        _say("all is well")


def _refuse_neighbors(event: Event, name: str) -> None:
    if not event.concerns(name):
        raise Malformed(
            f"{name} is not among {', '.join(event.resources)}, and events of neighbors run nothing: "
            "add it to --resources, or leave that out"
        )


def explain(options: Namespace, _: Mapping[str, str]) -> int:
    """Say what would be done about an event. Raises: Malformed, Unknown, Unavailable."""
    settings = load_settings(options.config)
    known: InHand | None = None
    # Documents know whole seconds only, and people want no others.
    now = _now().replace(microsecond=0)
    if options.event is None:
        name = _name(settings, options.name)
        event = imagined(_idea(options), event_id="(made up)", name=name, now=now)
    else:
        _refuse_ideas(options)
        name, event, known = _looked_up(
            settings, options.name, options.event, "or make one up with --type"
        )
    handbook = FileHandbook(settings, name)
    handbook.warn()
    explanation = explaining.explain(
        Question(
            event=event,
            name=name,
            rules=settings.rules,
            hooks={phase: handbook.hooks(event, phase) for phase in Phase},
            now=now,
            undo_waits=settings.undo_waits,
            members=settings.peers.members,
        )
    )
    if known is not None:
        # The agent has seen how the hooks went, and what its peers say.
        explanation = replace(explanation, verdict=Verdict(known.approves, known.why))
    if options.json:
        in_hand = {} if known is None else {"why": known.why, "approved": known.is_approved}
        _say(json.dumps({**explaining.dump_explanation(explanation), **in_hand}, indent=2))
        return 0
    _say_all(explaining.told(explanation, now))
    if known is not None:
        _say("in hand:")
        _say_all(asking.told_runs(known))
        _say(asking.told_approval(known))
    return 0


def _refuse_ideas(options: Namespace) -> None:
    for option in ("source", "duration", "resources", "notice"):
        if getattr(options, option):
            raise Malformed(f"--{option} is for events that are made up: leave out {options.event}")


def _looked_up(
    settings: Settings, name: str | None, wanted: str, remedy: str
) -> tuple[str, Event, InHand | None]:
    """The name of this VM, the event, and what the agent has done about it if it runs."""
    try:
        standing = asking.load_standing(asking.ask(settings.listen))
    except Unavailable:
        standing = None
    if standing is not None:
        found = [one for one in standing.in_hand if _is_called(one.event, wanted)]
        if len(found) == 1:
            known = name or standing.name or _name(settings, None)
            return known, found[0].event, found[0]
    with _asked(settings, name) as client:
        events = client.events(within=_WITHIN)
        mine = client.name(within=_WITHIN)
    matching = [event for event in events if _is_called(event, wanted)]
    if len(matching) == 1:
        return mine, matching[0], None
    if matching:
        ids = ", ".join(event.id for event in matching)
        raise Unknown(f"several events begin with {wanted}: give more of one of {ids}")
    there = ", ".join(event.id for event in events) or "none at all"
    raise Unknown(f"no event {wanted} is in the document: there is {there}; {remedy}")


@contextmanager
def _asked(settings: Settings, name: str | None) -> Iterator[Client]:
    """The metadata service; if it does not answer, people are told where it was looked for."""
    with Client(settings.endpoint, name=name or settings.name) as client:
        try:
            yield client
        except Unavailable as error:
            where = client.endpoint
            raise Unavailable(
                f"{error}; it was looked for at {where}: is that the one? Else write `endpoint` into the agent's file"
            ) from error


def approve(options: Namespace, _: Mapping[str, str]) -> int:
    """Let an event start, whatever the hooks and the rules say. Raises: Malformed, Unknown, Refused, Unavailable."""
    settings = load_settings(options.config)
    if len(options.event) < _ID_MIN:
        raise Malformed(f"{options.event!r} is too short for an event: give its first {_ID_MIN}")
    remedy = "see `forewarn-agent status`"
    event, known = _looked_up(settings, None, options.event, remedy)[1:]
    if known is not None and known.is_over:
        raise Unknown(f"event {event.id} is gone: there is nothing to approve; {remedy}")
    if event.has_started:
        _say(f"{event.type} {event.id} has started already")
        return 0
    with _asked(settings, None) as client:
        client.approve(event, within=_WITHIN)
    _say(f"{event.type} {event.id} is approved: it may start now, for {', '.join(event.resources)}")
    return 0


def _is_called(event: Event, wanted: str) -> bool:
    return event.id.startswith(wanted.upper())


def status(options: Namespace, _: Mapping[str, str]) -> int:
    """Say what the agent on this VM has in hand. Raises: Malformed, Unavailable."""
    settings = load_settings(options.config)
    body = asking.ask(settings.listen)
    standing = asking.load_standing(body)
    if options.json:
        _say(json.dumps(json.loads(body), indent=2))
    else:
        _say_all(asking.told(standing, _now()))
    return 0


def _name(settings: Settings, given: str | None) -> str:
    """The name of this VM: as told, as the endpoint says, or else the host's."""
    told = given or settings.name
    if told is not None:
        return told
    try:
        with Client(settings.endpoint) as client:
            return client.name(within=_NAME_WITHIN)
    except (Refused, Unavailable):
        name = socket.gethostname()
        sys.stderr.write(
            f"no metadata service says who this VM is: it is taken for {name}; --name gives another\n"
        )
        return name


def _made_up_id() -> str:
    # Of a form that no service makes, so that nobody takes it for a real one's.
    return f"00000000-0000-0000-0000-{secrets.token_hex(6).upper()}"


def _now() -> datetime:
    return datetime.now(UTC)


def _say(line: str) -> None:
    # At once: hooks write to the same place.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        _say(line)
