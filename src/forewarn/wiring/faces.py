"""Every path that the control plane answers, from all of its faces."""

from __future__ import annotations

from dataclasses import dataclass

from forewarn.web import control, openapi
from forewarn.web.control_parts import ControlParts
from forewarn.web.routes import Route, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """What each face of the control plane stands on."""

    control: ControlParts
    others: tuple[Route, ...] = ()

    def table(self) -> Table:
        """All routes, and the document of those that are the operators'."""
        return Table(openapi.with_document((*control.routes(self.control), *self.others)))
