"""POSTs to webhooks. Imported by the first message only: TLS and all that make a process larger by a third."""

from __future__ import annotations

from functools import cache
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from forewarn import __version__
from forewarn.errors import Refused, Unavailable

TIME_LIMIT_SECONDS: Final = 10.0

_SERVER_ERRORS: Final = range(500, 600)
# Timeout, too early, too many: said by servers that may yet take it.
PASSING: Final = (408, 425, 429)


def post(url: str, content_type: str, body: bytes) -> None:
    """POST a body. Raises: Unavailable, if it is worth another try, else Refused."""
    headers = {"Content-Type": content_type, "User-Agent": f"forewarn-agent/{__version__}"}
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - see settings
    try:
        with _opener().open(request, timeout=TIME_LIMIT_SECONDS):
            pass
    except HTTPError as error:
        with error:
            is_passing = error.code in _SERVER_ERRORS or error.code in PASSING
            family = Unavailable if is_passing else Refused
            raise family(f"answered {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        # The last one for names that cannot be asked for, such as those of empty parts.
        raise Unavailable(f"cannot be reached: {getattr(error, 'reason', error)}") from error


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """No: what was to be POSTed would be asked for by GET, and of somebody else."""


@cache
def _opener() -> OpenerDirector:
    """Certificates are checked; proxies are the environment's, as for other programs of the VM."""
    return build_opener(_Stay)
