"""Without peers: nobody is known."""

from __future__ import annotations

from forewarn.agent.rules import Peers, Rule
from forewarn.client.documents import Event


class Strangers:
    """Nobody is ready, nobody is healthy, and nobody is asked."""

    def peers(self, event: Event, rule: Rule) -> Peers:  # noqa: ARG002 - whoever asks, for whatever
        return Peers()
