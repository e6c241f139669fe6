"""The options of `forewarn serve` by which others know the service, and it them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from forewarn.errors import Malformed
from forewarn.tables.durations import parse_duration
from forewarn.wiring.trust import TrustSettings

TOKEN_LASTS_MIN: Final = timedelta(minutes=1)
TOKEN_LASTS_MAX: Final = timedelta(days=1)


@Parameter(name="*", group="Certificate and logins")
@dataclass(frozen=True, slots=True, kw_only=True)
class Trusting:
    """Which certificate is shown, and who may log in for how long."""

    tls_cert: Annotated[
        Path | None,
        Parameter(
            help="A certificate of your own, with its chain, in the place of the one we make."
        ),
    ] = None
    tls_key: Annotated[Path | None, Parameter(help="Its key, if that is in a file of its own.")] = (
        None
    )
    tls_ca: Annotated[
        Path | None,
        Parameter(help="The CA certificate by which it is known, if this system does not know it."),
    ] = None
    tls_name: Annotated[
        tuple[str, ...],
        Parameter(
            help="A name or an address under which the service is called, beside those that this "
            "machine knows of; may be given several times."
        ),
    ] = ()
    token_lifetime: Annotated[str, Parameter(help="How long a login lasts, from 1m to 1d.")] = "1h"  # noqa: S105 - a length of time
    new_operator: Annotated[
        bool,
        Parameter(
            help="Make a new first operator and its operator.json: the old secrets are lost."
        ),
    ] = False

    def settings(self) -> TrustSettings:
        """What was said. Raises: Malformed."""
        lasts = parse_duration(self.token_lifetime)
        if not TOKEN_LASTS_MIN <= lasts <= TOKEN_LASTS_MAX:
            raise Malformed(f"--token-lifetime is from 1m to 1d, not {self.token_lifetime}")
        return TrustSettings(
            certificate=self.tls_cert,
            key=self.tls_key,
            authority=self.tls_ca,
            names=self.tls_name,
            token_lasts=lasts,
            new_operator=self.new_operator,
        )


USUAL: Final = Trusting()
