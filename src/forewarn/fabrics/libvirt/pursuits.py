"""Pursuit: one order, taken step by step to its end.

Law: a docket is durable before the step that it names is tried, and each step looks before it acts.
So a step may be tried any number of times, by any number of processes after one another.

A reboot is a stop and a start, not a reset: a reset leaves no trace, so that nobody could tell after a
crash whether it has happened; a domain that was off has another number when it runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from forewarn.core.events import EventType
from forewarn.core.names import HostName
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt.descriptions import Description, Disk, describe
from forewarn.fabrics.libvirt.dockets import Docket, Step, over
from forewarn.fabrics.libvirt.link import Link
from forewarn.fabrics.libvirt.plans import PLANS, RETREAT, STOPPING, WATCHFUL, WHILE_OFF
from forewarn.fabrics.libvirt.surveys import Sight, State
from forewarn.ports.clock import Clock

# What a host refuses is tried this often before it has failed.
ATTEMPTS_MAX: Final = 5
# But for what would leave a machine down that was up: that is worth some minutes.
ATTEMPTS_MAX_DOWN: Final = 180
# Some guests miss the power button while they boot.
ASK_AGAIN_AFTER: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long things are waited for."""

    # Between the power button and the plug.
    stop: timedelta = timedelta(seconds=60)
    # Between two looks at an order.
    look: timedelta = timedelta(milliseconds=250)
    # Between two attempts at what was refused, or out of reach.
    again: timedelta = timedelta(seconds=1)
    # Between two surveys of a host where nothing stirs.
    survey: timedelta = timedelta(seconds=10)


class _Failed(Exception):
    """The order cannot be carried out, whatever is tried."""


class _Moved(_Failed):
    """Somebody else has the domain in his hands: let go of it."""


class Pursuit:
    """One order on its way. For one thread."""

    def __init__(
        self,
        docket: Docket,
        links: Callable[[HostName], Link],
        clock: Clock,
        patience: Patience,
        keep: Callable[[Docket], None],
        *,
        finds: Callable[[str, Collection[HostName]], HostName | None],
    ) -> None:
        """`links` finds a host's, or raises Unavailable; `keep` makes a docket durable.

        `finds` tells on which host a domain runs, apart from some, as far as they can be asked.
        """
        self.docket = docket
        self._finds = finds
        self._links = links
        self._clock = clock
        self._patience = patience
        self._keep = keep
        # When this process turned to the present step, on the clock that does not jump.
        self._turned = clock.elapsed() - max(clock.now() - docket.since, timedelta())
        # When the guest was asked to stop, first and last, by this process.
        self._asked: tuple[timedelta, timedelta] | None = None
        self._attempts = 0

    def look(self) -> bool:
        """Do what can be done now; whether the order is over. Raises: Unavailable."""
        while self.docket.is_open:
            if not self.docket.steps:
                self._keep_now(over(self.docket, self._clock.now()))
            elif not self._is_taken(self.docket.steps[0]):
                return False
        return True

    def _is_taken(self, step: Step) -> bool:
        """Try a step; whether the docket went on."""
        try:
            if step in WATCHFUL and self._was_undone(step):
                return True
            done = _STEPS[step](self)
        except _Failed as failure:
            self._fail(str(failure), is_ours=not isinstance(failure, _Moved))
            return True
        except Refused as refusal:
            self._attempts += 1
            if self._attempts < self._attempts_max(step):
                raise Unavailable(f"{self.docket.machine}: {refusal}; tried again") from refusal
            self._fail(str(refusal))
            return True
        if done:
            self._keep_now(replace(self.docket, steps=self.docket.steps[1:]))
        return done

    def _attempts_max(self, step: Step) -> int:
        was_up = self.docket.impact in (EventType.REBOOT, EventType.REDEPLOY)
        can_retreat = self.docket.target is not None and not self.docket.detail
        is_last = step is Step.RESUME or (step is Step.START and was_up and not can_retreat)
        return ATTEMPTS_MAX_DOWN if is_last else ATTEMPTS_MAX

    def _keep_now(self, docket: Docket) -> None:
        docket = replace(docket, since=self._clock.now())
        self._keep(docket)
        self.docket = docket
        self._turned = self._clock.elapsed()
        self._asked = None
        self._attempts = 0

    def _fail(self, why: str, *, is_ours: bool = True) -> None:
        before = self.docket
        detail = f"{before.detail}; {why}" if before.detail else why
        docket = replace(before, detail=detail)
        is_down = docket.impact is EventType.REDEPLOY and Step.STOP not in docket.steps
        if is_down and is_ours and not before.detail:
            # Better where it was than nowhere.
            self._keep_now(replace(docket, steps=RETREAT))
        else:
            self._keep_now(over(docket, self._clock.now()))

    def _was_undone(self, step: Step) -> bool:
        """Whether it was stopped and runs again where it was: then it is stopped once more.

        Somebody started it, or its host did when it came up. Raises: _Moved, Unavailable.
        """
        sight = self._left_behind(step)
        if sight is None:
            self._refuse_moved(step)
        is_back = self.docket.target is None and step is Step.START
        is_retreating = bool(self.docket.detail)
        if step not in WHILE_OFF or is_back or is_retreating or not _is_active(sight):
            return False
        plan = PLANS[self.docket.impact]
        first = next((at for at, one in enumerate(plan) if one in STOPPING), len(plan))
        self._keep_now(replace(self.docket, steps=plan[first:]))
        return True

    def _left_behind(self, step: Step) -> Sight | None:
        """The domain where it was when the order came."""
        if self.docket.target is not None and step in (Step.RENEW, Step.START):
            # That host has forgotten it. If it is dead by now, nobody has to wait for it.
            with suppress(Unavailable):
                return self._sight()
            return None
        return self._sight()

    def _refuse_moved(self, step: Step) -> None:
        ours = {self.docket.host}
        if step not in (Step.STOP, Step.DESTROY, Step.MEASURE, Step.DISCARD):
            ours.add(self.docket.destination)
        elsewhere = self._finds(self.docket.domain, ours)
        if elsewhere is not None:
            raise _Moved(
                f"{self.docket.machine} runs on {elsewhere}, where somebody else took it from "
                f"{self.docket.host}: announce it again, if it is still to be done"
            )

    # --- What is looked at -------------------------------------------------------------------

    @property
    def _source(self) -> Link:
        return self._links(self.docket.host)

    @property
    def _destination(self) -> Link:
        return self._links(self.docket.destination)

    @property
    def _description(self) -> Description:
        return describe(self.docket.xml)

    @property
    def _ephemeral(self) -> tuple[Disk, ...]:
        return self._description.ephemeral

    def _sight(self) -> Sight | None:
        return self._source.sight(self.docket.domain)

    def _is_off(self) -> bool:
        return not _is_active(self._sight())

    def _there(self) -> Sight:
        """The domain, which must be running or paused."""
        sight = self._sight()
        if sight is None:
            raise _Failed(f"{self.docket.machine} is gone from {self.docket.host}")
        if sight.state is State.OFF:
            raise _Failed(f"{self.docket.machine} is off on {self.docket.host}")
        return sight

    # --- The steps ---------------------------------------------------------------------------

    def pause(self) -> bool:
        if self._there().state is State.RUNNING:
            self._source.suspend(self.docket.domain)
        else:
            # Paused by us, in a life before this one, since it ran when the order came.
            passed = self._clock.elapsed() - self._turned
            left = max(self.docket.duration - passed, timedelta())
            self.docket = replace(self.docket, duration=left)
        return True

    def resume(self) -> bool:
        if self._there().state is State.RUNNING:
            return True
        if self._clock.elapsed() - self._turned < self.docket.duration:
            return False
        self._source.resume(self.docket.domain)
        return True

    def stop(self) -> bool:
        sight = self._sight()
        if sight is None or not sight.is_active:
            return True
        if self.docket.impact is EventType.REBOOT and sight.number != self.docket.number:
            return True
        elapsed = self._clock.elapsed()
        first, last = self._asked or (elapsed, elapsed - ASK_AGAIN_AFTER)
        # One that is paused feels no button.
        if sight.state is State.PAUSED or elapsed - first >= self._patience.stop:
            self._source.destroy(self.docket.domain)
        elif elapsed - last >= ASK_AGAIN_AFTER:
            self._asked = (first, elapsed)
            # Whatever speaks against asking does not speak against the plug, later.
            with suppress(Refused):
                self._source.ask_to_stop(self.docket.domain)
        return self._is_off()

    def destroy(self) -> bool:
        if not self._is_off():
            self._source.destroy(self.docket.domain)
        return self._is_off()

    def measure(self) -> bool:
        found = ((disk.path, self._source.volume_xml(disk.path)) for disk in self._ephemeral)
        # What has no file has nothing to lose.
        volumes = {path: xml for path, xml in found if xml is not None}
        # But for what an overtaken order took away.
        volumes = {**dict(self.docket.volumes), **volumes}
        self.docket = replace(self.docket, volumes=tuple(volumes.items()))
        return True

    def discard(self) -> bool:
        for disk in self._ephemeral:
            self._source.discard(disk.path)
        return True

    def renew(self) -> bool:
        if _is_active(self._destination.sight(self.docket.domain)):
            # It could not run without them.
            return True
        for path, xml in self.docket.volumes:
            self._destination.renew(path, xml)
        return True

    def fill(self) -> bool:
        for path, xml in self.docket.volumes:
            self._destination.fill(path, xml)
        return True

    def define(self) -> bool:
        if self.docket.is_persistent:
            try:
                self._destination.define(self.docket.xml)
            except Unavailable as error:
                if self._clock.elapsed() - self._turned < self._patience.stop:
                    raise
                # It was started nowhere yet, and is down meanwhile.
                self.docket = replace(self.docket, target=None)
                raise _Failed(str(error)) from error
        return True

    def undefine(self) -> bool:
        sight = self._sight()
        if sight is not None and sight.is_persistent:
            keep_nvram = self.docket.impact is not EventType.TERMINATE
            self._source.undefine(self._description, keep_nvram=keep_nvram)
        return True

    def start(self) -> bool:
        link = self._destination
        sight = link.sight(self.docket.domain)
        if sight is None and self.docket.is_persistent:
            raise _Failed(f"{self.docket.machine} is gone from {link.host}")
        if sight is None:
            link.create(self.docket.xml)
        elif not sight.is_active:
            link.start(self.docket.domain)
        if self.docket.impact is EventType.REDEPLOY:
            self._settle_on(link)
        return True

    def _settle_on(self, link: Link) -> None:
        """What libvirt does not keep with a definition, and not before it runs there and nowhere else."""
        if self.docket.is_persistent and self.docket.starts_with_host:
            link.start_with_host(self.docket.domain)

    def migrate(self) -> bool:
        there = self._destination.sight(self.docket.domain)
        if self._is_off():
            if not _is_active(there):
                raise _Failed(f"{self.docket.machine} went off while it was to move")
            self._settle_on(self._destination)
            return True
        if self._source.is_migrating(self.docket.domain):
            return False
        is_persistent = self.docket.is_persistent
        self._source.migrate(self.docket.domain, self._destination, is_persistent=is_persistent)
        self._settle_on(self._destination)
        return True

    def retreat(self) -> bool:
        target = self.docket.target
        there = None if target is None else self._links(target).sight(self.docket.domain)
        if _is_active(there):
            raise _Failed(f"it runs on {target} after all")
        if self.docket.is_persistent and self._sight() is None:
            self._source.define(self.docket.xml)
        if target is not None and there is not None and there.is_persistent:
            self._links(target).undefine(self._description, keep_nvram=True)
        detail = f"{self.docket.detail}; it goes back to {self.docket.host}"
        self.docket = replace(self.docket, target=None, detail=detail)
        return True


_STEPS: Final[Mapping[Step, Callable[[Pursuit], bool]]] = {
    Step.PAUSE: Pursuit.pause,
    Step.RESUME: Pursuit.resume,
    Step.STOP: Pursuit.stop,
    Step.DESTROY: Pursuit.destroy,
    Step.MEASURE: Pursuit.measure,
    Step.DISCARD: Pursuit.discard,
    Step.RENEW: Pursuit.renew,
    Step.FILL: Pursuit.fill,
    Step.DEFINE: Pursuit.define,
    Step.UNDEFINE: Pursuit.undefine,
    Step.START: Pursuit.start,
    Step.MIGRATE: Pursuit.migrate,
    Step.RETREAT: Pursuit.retreat,
}


def _is_active(sight: Sight | None) -> bool:
    return sight is not None and sight.is_active
