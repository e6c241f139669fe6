"""A pass: one token that opens everything, for as long as the process lives."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from forewarn.core.rights import Principal
from forewarn.ports.trust import Authority


@dataclass(frozen=True, slots=True)
class Pass:
    """An authority (`ports.trust`) that knows one token more than another authority does."""

    token: str = field(repr=False)
    holder: Principal
    others: Authority

    def principal(self, bearer: str) -> Principal | None:
        if hmac.compare_digest(bearer.encode(), self.token.encode()):
            return self.holder
        return self.others.principal(bearer)

    def note_refusal(self, principal: Principal | None, address: str, what: str) -> None:
        self.others.note_refusal(principal, address, what)
