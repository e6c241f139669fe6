"""The owner's handbook: the rules of the file, and the hooks of the directory and of the file."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forewarn.agent import rules
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.imagining import NOTICES
from forewarn.agent.rules import Rule
from forewarn.agent.settings import HOOKS, Command, Settings
from forewarn.client.documents import Event

# What editors and packages leave behind.
_LITTER: Final = re.compile(r"^\.|~$|\.(bak|swp|orig|rej)$|\.(dpkg|ucf)-\w+$")

_NAMED: Final = tuple(f"on{one}.sh" for one in NOTICES)

_log: Final = logging.getLogger("forewarn.agent")


class FileHandbook:
    """Looks the directory up whenever a phase begins: what was put there meanwhile counts."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._warned: set[Path] = set()

    def warn(self) -> None:
        """Tell of all that is in the directory as if it were run, and is not: its owner relies on it."""
        directory = self._settings.hooks
        if not directory.is_dir():
            # Where nobody named one, there need be none.
            level = logging.INFO if directory == HOOKS else logging.WARNING
            what = "there is no directory %s, and so no hook of it is run: make it, or have `hooks` name another"
            _log.log(level, what, directory)
        for warning in _misplaced(directory):
            _log.warning("%s", warning)
        for phase in Phase:
            for file in _files(directory / phase.value):
                self._is_executable(file)

    def rule(self, event: Event) -> Rule:
        return rules.chosen(self._settings.rules, event, self._name)[1]

    def hooks(self, event: Event, phase: Phase) -> tuple[Hook, ...]:
        found = [*self._of_directory(event, phase), *self._of_file(event, phase)]
        return tuple(sorted(found, key=lambda hook: hook.name))

    def _of_directory(self, event: Event, phase: Phase) -> Iterator[Hook]:
        named = self._settings.hooks / f"on{event.type}.sh"
        files = _files(self._settings.hooks / phase.value)
        if phase is Phase.PREPARE and event.type.isalpha() and named.is_file():
            files.append(named)
        for file in files:
            if self._is_executable(file):
                yield Hook(file.name, (str(file),))

    def _is_executable(self, file: Path) -> bool:
        if os.access(file, os.X_OK):
            return True
        if file not in self._warned:
            self._warned.add(file)
            _log.warning("%s is not run: it is not executable: chmod +x %s", file, file)
        return False

    def _of_file(self, event: Event, phase: Phase) -> Iterator[Hook]:
        for command in self._settings.commands:
            if command.phase is phase and _is_for(command, event):
                yield command.hook


def _files(directory: Path) -> list[Path]:
    return [file for file in _entries(directory) if file.is_file()]


def _entries(directory: Path) -> list[Path]:
    try:
        found = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _log.error("the hooks in %s cannot be read: %s", directory, error)
        return []
    return [file for file in found if not _LITTER.search(file.name)]


def _misplaced(directory: Path) -> Iterator[str]:
    """What looks like a hook, and is none because of its place or its name."""
    phases = {phase.value for phase in Phase}
    for file in _entries(directory):
        is_known = file.name in phases or file.name in _NAMED
        looks_so = file.name.lower().startswith("on") or os.access(file, os.X_OK)
        if not is_known and looks_so:
            yield (
                f"{file} is not run: hooks belong into {directory}/prepare, started or undo, "
                f"or are called {', '.join(_NAMED)}"
            )
    for phase in Phase:
        for file in _entries(directory / phase.value):
            if not file.is_file():
                what = "it points to nothing" if file.is_symlink() else "it is not a file"
                yield f"{file} is not run: {what}"


def _is_for(command: Command, event: Event) -> bool:
    rule = Rule(types=command.types, sources=command.sources)
    return rules.mismatch(rule, event, "") is None
