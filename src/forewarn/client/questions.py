"""What a VM asks at the endpoint, and whether an answer is one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from forewarn.client.documents import dump_approval, load_error
from forewarn.client.messages import Answer, Request

VERSION: Final = "2020-07-01"
# Of /metadata/instance, which has versions of its own. Old, and known everywhere.
INSTANCE_VERSION: Final = "2021-02-01"

_EVENTS: Final = f"/metadata/scheduledevents?api-version={VERSION}"
OK: Final = 200
NOT_MODIFIED: Final = 304
BAD_REQUEST: Final = 400
_CLIENT_ERRORS: Final = range(400, 500)
# Not found: not there yet. Timeout, gone, too many: Azure says to ask again.
_PASSING: Final = (404, 408, 410, 429)

NAME: Final = Request(f"/metadata/instance?api-version={INSTANCE_VERSION}")
DOCUMENT: Final = Request(_EVENTS)


def document(tag: str | None, wait: timedelta) -> Request:
    """The document; unless it is the one of that tag, for as long as the server may wait."""
    seconds = int(wait.total_seconds())
    target = f"{_EVENTS}&wait={seconds}" if seconds else _EVENTS
    headers: Mapping[str, str] = {} if tag is None else {"If-None-Match": tag}
    return Request(target, headers)


def approval(event_ids: tuple[str, ...]) -> Request:
    """Leave for these events to start."""
    return Request(_EVENTS, body=dump_approval(event_ids))


def is_final(answer: Answer) -> bool:
    """Whether asking the same again would be answered the same."""
    return answer.status in _CLIENT_ERRORS and answer.status not in _PASSING


def complaint(answer: Answer) -> str:
    """What is wrong with an answer, in words."""
    said = load_error(answer.body)
    return f"answered {answer.status}: {said}" if said else f"answered {answer.status}"
