"""Mishaps: faults as receivers of webhooks feel them, told twice or in another order.

The order of each scope is promised, and so the courier sends nothing before it knows that what comes first
was taken. A delivery that is to come late is therefore called taken and held back here: until the next one
of its scope was taken, or for as long as the fault says. Nobody but an emulator has this.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from forewarn.core.names import ScopeId
from forewarn.core.webhooks import WebhookId
from forewarn.ports.hooks import Post
from forewarn.service.deliveries import Delivery, carry
from forewarn.web.faults import Fault, FaultKind, Faults

# What was held back and is then not taken is tried again, so often and after so long.
TRIES_MAX: Final = 10
TRY_AGAIN: Final = timedelta(seconds=1)

_KINDS: Final = (FaultKind.WEBHOOK_DUPLICATE, FaultKind.WEBHOOK_REORDERED)
_Key = tuple[WebhookId, ScopeId]


@dataclass(frozen=True, slots=True)
class _Held:
    """A delivery that is called taken, and is not."""

    delivery: Delivery
    due: timedelta
    tries: int = 0


class Mishaps:
    """Carries deliveries out, and some of them wrongly. Safe to call from any thread."""

    def __init__(
        self, faults: Faults, post: Post, send: Callable[[Delivery], None], log: logging.Logger
    ) -> None:
        """`send` has a delivery carried out by whoever is free."""
        self._faults = faults
        self._post = post
        self._send = send
        self._log = log
        self._lock = threading.Lock()
        # One for each webhook and scope, until the next of them was taken.
        self._held: dict[_Key, _Held] = {}
        # Those whose time came otherwise, on their way or to be tried again.
        self._late: dict[str, _Held] = {}
        self._sent: set[str] = set()

    def carry(self, delivery: Delivery) -> str:
        """Carry a delivery out; why it was not taken, "" if it was or that is what is said."""
        with self._lock:
            late = self._late.get(_name(delivery))
        if late is not None:
            self._carry_late(late)
            return ""
        key = _key(delivery)
        with self._lock:
            holds = key in self._held
        fault = None if holds else self._strike(delivery)
        if fault is not None and fault.kind is FaultKind.WEBHOOK_REORDERED:
            with self._lock:
                self._held[key] = _Held(delivery, self._faults.patience.elapsed() + fault.delay)
            return ""
        why = carry(self._post, delivery)
        if fault is not None and not why:
            # Once more; whether that is taken makes no difference.
            carry(self._post, delivery)
        if holds and not why:
            self._let_go(key)
        return why

    def look_at_the_clock(self) -> None:
        """Send what was held back for long enough."""
        elapsed = self._faults.patience.elapsed()
        with self._lock:
            for key, held in tuple(self._held.items()):
                if held.due <= elapsed:
                    self._late[_name(held.delivery)] = self._held.pop(key)
            due = [
                held.delivery
                for name, held in self._late.items()
                if held.due <= elapsed and name not in self._sent
            ]
            self._sent |= {_name(delivery) for delivery in due}
        for delivery in due:
            self._send(delivery)

    def _strike(self, delivery: Delivery) -> Fault | None:
        entry = delivery.entry
        event = None if entry is None else entry.event
        if entry is None or event is None:
            return None
        return self._faults.strike(_KINDS, entry.scope, event.machines)

    def _let_go(self, key: _Key) -> None:
        """Carry out what was held back, now that the next one was taken."""
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None:
                self._late[_name(held.delivery)] = held
                self._sent.add(_name(held.delivery))
        if held is not None:
            self._carry_late(held)

    def _carry_late(self, late: _Held) -> None:
        name = _name(late.delivery)
        why = carry(self._post, late.delivery)
        tries = late.tries + 1
        with self._lock:
            self._sent.discard(name)
            if why and tries < TRIES_MAX:
                due = self._faults.patience.elapsed() + TRY_AGAIN
                self._late[name] = replace(late, due=due, tries=tries)
                return
            self._late.pop(name, None)
        if why:
            details = {"action": "webhook_lost", "webhook": late.delivery.webhook.id}
            self._log.warning("what was held back was never taken: %s", why, extra=details)


def _key(delivery: Delivery) -> _Key:
    scope = ScopeId("") if delivery.entry is None else delivery.entry.scope
    return delivery.webhook.id, scope


def _name(delivery: Delivery) -> str:
    return f"{delivery.webhook.id}/{delivery.change}"
