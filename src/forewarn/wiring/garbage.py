"""What the garbage collector need not look at."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made inside stays, and the garbage collector need never look at it.

    A million machines are ten million objects: looking at them all would hold up every guest for
    seconds, now and then.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
