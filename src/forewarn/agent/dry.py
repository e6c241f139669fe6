"""A dry run: what the agent would do is told, and nothing is done."""

from __future__ import annotations

import logging
import shlex
import signal
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from forewarn.agent.hooks import READY
from forewarn.agent.runs import Look, Over
from forewarn.client.documents import Event
from forewarn.errors import ForewarnError

_log: Final = logging.getLogger("forewarn.agent")


class DryRuns:
    """Hooks that are told of, and are well over as soon as they began."""

    def begin(self, run: str, command: tuple[str, ...], environment: Mapping[str, str]) -> None:  # noqa: ARG002 - all are alike
        deadline = datetime.fromtimestamp(int(environment["EVENT_DEADLINE"]), UTC)
        _log.info(
            "dry run: in %s of event %s would be run, until %s at most: %s",
            environment["EVENT_PHASE"],
            environment["EVENT_ID"],
            f"{deadline:%Y-%m-%d %H:%M:%SZ}",
            shlex.join(command),
        )

    def look(self, run: str) -> Look:  # noqa: ARG002 - all are alike
        return Over(READY)

    def signal(self, run: str, number: signal.Signals) -> None:
        """There is nobody to be signaled."""

    def forget(self, event_id: str) -> None:
        """There is nothing to be forgotten."""


class DryApprovals:
    """Approvals that are told of."""

    def ask(self, event: Event) -> None:
        _log.info("dry run: event %s would be approved", event.id)

    def answers(self) -> Iterator[tuple[str, ForewarnError | None]]:
        return iter(())
