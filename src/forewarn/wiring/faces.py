"""Every path that the control plane answers, from all of its faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from forewarn.service.logins import Logins
from forewarn.web import control, login, openapi, principals, webhooks
from forewarn.web.control_parts import ControlParts
from forewarn.web.principals import PrincipalsParts
from forewarn.web.routes import Route, Table
from forewarn.web.webhooks import WebhookParts
from forewarn.wiring.carrying import Hooks
from forewarn.wiring.trust import Doorkeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """What each face of the control plane stands on."""

    control: ControlParts
    principals: PrincipalsParts
    logins: Logins
    webhooks: WebhookParts
    # Faces that are not the operators' API.
    others: tuple[Route, ...] = ()

    @classmethod
    def over(cls, control: ControlParts, door: Doorkeeper, hooks: Hooks) -> Self:
        """The faces of a service that was put together."""
        return cls(
            control=control,
            principals=door.principals,
            logins=door.logins,
            webhooks=hooks.parts,
        )

    def table(self) -> Table:
        """All routes, and the document of those that are the operators'."""
        everything = (
            *control.routes(self.control),
            *principals.routes(self.principals),
            *login.routes(self.logins),
            *webhooks.routes(self.webhooks),
            *self.others,
        )
        return Table(openapi.with_document(everything))
