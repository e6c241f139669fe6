"""Where a message goes, by its URL: http and https are POSTed to, and all else is apprise's.

apprise is run in a process of its own, which takes its memory with it, and can be stopped when it hangs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final
from urllib.parse import urlsplit

from forewarn.errors import ForewarnError, Malformed, Unavailable

# On a small VM, seconds of it are spent on importing apprise.
TIME_LIMIT_SECONDS: Final = 60.0

# How the process says what was the matter; anything else is a failure, too.
_MISSING: Final = 3
_NOT_A_URL: Final = 4
_PROGRAM: Final = f"""
import json, sys
try:
    import apprise
except ImportError:
    sys.exit({_MISSING})
asked = json.load(sys.stdin)
herald = apprise.Apprise()
if not herald.add(asked["url"]):
    sys.exit({_NOT_A_URL})
if asked["text"] and not herald.notify(body=asked["text"], title=asked["title"]):
    sys.exit(1)
"""


def is_http(url: str) -> bool:
    """Whether it is POSTed to, and not apprise's."""
    return url.partition("://")[0].lower() in ("http", "https")


def shown(url: str) -> str:
    """A URL as it may be logged: what comes after the host is often a secret, and apprise has no hosts."""
    return f"{url.partition('://')[0]}://{(urlsplit(url).hostname or '') if is_http(url) else ''}…"


def check(url: str) -> None:
    """See that messages to apprise's URLs can be told. Raises: Malformed."""
    error = None if is_http(url) else _run(url, "", "")
    if isinstance(error, Malformed):
        raise error


def tell_by_apprise(url: str, title: str, text: str) -> None:
    """Have apprise tell somebody. Raises: Unavailable, Malformed."""
    error = _run(url, title, text)
    if error is not None:
        raise error


def _run(url: str, title: str, text: str) -> ForewarnError | None:
    # By its standard input, as anybody may read the arguments of a process.
    asked = json.dumps({"url": url, "title": title, "text": text})
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-c", _PROGRAM],
            input=asked.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TIME_LIMIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unavailable(f"apprise could not be run: {type(error).__name__}")
    if done.returncode == 0:
        return None
    if done.returncode == _MISSING:
        install = "pip install 'forewarn[apprise]', or on Debian apt install apprise"
        return Malformed(f"{shown(url)} is told by apprise, which is not installed: {install}")
    if done.returncode == _NOT_A_URL:
        remedy = "look it up in apprise's list of notifications"
        return Malformed(f"{shown(url)} is no URL that apprise knows: {remedy}")
    return Unavailable("apprise could not tell it: try the URL with the command apprise")
