"""Lookout: keeps hosts connected, and remembers what was last seen on each.

Surveys are values, and replaced whole. A host that is out of reach is what it was when it was last
seen, until it is seen again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from forewarn.core.hosts import Standing
from forewarn.core.names import HostName
from forewarn.errors import Refused, Unavailable
from forewarn.fabrics.libvirt.link import Link
from forewarn.fabrics.libvirt.surveys import Survey

# Events come in flocks; one look is enough for those that come within this time.
FLOCK: Final = timedelta(milliseconds=50)


class Lookout:
    """Several hosts. Each is attended by one thread, and asked by any."""

    def __init__(self, links: Sequence[Link], on_news: Callable[[], None]) -> None:
        """`on_news` is called when something may have changed, by whoever saw it."""
        self.links = tuple(links)
        self._on_news = on_news
        # One looks at a host at a time: what was seen first is not remembered last.
        self._looking = {link: threading.Lock() for link in self.links}
        # Guards the rest.
        self._lock = threading.Lock()
        self._surveys: dict[Link, Survey] = {}
        self._away: dict[Link, str] = {link: _not_yet(link) for link in self.links}
        self._untried = set(self.links)

    @property
    def has_seen_all(self) -> bool:
        """Whether every host was looked at since the start."""
        with self._lock:
            return len(self._surveys) == len(self.links)

    def away(self) -> Mapping[HostName, str]:
        """The hosts out of reach, and why."""
        with self._lock:
            return {link.host: why for link, why in self._away.items()}

    def surveys(self) -> Sequence[Survey]:
        """What was seen last; of those that can be reached first."""
        with self._lock:
            found = sorted(self._surveys, key=lambda link: link in self._away)
            return [self._surveys[link] for link in found]

    def within_reach(self) -> Sequence[Survey]:
        with self._lock:
            return [one for link, one in self._surveys.items() if link not in self._away]

    def standings(self) -> Sequence[Standing]:
        with self._lock:
            free = {link: survey.memory_free_kib // 1024 for link, survey in self._surveys.items()}
            return [
                Standing(one.host, free.get(one), self._away.get(one, "")) for one in self.links
            ]

    def link(self, host: HostName) -> Link:
        """The way to a host. Raises: Unavailable."""
        with self._lock:
            for link in self.links:
                if link.host == host:
                    why = self._away.get(link)
                    if why is not None:
                        raise Unavailable(why)
                    return link
        raise Unavailable(f"host {host} is unknown here: serve with its --libvirt URI again")

    def find(self, domain: str, besides: Collection[HostName]) -> HostName | None:
        """Where a domain runs, apart from some hosts and those that cannot be reached.

        Raises: Unavailable if one was not tried yet.
        """
        with self._lock:
            untried = [self._away[link] for link in self.links if link in self._untried]
            asked = [link for link in self.links if link not in self._away]
        if untried:
            raise Unavailable("; ".join(untried))
        for link in asked:
            with suppress(Unavailable, Refused):
                sight = None if link.host in besides else link.sight(domain)
                if sight is not None and sight.is_active:
                    return link.host
        return None

    # --- In threads --------------------------------------------------------------------------

    def attend(
        self, link: Link, stopping: threading.Event, survey: timedelta, again: timedelta
    ) -> None:
        """Keep a host connected and surveyed, until told to stop; this often, or when it stirs."""
        while not stopping.is_set():
            link.stirred.clear()
            try:
                link.connect()
                self._refuse_namesake(link)
                self.look_at(link)
                pause = survey
            except (Unavailable, Refused) as error:
                self._lose(link, str(error))
                pause = again
            if link.stirred.wait(pause.total_seconds()):
                stopping.wait(FLOCK.total_seconds())
        link.close()

    def look_at(self, link: Link) -> None:
        """Look at a host now. Raises: Unavailable, Refused."""
        with self._looking[link]:
            self._take(link, link.survey())

    def _refuse_namesake(self, link: Link) -> None:
        for other in self.links[: self.links.index(link)]:
            if other.host.lower() == link.host.lower():
                raise Refused(
                    f"{other.uri} and {link.uri} both are host {link.host}: give them names, as in "
                    f"--libvirt {link.host}-2={link.uri}"
                )

    def _take(self, link: Link, survey: Survey) -> None:
        with self._lock:
            self._untried.discard(link)
            was_away = self._away.pop(link, None) is not None
            is_news = was_away or self._surveys.get(link) != survey
            self._surveys[link] = survey
        if is_news:
            self._on_news()

    def _lose(self, link: Link, why: str) -> None:
        with self._lock:
            self._untried.discard(link)
            is_news = self._away.get(link) != why
            self._away[link] = why
        if is_news:
            self._on_news()


def _not_yet(link: Link) -> str:
    return f"host {link.host} was not reached yet"
