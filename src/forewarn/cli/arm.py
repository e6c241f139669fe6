"""The client of the owners' API, which speaks as Azure Resource Manager does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

from forewarn.cli.answers import Operation, Subscription
from forewarn.cli.transport import Transport

# Any is answered alike.
_VERSION: Final = "api-version=2024-11-01"
_DELETE: Final = "delete"


@dataclass(frozen=True, slots=True)
class Arm:
    """Asks a service as an owner. Every method raises the families, whoever found the fault."""

    transport: Transport

    def subscription(self) -> Subscription:
        """The subscription that everything is in."""
        answer = self._read("/subscriptions")
        return cast("Mapping[str, list[Subscription]]", answer)["value"][0]

    def begin(self, resource: str, verb: str) -> str | None:
        """Have something done to a resource; where its progress is told, if it is anywhere."""
        if verb == _DELETE:
            reply = self.transport.ask("DELETE", f"{resource}?{_VERSION}")
        else:
            reply = self.transport.ask("POST", f"{resource}/{verb}?{_VERSION}", b"")
        address = reply.headers.get("azure-asyncoperation")
        # Whatever host it names: our token goes to nobody but the service we know.
        return None if address is None else urlsplit(address).path

    def operation(self, path: str) -> Operation:
        """How far an operation is."""
        return cast("Operation", self._read(path))

    def _read(self, path: str) -> object:
        return self.transport.read(self.transport.ask("GET", f"{path}?{_VERSION}"))
