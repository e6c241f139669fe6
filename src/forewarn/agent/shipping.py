"""What goes into a VM with the agent: all of ours that it imports."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Where forewarn's modules are.
SOURCE: Final = Path(__file__).parents[1]
# An import contract keeps it so, and a test runs the package.
_MODULES: Final = ("__init__.py", "errors.py", "statuses.py", "systemd.py")
_ROOMS: Final = ("client", "tables", "agent")


def shipped() -> tuple[Path, ...]:
    """The modules, as they lie below `SOURCE`."""
    rooms = (file.relative_to(SOURCE) for room in _ROOMS for file in (SOURCE / room).rglob("*.py"))
    return (*map(Path, _MODULES), *sorted(rooms))
