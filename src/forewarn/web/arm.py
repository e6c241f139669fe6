"""The owners' API: the part of Azure Resource Manager that its own clients need."""

from __future__ import annotations

from forewarn.web import (
    arm_availability,
    arm_instances,
    arm_machines,
    arm_maintenance,
    arm_scale_sets,
    arm_subscriptions,
)
from forewarn.web.arm_calls import ArmParts
from forewarn.web.routes import Route

FACES = (
    arm_subscriptions,
    arm_machines,
    arm_scale_sets,
    arm_instances,
    arm_availability,
    arm_maintenance,
)


def routes(parts: ArmParts) -> tuple[Route, ...]:
    """What is asked here, each with the right that it takes."""
    return tuple(route for face in FACES for route in face.routes(parts))
