"""The client of the owners' API, which speaks as Azure Resource Manager does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from forewarn.cli.answers import Subscription
from forewarn.cli.transport import Transport

# Any is answered alike.
_VERSION: Final = "api-version=2024-11-01"


@dataclass(frozen=True, slots=True)
class Arm:
    """Asks a service as an owner. Every method raises the families, whoever found the fault."""

    transport: Transport

    def subscription(self) -> Subscription:
        """The subscription that everything is in."""
        answer = self._read("/subscriptions")
        return cast("Mapping[str, list[Subscription]]", answer)["value"][0]

    def _read(self, path: str) -> object:
        return self.transport.read(self.transport.ask("GET", f"{path}?{_VERSION}"))
