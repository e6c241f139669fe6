"""The threads that tell webhooks: one that keeps the rounds, and some that wait for receivers.

They end with the process, whatever a receiver is doing: what was not noted as told is told again after
the next start.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from typing import Final

from forewarn.core.names import ScopeId
from forewarn.core.scopes import Scope
from forewarn.core.webhooks import WebhookId
from forewarn.errors import Unavailable
from forewarn.ports.hooks import Post
from forewarn.service.courier import Courier, Rounds
from forewarn.service.deliveries import Counts, Delivery, Writer, carry
from forewarn.service.webhooks import Webhooks
from forewarn.web.faults import Faults
from forewarn.web.webhooks import WebhookParts
from forewarn.wiring.assembly import Assembly
from forewarn.wiring.mishaps import Mishaps

CARRIERS: Final = 8
SLEEP_SECONDS_MAX: Final = 1.0
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Hooks:
    """Everything about webhooks, wired and not yet running."""

    webhooks: Webhooks
    courier: Courier
    counts: Counts
    post: Post
    # What is to be sent, for whoever is free; None sends one of them home.
    sent: SimpleQueue[Delivery | None]

    @property
    def parts(self) -> WebhookParts:
        """What people can ask about webhooks stands on this."""
        return WebhookParts(
            webhooks=self.webhooks,
            counts=self.counts,
            standings=lambda: self.courier.standings,
        )


def assemble_hooks(assembly: Assembly, post: Post, subscription_id: str) -> Hooks:
    """Put together what webhooks need, over a service's own parts."""

    def scope_now(scope: ScopeId) -> Scope | None:
        posting = assembly.board.posting(scope)
        return None if posting is None else posting.scope

    counts = Counts()
    writer = Writer(scope_now, subscription_id)
    sent: SimpleQueue[Delivery | None] = SimpleQueue()
    return Hooks(
        webhooks=Webhooks(
            clock=assembly.clock,
            store=assembly.store,
            ids=assembly.ids,
            writer=writer,
            post=post,
            new_secret=lambda: secrets.token_bytes(SECRET_BYTES),
            counts=counts,
        ),
        courier=Courier(assembly.clock, assembly.store, assembly.ids, writer, sent.put, counts),
        counts=counts,
        post=post,
        sent=sent,
    )


class Carriers:
    """Runs the courier, and carries out what it hands over, until told to stop."""

    def __init__(
        self,
        hooks: Hooks,
        assembly: Assembly,
        log: logging.Logger,
        on_crash: Callable[[], object],
        faults: Faults | None = None,
    ) -> None:
        self.hooks = hooks
        self._carry_out: Callable[[Delivery], str] = partial(carry, hooks.post)
        # What goes wrong on purpose.
        self._mishaps: Mishaps | None = None
        if faults is not None:
            self._mishaps = Mishaps(faults, hooks.post, hooks.sent.put, log)
            self._carry_out = self._mishaps.carry
        self._log = log
        self._on_crash = on_crash
        self._stopping = threading.Event()
        self._alarm = threading.Event()
        self._keeper = self._thread("courier", self._keep_rounds)
        self._threads = [self._thread(f"carrier-{n}", self._carry) for n in range(CARRIERS)]
        # What was last told of each webhook, so that each trouble is logged once.
        self._troubles: dict[WebhookId, str] = {}
        assembly.books.tell(lambda _: self._alarm.set())

    def start(self) -> None:
        for thread in (self._keeper, *self._threads):
            thread.start()

    def stop(self) -> None:
        """Finish the turn under way. Whoever waits for a receiver is not waited for."""
        self.dismiss()
        self._keeper.join()

    def dismiss(self) -> None:
        """Let the threads come to their end, and do not wait for it."""
        self._stopping.set()
        self._alarm.set()
        for _ in self._threads:
            self.hooks.sent.put(None)

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - whatever it was, nobody else would hear of it
            self._log.exception("a worker crashed: the service stops")
            self._on_crash()

    def _carry(self) -> None:
        while (delivery := self.hooks.sent.get()) is not None:
            why = self._carry_out(delivery)
            self.hooks.courier.came_back(delivery, why)
            self._alarm.set()

    def _keep_rounds(self) -> None:
        while not self._stopping.is_set():
            self._alarm.clear()
            try:
                rounds = self.hooks.courier.turn()
            except Unavailable:
                # The store is watched, and told of, by others.
                self._stopping.wait(SLEEP_SECONDS_MAX)
                continue
            self._tell(rounds)
            if self._mishaps is not None:
                self._mishaps.look_at_the_clock()
            self._alarm.wait(_seconds(rounds.wait))

    def _tell(self, rounds: Rounds) -> None:
        for webhook, why in rounds.troubles.items():
            if self._troubles.get(webhook) != why:
                details = {"action": "webhook_failing", "webhook": webhook}
                self._log.warning("a webhook is not told: %s", why, extra=details)
        for webhook in self._troubles.keys() - rounds.troubles.keys():
            details = {"action": "webhook_back", "webhook": webhook}
            self._log.info("a webhook is told again", extra=details)
        self._troubles = dict(rounds.troubles)


def _seconds(wait: timedelta | None) -> float:
    return SLEEP_SECONDS_MAX if wait is None else min(wait.total_seconds(), SLEEP_SECONDS_MAX)
