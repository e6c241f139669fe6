"""What people may tell simulated machines; nobody tells real ones."""

from __future__ import annotations

from datetime import timedelta

from forewarn.core.events import EventType
from forewarn.fabrics.simulated import Behaviour, SimulatedFabric
from forewarn.wiring.assembly import Assembly


def behave(assembly: Assembly, machine: str, behavior: str) -> None:
    """Tell a machine how to behave."""
    assert isinstance(assembly.fabric, SimulatedFabric), "nobody is asked for others"
    _, name = assembly.directory.machine(machine)
    assembly.fabric.behave(name, Behaviour(behavior))


def take(assembly: Assembly, machine: str, impact: EventType, takes: timedelta) -> None:
    """Tell a machine how long an impact on it takes."""
    assert isinstance(assembly.fabric, SimulatedFabric), "nobody is asked for others"
    _, name = assembly.directory.machine(machine)
    assembly.fabric.take(name, impact, takes)
