"""Values take each other's place: `replace` is the one of `dataclasses`, only quicker.

The standard one builds a dictionary and goes through `__init__`, which writes each field of a frozen
value by name. That was a third of what an approval cost. This one copies slot by slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The type checker knows what this one may be told.
    from dataclasses import replace
else:
    from dataclasses import fields
    from functools import cache
    from operator import attrgetter

    @cache
    def _slots(kind: type) -> Any:  # noqa: ANN401 - seen by nobody but the one below
        """How the fields of a class are read, and written; and what is asserted of them."""
        names = [field.name for field in fields(kind)]
        writers = {name: getattr(kind, name).__set__ for name in names}
        return attrgetter(*names), writers, getattr(kind, "__post_init__", None)

    def replace(value: object, /, **changes: object) -> object:
        """A frozen value with slots, and at least two of them, as it is with these changes."""
        kind = type(value)
        read, writers, check = _slots(kind)
        copy = object.__new__(kind)
        for write, content in zip(writers.values(), read(value), strict=True):
            write(copy, content)
        for name, content in changes.items():
            writers[name](copy, content)
        if check is not None:
            check(copy)
        return copy


__all__ = ["replace"]
