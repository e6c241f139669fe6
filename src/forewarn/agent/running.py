"""From settings to an agent at work."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from forewarn.agent.agent import Agent, Approvals, Desires
from forewarn.agent.casebook import DirectoryCasebook, MemoryCasebook
from forewarn.agent.dry import DryApprovals, DryRuns
from forewarn.agent.handbook import FileHandbook
from forewarn.agent.loop import Bell, Loop
from forewarn.agent.news import Kind, News
from forewarn.agent.reports import Report
from forewarn.agent.runs import ProcessRuns
from forewarn.agent.settings import Settings
from forewarn.agent.strangers import Strangers
from forewarn.client import Client
from forewarn.systemd import Systemd

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_LEVELS: Final[Mapping[Kind, int]] = {Kind.FAILED: logging.WARNING, Kind.ALERT: logging.ERROR}

_log: Final = logging.getLogger("forewarn.agent")


def run(settings: Settings, environment: Mapping[str, str], *, is_dry: bool) -> None:
    """Work until SIGTERM or SIGINT. Raises: Malformed, Unavailable."""
    systemd = Systemd(environment.get("NOTIFY_SOCKET"))
    bell = Bell()
    with ExitStack() as stack:
        client = stack.enter_context(Client(settings.endpoint, name=settings.name))
        make = _maker(settings, environment, bell, is_dry=is_dry)
        loop = Loop(client, bell, _now, make, _pulse(systemd), systemd.watchdog)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.stop())
        systemd.ready("looking for the metadata service")
        _log.info(
            "at work%s: events are read at %s", " (dry run)" if is_dry else "", client.endpoint
        )
        loop.run()
        systemd.stopping()
        _log.info("stopped; hooks that run go on")


def _maker(
    settings: Settings, environment: Mapping[str, str], bell: Bell, *, is_dry: bool
) -> Callable[[str, Approvals], Agent]:
    # A mistake in the settings is to be known at the start, not when the endpoint answers.
    casebook = MemoryCasebook() if is_dry else DirectoryCasebook(settings.state / "cases")
    runs = DryRuns() if is_dry else ProcessRuns(settings.state / "runs", environment, bell.ring)

    def make(name: str, approvals: Approvals) -> Agent:
        _log.info("this VM is %s", name)
        return Agent(
            Desires(name, undo_waits=settings.undo_waits),
            boot=boot_id(),
            handbook=FileHandbook(settings, name),
            casebook=casebook,
            runs=runs,
            approvals=DryApprovals() if is_dry else approvals,
            neighborhood=Strangers(),
            tell=_tell,
        )

    return make


def _tell(news: News) -> None:
    level = _LEVELS.get(news.kind, logging.INFO)
    _log.log(level, "event %s (%s): %s", news.event.id, news.event.type, news.what)


def _pulse(systemd: Systemd) -> Callable[[Report], None]:
    def pulse(report: Report) -> None:
        count = sum(not case.is_over for case, _ in report.cases)
        systemd.status(report.trouble or f"{count} events in hand")

    return pulse


def _now() -> datetime:
    return datetime.now(UTC)


def boot_id() -> str:
    """Which boot of this VM it is."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        # Not Linux. The process's own start is the next best: hooks are run again, at worst.
        return f"{os.getpid()}"
