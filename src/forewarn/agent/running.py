"""From settings to an agent at work."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from forewarn.agent import deliveries
from forewarn.agent.agent import Agent, Approvals, Desires
from forewarn.agent.answers import Look, Reply, answer
from forewarn.agent.casebook import Casebook, DirectoryCasebook, MemoryCasebook
from forewarn.agent.dry import DryApprovals, DryRuns
from forewarn.agent.endpoint import ReportServer
from forewarn.agent.handbook import FileHandbook
from forewarn.agent.health import Health
from forewarn.agent.loop import Bell, Loop
from forewarn.agent.news import Kind, News, Spell
from forewarn.agent.notifications import Notifications
from forewarn.agent.peers import AskedNeighborhood, asking
from forewarn.agent.reports import Report
from forewarn.agent.rules import Readiness
from forewarn.agent.runs import ProcessRuns
from forewarn.agent.settings import Settings
from forewarn.client import Client
from forewarn.client.contact import elapsed
from forewarn.errors import Unavailable
from forewarn.systemd import Systemd

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_LEVELS: Final[Mapping[Kind, int]] = {
    Kind.FAILED: logging.WARNING,
    Kind.ALERT: logging.ERROR,
    Kind.TROUBLE: logging.WARNING,
}

_log: Final = logging.getLogger("forewarn.agent")


def run(settings: Settings, environment: Mapping[str, str], *, is_dry: bool) -> None:
    """Work until SIGTERM or SIGINT. Raises: Malformed, Unavailable."""
    # A mistake in the settings is to be known at the start, not when the endpoint answers.
    for receiver in settings.notify:
        deliveries.check(receiver.url)
    casebook = MemoryCasebook() if is_dry else DirectoryCasebook(settings.state / "cases")
    systemd = Systemd(environment.get("NOTIFY_SOCKET"))
    bell = Bell()
    with ExitStack() as stack:
        if not is_dry:
            stack.enter_context(alone(settings.state))
        receivers = () if is_dry else settings.notify
        tell = _teller(stack.enter_context(Notifications(receivers)))
        client = stack.enter_context(Client(settings.endpoint, name=settings.name))
        make = _maker(settings, environment, bell, casebook, tell, is_dry=is_dry)
        pulse = pulsing(systemd, tell)
        known = tuple(casebook.cases())
        loop = Loop(client, bell, _now, make, pulse, systemd.watchdog, known=known)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.stop())
        if settings.listen:
            _serve(stack, settings, environment, loop, is_dry=is_dry)
        systemd.ready("looking for the metadata service")
        _log.info(
            "at work%s: events are read at %s", " (dry run)" if is_dry else "", client.endpoint
        )
        loop.run()
        systemd.stopping()
        _log.info("stopped; hooks that run go on")


@contextmanager
def alone(state: Path) -> Iterator[None]:
    """Keep every other agent from the same state: two would run each hook twice. Raises: Unavailable."""
    try:
        lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot write to {state}: {error.strerror}: have `state` name another directory") from error  # fmt: skip
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Unavailable(
            f"another agent is at work with {state}: stop it first, or try with --dry-run, which may run beside it"
        ) from None
    try:
        yield
    finally:
        os.close(lock)


def _maker(
    settings: Settings,
    environment: Mapping[str, str],
    bell: Bell,
    casebook: Casebook,
    tell: Callable[[News], None],
    *,
    is_dry: bool,
) -> Callable[[str, Approvals], Agent]:
    runs = DryRuns() if is_dry else ProcessRuns(settings.state / "runs", environment, bell.ring)
    ask = asking(settings.peers, environment)

    def make(name: str, approvals: Approvals) -> Agent:
        _log.info("this VM is %s", name)
        handbook = FileHandbook(settings, name)
        handbook.warn()
        return Agent(
            Desires(name, undo_waits=settings.undo_waits),
            boot=boot_id(),
            handbook=handbook,
            casebook=casebook,
            runs=runs,
            approvals=DryApprovals() if is_dry else approvals,
            neighborhood=AskedNeighborhood(name, settings.peers.members, ask, bell.ring),
            tell=tell,
        )

    return make


def _serve(
    stack: ExitStack,
    settings: Settings,
    environment: Mapping[str, str],
    loop: Loop,
    *,
    is_dry: bool,
) -> None:
    """Open the agent's own endpoint, until the stack is left. Raises: Unavailable."""
    health = Health(settings.healthy, environment)

    def reply(target: str) -> Reply:
        look = Look(loop.report, loop.counts, is_at_work=loop.is_at_work)
        return answer(target, look, health.is_well)

    try:
        server = stack.enter_context(ReportServer(settings.listen, reply))
    except Unavailable as error:
        if not is_dry:
            raise
        # A dry run is often beside an agent that is at work.
        _log.warning("%s", error)
    else:
        _log.info("listening at %s", server.url)


def _teller(notifications: Notifications) -> Callable[[News], None]:
    def tell(news: News) -> None:
        level = _LEVELS.get(news.kind, logging.INFO)
        if news.event is None:
            _log.log(level, "%s", news.what)
        else:
            _log.log(level, "event %s (%s): %s", news.event.id, news.event.type, news.what)
        notifications.tell(news)

    return tell


def pulsing(
    systemd: Systemd, tell: Callable[[News], None], clock: Callable[[], timedelta] = elapsed
) -> Callable[[Report], None]:
    """Who hears every report: systemd is told the state, the log why events wait, and everybody of trouble that lasts."""
    spell = Spell()
    said = ""
    held: Mapping[str, str] = {}

    def pulse(report: Report) -> None:
        nonlocal spell, said, held
        spell, what = spell.after(report.trouble, clock())
        if what is not None:
            tell(News(Kind.TROUBLE, report.name or "this VM", None, what))
        count = sum(not case.is_over for case, _ in report.cases)
        status = report.trouble or f"{count} events in hand"
        if status != said:
            said = status
            systemd.status(status)
        held_before, held = held, dict(_held(report))
        for event, why in held.items():
            if held_before.get(event) != why:
                _log.info("event %s is not approved: %s", event, why)

    return pulse


def _held(report: Report) -> Iterator[tuple[str, str]]:
    """The events that are prepared for and not approved all the same, and why."""
    for case, verdict in report.cases if report.is_settled else ():
        is_open = case.is_pending and case.approved is None and case.refused is None
        if is_open and not verdict.approves and case.readiness is not Readiness.UNDER_WAY:
            yield f"{case.event.id} ({case.event.type})", verdict.why


def _now() -> datetime:
    return datetime.now(UTC)


def boot_id() -> str:
    """Which boot of this VM it is."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        # Not Linux. The process's own start is the next best: hooks are run again, at worst.
        return f"{os.getpid()}"
