"""Telling systemd how we are (`Type=notify`): one datagram a word."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Systemd:
    """The service manager's socket; without one, nobody is told."""

    address: str | None

    def ready(self, status: str = "serving") -> None:
        self._say(f"READY=1\nSTATUS={status}")

    def reloading(self, monotonic_microseconds: int) -> None:
        self._say(f"RELOADING=1\nMONOTONIC_USEC={monotonic_microseconds}")

    def stopping(self) -> None:
        self._say("STOPPING=1\nSTATUS=finishing the answers under way")

    def status(self, words: str) -> None:
        self._say(f"STATUS={words}")

    def watchdog(self) -> None:
        """Tell that we are alive; who says `WatchdogSec=` in a unit wants to hear it twice as often."""
        self._say("WATCHDOG=1")

    def _say(self, words: str) -> None:
        if not self.address:
            return
        # An address that begins with @ is in Linux's abstract namespace.
        path = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker, suppress(OSError):
            speaker.sendto(words.encode(), path)
