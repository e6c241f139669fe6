"""The operators' JSON, as it is asked: the bodies of requests, read strictly, and the codec.

A member that nobody knows is refused, so that a misspelled one is not silently without effect.
What is shown in return is in `control_forms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal, TypeVar, get_args, get_type_hints

import msgspec

from forewarn.core import periods
from forewarn.core.events import ANNOUNCED_TYPES, Cause, EventSource, EventType, Result
from forewarn.core.periods import spell
from forewarn.core.wishes import IfNotTold, Wish
from forewarn.errors import Malformed
from forewarn.wire.control_forms import AnnouncedWord, CauseWord, Form, Instant, SourceWord

NOTICE_SECONDS_MAX: Final = int(periods.ANNOUNCED_AHEAD_MAX.total_seconds())
DURATION_SECONDS_MAX: Final = int(periods.DURATION_MAX.total_seconds())
POSTPONED_SECONDS_MAX: Final = NOTICE_SECONDS_MAX
DESCRIPTION_LENGTH_MAX: Final = 1000
NAME_LENGTH_MAX: Final = 300

_AN_INSTANT: Final = "an instant with its time zone, such as 2026-11-16T09:00:00Z"

_YEAR, _DAY = spell(periods.ANNOUNCED_AHEAD_MAX), spell(periods.DURATION_MAX)
# What to give, for members that people type as options of the command line.
_REMEDIES: Final[Mapping[str, str]] = {
    "machines": f"a VM's name is text of 1 to {NAME_LENGTH_MAX} characters",
    "hosts": f"--host is text of 1 to {NAME_LENGTH_MAX} characters",
    "notice_seconds": f"--notice is 0s to {_YEAR}; as notice_seconds, a number",
    "duration_seconds": f"--duration is 0s to {_DAY}; as duration_seconds, a number",
    "description": f"--description is text of at most {DESCRIPTION_LENGTH_MAX} characters",
    "by_seconds": f"--by is more than 0s and at most {_YEAR}; as by_seconds, a number",
    "times": "--times is a whole number from 1",
    "delay_seconds": f"--delay is 0s to {_DAY}; as delay_seconds, a number",
    "to": f"--to is {_AN_INSTANT}",
    "before": f"--before is {_AN_INSTANT}",
}

# How msgspec begins a complaint about a word, and ends one about a member.
_NO_SUCH_WORD: Final = "Invalid enum value"
_MEMBER: Final = re.compile(r" - at `\$\.(\w+).*`")

# Sums with such an instant stay within the calendar, whatever is added.
_YEARS: Final = range(1970, 9000)

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
_Notice = Annotated[float, msgspec.Meta(ge=0, le=NOTICE_SECONDS_MAX)]
_Duration = Annotated[float, msgspec.Meta(ge=0, le=DURATION_SECONDS_MAX)]
_Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_LENGTH_MAX)]

_EnumT = TypeVar("_EnumT", bound=Enum)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""


_AskedT = TypeVar("_AskedT", bound=Asked)


class Nothing(Asked, frozen=True):
    """The path says it all."""


class FleetFile(Asked, frozen=True, kw_only=True):
    """The text of a fleet file, and what to call the file in messages."""

    toml: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)] = "fleet.toml"


class Announcement(Asked, frozen=True, kw_only=True):
    """An impact on some machines, and on all machines of some hosts."""

    type: AnnouncedWord
    machines: tuple[_Name, ...] = ()
    hosts: tuple[_Name, ...] = ()
    source: SourceWord = EventSource.PLATFORM.value
    cause: CauseWord = Cause.MAINTENANCE.value
    notice_seconds: _Notice | None = None
    duration_seconds: _Duration | None = None
    description: _Description | None = None
    unannounced: bool = False

    @property
    def wish(self) -> Wish:
        """What is wished for. Raises: Malformed."""
        return Wish(
            type=named(ANNOUNCED_TYPES, "type", self.type),
            source=named(EventSource, "source", self.source),
            cause=named(Cause, "cause", self.cause),
            machines=self.machines,
            description=_printable(self.description),
            duration=_span(self.duration_seconds),
            notice=_span(self.notice_seconds),
            if_not_told=IfNotTold.RUN_UNANNOUNCED if self.unannounced else IfNotTold.REFUSE,
        )


class Failure(Asked, frozen=True, kw_only=True):
    """A host that has failed, or that will: what becomes of all machines on it."""

    kind: Literal["predicted", "actual"]
    # Azure's own pages disagree on what a failing host means for its machines.
    type: AnnouncedWord = EventType.REBOOT.value
    notice_seconds: _Notice | None = None
    duration_seconds: _Duration | None = None
    description: _Description | None = None
    unannounced: bool = False

    def announcement(self, host: str) -> Announcement:
        """The same, as it is announced to whoever is on that host."""
        failed = self.kind == "actual"
        return Announcement(
            type=self.type,
            hosts=(host,),
            cause=(Cause.HARDWARE_FAILURE if failed else Cause.PREDICTED_FAILURE).value,
            notice_seconds=self.notice_seconds,
            duration_seconds=self.duration_seconds,
            description=self.description,
            unannounced=self.unannounced,
        )


class Postponement(Asked, frozen=True, kw_only=True):
    """A later instant, or a while: one of the two."""

    to: Instant | None = None
    by_seconds: Annotated[float, msgspec.Meta(gt=0, le=POSTPONED_SECONDS_MAX)] | None = None

    @property
    def later(self) -> datetime | timedelta:
        """Until when, or by how much. Raises: Malformed."""
        if self.to is not None and self.by_seconds is None:
            return _utc(self.to)
        if self.by_seconds is not None and self.to is None:
            return timedelta(seconds=self.by_seconds)
        raise Malformed(
            "give either --to, an instant, or --by, a length of time; as `to` or `by_seconds`"
        )


class Resolution(Asked, frozen=True, kw_only=True):
    """How an event ended, by an operator's word."""

    result: Literal["completed", "failed"]

    @property
    def word(self) -> Result:
        return Result.DONE if self.result == "completed" else Result.FAILED


class Pruning(Asked, frozen=True, kw_only=True):
    """Since when the journal is to be kept."""

    before: Instant

    @property
    def instant(self) -> datetime:
        """Since when. Raises: Malformed."""
        return _utc(self.before)


class Backup(Asked, frozen=True, kw_only=True):
    """Where to put a backup, on the service's machine."""

    path: Annotated[str, msgspec.Meta(max_length=4096)]

    @property
    def file(self) -> PurePosixPath:
        """The backup's file. Raises: Malformed."""
        file = PurePosixPath(self.path)
        if not file.is_absolute() or "\0" in self.path:
            raise Malformed(
                f"{self.path!r} is not an absolute path: the service has a working directory of "
                "its own; begin with /"
            )
        return file


class Behavior(Asked, frozen=True, kw_only=True):
    """What a machine of the simulated fabric does with its orders from now on.

    And how long it takes over those of one type, whatever duration its guests are told.
    """

    machine: _Name
    behavior: Literal["obeys", "fails", "hangs", "refuses", "forgets", "unreachable"] | None = None
    type: AnnouncedWord | None = None
    takes_seconds: _Duration | None = None

    @property
    def taking(self) -> tuple[EventType, timedelta] | None:
        """Which impact takes how long; None: nothing is said of that. Raises: Malformed."""
        if self.type is None and self.takes_seconds is None and self.behavior is not None:
            return None
        if self.type is None or self.takes_seconds is None:
            raise Malformed("give behavior; or type and takes_seconds, which go together; or all")
        return named(ANNOUNCED_TYPES, "type", self.type), timedelta(seconds=self.takes_seconds)


def load(kind: type[_AskedT], body: bytes) -> _AskedT:
    """A request's body; an empty one counts as `{}`. Raises: Malformed."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    # What is not JSON, what is not of this form, and bytes that are no text.
    except ValueError as error:
        raise Malformed(_complaint(kind, str(error))) from error


def dump(form: Form) -> bytes:
    """An answer's body."""
    return msgspec.json.encode(form)


def instant(member: str, text: str) -> datetime:
    """An instant that is given as text. Raises: Malformed."""
    try:
        return _utc(msgspec.convert(text, Instant))
    except msgspec.ValidationError as error:
        raise Malformed(f"{member} is {_AN_INSTANT}, not {text[:50]!r}") from error


def _complaint(kind: type[Asked], told: str) -> str:
    """What msgspec tells, in words for whoever typed the value."""
    member = _MEMBER.search(told)
    if member is None:
        return f"the body cannot be understood: {told}"
    plain = f"the body cannot be understood: {member[1]}: {told[: member.start()]}"
    if told.startswith(_NO_SUCH_WORD):
        words = _words(get_type_hints(kind).get(member[1]))
        plain += f": give one of {', '.join(words)}" if words else ""
    return _REMEDIES.get(member[1], plain)


def _words(hint: object) -> list[str]:
    """Those that a member may have."""
    if isinstance(hint, str):
        return [hint]
    return [word for part in get_args(hint) for word in _words(part)]


def named(kind: Iterable[_EnumT], member: str, word: str) -> _EnumT:
    """The value that a word stands for, however it is capitalized."""
    values = tuple(kind)
    for value in values:
        if value.value.lower() == word.lower():
            return value
    choices = ", ".join(str(value.value) for value in values)
    raise Malformed(f"no {member} is called {word[:50]!r}: give one of {choices}")


def _printable(text: str | None) -> str | None:
    if text is not None and not text.isprintable():
        raise Malformed("a description is one line of text: leave control characters out")
    return text


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _utc(instant: datetime) -> datetime:
    if instant.year not in _YEARS:
        raise Malformed(f"the year {instant.year} is out of reach: check the date")
    return instant.astimezone(UTC)
