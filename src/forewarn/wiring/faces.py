"""Every path that the control plane answers, from all of its faces."""

from __future__ import annotations

from dataclasses import dataclass

from forewarn.service.logins import Logins
from forewarn.web import arm, control, login, openapi, principals, webhooks
from forewarn.web.arm_calls import ArmParts
from forewarn.web.control_parts import ControlParts
from forewarn.web.principals import PrincipalsParts
from forewarn.web.routes import Table
from forewarn.web.webhooks import WebhookParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """What each face of the control plane stands on."""

    control: ControlParts
    principals: PrincipalsParts
    logins: Logins
    webhooks: WebhookParts
    arm: ArmParts

    def table(self) -> Table:
        """All routes, and the document of those that are the operators'."""
        everything = (
            *control.routes(self.control),
            *principals.routes(self.principals),
            *login.routes(self.logins),
            *webhooks.routes(self.webhooks),
            *arm.routes(self.arm),
        )
        return Table(openapi.with_document(everything))
