"""How a face lists what it answers: as rows, which become routes over what the face stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from forewarn.core.rights import Right
from forewarn.web.calls import Answer, Call
from forewarn.web.described import Described
from forewarn.web.routes import Route

_PartsT = TypeVar("_PartsT")


class Row(NamedTuple, Generic[_PartsT]):
    """One thing that can be asked here: the right that it takes, who answers, and how it is told."""

    method: str
    path: str
    right: Right
    handle: Callable[[_PartsT, Call], Answer]
    told: Described | None = None


def routes_of(rows: Iterable[Row[_PartsT]], parts: _PartsT) -> tuple[Route, ...]:
    """The rows as routes over these parts."""
    return tuple(
        Route(
            method=row.method,
            path=row.path,
            right=row.right,
            handle=partial(row.handle, parts),
            told=row.told,
        )
        for row in rows
    )
