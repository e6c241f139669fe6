"""Everything forewarn raises on purpose, sorted by what the catcher should do next.

    ForewarnError
    ├── Malformed     fix the input: it could not be understood
    ├── Refused       ask for something else: it was understood, and is not allowed
    │   ├── Unknown   look the name up: nothing here is called that
    │   └── Forbidden ask as somebody else: the caller has no right to it
    ├── Conflict      reload and decide again: someone else committed first
    └── Unavailable   wait and try again: a store or a fabric is out of reach

A new family is added only when some catcher would behave differently. Whatever is not
a ForewarnError is a bug, and is left to crash.
"""

from __future__ import annotations

from collections.abc import Sequence


class ForewarnError(Exception):
    """Base of all deliberate errors. Never raised itself."""


class Malformed(ForewarnError):
    """The input could not be understood; nothing was changed."""


class Refused(ForewarnError):
    """The request was understood and is not allowed; nothing was changed."""


class Unknown(Refused):
    """Nothing here has that name; nothing was changed."""


class Forbidden(Refused):
    """The caller has no right to this; nothing was changed."""


class Conflict(ForewarnError):
    """Another writer committed first; nothing was changed."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"someone else committed first: {', '.join(keys)}")
        self.keys = tuple(keys)


class Unavailable(ForewarnError):
    """A store or a fabric could not be reached; nothing is known to have changed."""


class OutcomeUnknown(Unavailable):
    """A commit may or may not have taken effect: repeat it under the same commit id."""


class Damaged(Unavailable):
    """What is stored cannot be read any more: waiting does not help, a restored backup does."""


class Fenced(Refused):
    """The lease was lost to another owner; nothing was written."""


class InUse(Refused):
    """Another process holds it, and lets nobody else in."""


class Pruned(Refused):
    """The journal no longer reaches back to that cursor: scan, then follow from the end."""


class IllegalTransition(Refused):
    """The event's status does not allow this step."""

    def __init__(self, event_id: str, status: str, step: str) -> None:
        super().__init__(f"event {event_id} is {status}: cannot {step}")


class NoticeNotServed(Refused):
    """The event is neither approved nor past its notice."""

    def __init__(self, event_id: str, not_before: str) -> None:
        super().__init__(f"event {event_id} may not start before {not_before}")


class UnknownEvent(Unknown):
    """No event of that id is known in the caller's scope."""

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"no event {event_id} is known here; `forewarn events` lists the open ones"
        )


class Unsuccessful(ForewarnError):
    """What was waited for is over, and did not succeed."""


class Unfinished(ForewarnError):
    """What was waited for goes on, and we do not wait for it any longer."""
