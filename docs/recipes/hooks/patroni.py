#!/usr/bin/env python3
"""Have another member lead before an event: a hook for `forewarn agent`.

For hooks.d/prepare; docs/recipes/patroni.md has the rest. There is nothing to undo: the member comes
back as a replica, and a switchover for its own sake would only be another pause.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

NOTHING_TO_DO: Final = 70
# Who leads, by its role in a cluster or in one that follows another, and where it says that it does its work.
LEADERS: Final = {"leader": "/read-write", "standby_leader": "/standby-leader"}
OK: Final = 200
UNAVAILABLE: Final = 503
# No replica is good enough for the moment, or the last try failed: it may be otherwise soon.
AGAIN: Final = {412, UNAVAILABLE}
ANSWER_SECONDS_MAX: Final = 5.0
LOOK_SECONDS: Final = 0.5
# To say what is wrong before the agent says that it took too long.
LAST_WORDS_SECONDS: Final = 1.0
BY_HAND_SECONDS: Final = 600.0


class Trouble(Exception):
    """What the log shall say."""


class Deadline:
    """How long is left: until EVENT_DEADLINE, or until the agent asks to end."""

    def __init__(self) -> None:
        told = os.environ.get("EVENT_DEADLINE")
        at = float(told) - LAST_WORDS_SECONDS if told else time.time() + BY_HAND_SECONDS
        self._until = time.monotonic() + at - time.time()
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        # Raised, as it may be waiting for an answer that takes long.
        raise Trouble("asked to end before another member led: see Patroni's log")

    @property
    def seconds(self) -> float:
        return max(self._until - time.monotonic(), 0.1)

    def looks(self) -> Iterator[None]:
        """One now, and more until the time is up."""
        yield
        while time.monotonic() < self._until:
            time.sleep(LOOK_SECONDS)
            yield


class Member:
    """A member's REST API, as /etc/forewarn/patroni.toml has it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._api = str(told["api"]).rstrip("/")
        pair = f"{told.get('username', '')}:{told.get('password', '')}"
        self._pass = f"Basic {base64.b64encode(pair.encode()).decode()}" if pair != ":" else ""
        # Members are asked directly, whatever proxy the environment names.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(
        self, path: str, body: object = None, *, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> tuple[int, str]:
        """The status and the text of an answer. Raises: OSError."""
        url = path if "://" in path else self._api + path
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data)  # noqa: S310 - as the file has it
        if data is not None and self._pass:
            request.add_header("Authorization", self._pass)
        try:
            with self._opener.open(request, timeout=seconds_max) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"{url} does not speak HTTP: {error!r}") from error

    def is_leader(self) -> bool:
        """Whether it leads its cluster, in its own words. Raises: Trouble, OSError."""
        status, text = self.ask("/leader")
        if status not in {OK, UNAVAILABLE}:
            raise Trouble(f"is this Patroni? {self._api}/leader says {status} {text[:200]}")
        return status == OK

    def leader(self) -> dict[str, Any]:
        """Who leads its cluster; empty if nobody does, or can say. Raises: OSError."""
        _, text = self.ask("/cluster")
        try:
            members: list[dict[str, Any]] = json.loads(text)["members"]
        except (ValueError, KeyError):
            return {}
        return next((member for member in members if member["role"] in LEADERS), {})


def hand_over(member: Member, deadline: Deadline) -> int:
    """Have somebody else lead. Raises: Trouble, OSError."""
    if not member.is_leader():
        return NOTHING_TO_DO
    name = member.leader().get("name")
    if name is None:
        raise Trouble("this member says that it leads, and its cluster does not: see Patroni's log")
    said = ""
    for _ in deadline.looks():
        # The answer comes when it is done; without one it may be done as well.
        try:
            status, said = member.ask("/switchover", {"leader": name}, seconds_max=deadline.seconds)
        except OSError as error:
            # What Patroni said before tells more than that time was up.
            status, said = UNAVAILABLE, said or str(error)
        leader = member.leader()
        if leader.get("name", name) != name:
            return wait_for(member, leader, deadline)
        if status not in {*AGAIN, OK}:
            break
    raise Trouble(f"{name} leads still: {said}")


def wait_for(member: Member, leader: dict[str, Any], deadline: Deadline) -> int:
    """Until the new leader takes writes. Raises: Trouble."""
    url = str(leader["api_url"]).rsplit("/", 1)[0] + LEADERS[leader["role"]]
    for _ in deadline.looks():
        try:
            if member.ask(url)[0] == OK:
                print(f"{leader['name']} leads")
                return 0
        except OSError:
            continue
    raise Trouble(f"{leader['name']} leads, and is not at work: see its log")


def settings(file: Path) -> dict[str, Any]:
    """Where the member is. Raises: Trouble, OSError."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Trouble(f"{file}: {error}") from None
    if not str(told.get("api", "")).startswith(("http://", "https://")):
        raise Trouble(f'{file}: write api = "http://10.0.0.4:8008"')
    return told


def main() -> int:
    here = Path(sys.argv[0]).absolute().parent
    file = Path(sys.argv[1]) if sys.argv[1:] else here.parent.parent / "patroni.toml"
    try:
        return hand_over(Member(settings(file)), Deadline())
    except (Trouble, OSError) as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
