"""What a story of an agent is made of: the owner's wishes, how hooks behave, and what happens to the VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.rules import Rule
from forewarn.client.documents import Event
from forewarn.testing.simulated_runs import Manner
from forewarn.web.faults import FaultKind

# The VMs of one host and one update domain, so that one event may be for several; the agent is on the second.
MACHINES: Final = ("web_0", "web_1", "web_2")
NAME: Final = "web_1"
FLEET: Final = "\n".join(
    [
        "[[scope]]",
        'name = "web"',
        'kind = "scale-set"',
        'terminate_notice = "5m"',
        "update_domains = 1",
        *(
            f'[[scope.machine]]\nname = "{name}"\naddress = "127.0.1.{10 + number}"\nhost = "metal"'
            for number, name in enumerate(MACHINES)
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Announce:
    """An impact on some of the VMs is announced."""

    type: str
    machines: tuple[str, ...] = (NAME,)


@dataclass(frozen=True, slots=True)
class Break:
    """Hardware of the agent's VM fails: an event that has started when it is first seen."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """An event is called off, by its number."""

    which: int


@dataclass(frozen=True, slots=True)
class Postpone:
    """An event is moved to later."""

    which: int
    by: timedelta


@dataclass(frozen=True, slots=True)
class ApproveElsewhere:
    """A neighbor approves an event."""

    which: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    by: timedelta


@dataclass(frozen=True, slots=True)
class Die:
    """The agent is killed after so many more steps, wherever that finds it; and is away for a while."""

    steps: int
    down: timedelta = timedelta()
    # Whether the whole VM goes down.
    reboots: bool = False


@dataclass(frozen=True, slots=True)
class Gather:
    """What the neighbors say of themselves from now on."""

    are_ready: bool
    are_healthy: bool


@dataclass(frozen=True, slots=True)
class Spoil:
    """The next answers of the metadata service are none."""

    kind: FaultKind
    times: int


@dataclass(frozen=True, slots=True)
class Jam:
    """Nothing more can be written down, for so many tries."""

    times: int


@dataclass(frozen=True, slots=True)
class Mute:
    """The next approvals come to nothing, as if nobody had answered for minutes."""

    times: int


Act: TypeAlias = (
    Announce
    | Break
    | Cancel
    | Postpone
    | ApproveElsewhere
    | Pass
    | Die
    | Gather
    | Spoil
    | Jam
    | Mute
)


@dataclass(frozen=True, slots=True)
class HookPlan:
    """A hook, and how it behaves."""

    manner: Manner = field(default_factory=Manner)
    limit: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole story, before it is told."""

    acts: tuple[Act, ...]
    rule: Rule = field(default_factory=Rule)
    hooks: Mapping[Phase, tuple[HookPlan, ...]] = field(default_factory=dict)
    undo_waits: bool = True
    # How long the VM is down when an event other than a Freeze starts on it; None: it is not hit.
    impact: timedelta | None = None

    @property
    def manners(self) -> dict[str, Manner]:
        """How hooks behave, by their commands."""
        return {
            command(phase, number): hook.manner
            for phase, hooks in self.hooks.items()
            for number, hook in enumerate(hooks)
        }

    def commands(self, phase: Phase) -> tuple[str, ...]:
        """What is run in a phase; nothing, if the rule says so."""
        if not self.rule.run_hooks:
            return ()
        return tuple(command(phase, number) for number, _ in enumerate(self.hooks.get(phase, ())))


def command(phase: Phase, number: int) -> str:
    return f"{phase.value}-{number}"


class PlannedHandbook:
    """A handbook with one rule and the same hooks for every event."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def rule(self, event: Event) -> Rule:  # noqa: ARG002 - every event is alike
        return self._plan.rule

    def hooks(self, event: Event, phase: Phase) -> tuple[Hook, ...]:  # noqa: ARG002
        return tuple(
            Hook(command(phase, number), (command(phase, number),), hook.limit)
            for number, hook in enumerate(self._plan.hooks.get(phase, ()))
        )
