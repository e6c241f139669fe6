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
from forewarn.agent.rules import Rule
from forewarn.agent.settings import Command, Settings
from forewarn.client.documents import Event

# What editors and packages leave behind.
_LITTER: Final = re.compile(r"^\.|~$|\.(bak|swp|orig|rej)$|\.(dpkg|ucf)-\w+$")

_log: Final = logging.getLogger("forewarn.agent")


class FileHandbook:
    """Looks the directory up whenever a phase begins: what was put there meanwhile counts."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._warned: set[Path] = set()

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
            if os.access(file, os.X_OK):
                yield Hook(file.name, (str(file),))
            elif file not in self._warned:
                self._warned.add(file)
                _log.warning("%s is not run: it is not executable: chmod +x %s", file, file)

    def _of_file(self, event: Event, phase: Phase) -> Iterator[Hook]:
        for command in self._settings.commands:
            if command.phase is phase and _is_for(command, event):
                yield command.hook


def _files(directory: Path) -> list[Path]:
    try:
        found = list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _log.error("the hooks in %s cannot be read: %s", directory, error)
        return []
    return [file for file in found if not _LITTER.search(file.name) and file.is_file()]


def _is_for(command: Command, event: Event) -> bool:
    rule = Rule(types=command.types, sources=command.sources)
    return rules.mismatch(rule, event, "") is None
