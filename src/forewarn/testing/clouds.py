"""A running service with a fleet for Azure's clients, and guests that approve."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final, Self

from forewarn.testing.processes import ServiceProcess

SUBSCRIPTION: Final = "11111111-2222-3333-4444-555555555555"

FLEET: Final = f"""
subscription_id = "{SUBSCRIPTION}"

[[scope]]
name = "web"
kind = "availability-set"
resource_group = "rg1"
location = "local"
update_domains = 2
enabled = "always"
machine = [
    {{ name = "web-0", address = "127.0.1.10", host = "host-a" }},
    {{ name = "web-1", address = "127.0.1.11", host = "host-b" }},
]

[[scope]]
name = "lone"
resource_group = "rg1"
location = "local"
machine = [{{ name = "lone", address = "127.0.1.20" }}]

[[scope]]
name = "cheap"
resource_group = "rg1"
location = "local"
spot = true
enabled = "always"
machine = [{{ name = "cheap", address = "127.0.1.30" }}]

[[scope]]
name = "many"
kind = "availability-set"
resource_group = "rg1"
location = "local"
enabled = "always"
user_operations_max = 10
machine = [{", ".join(f'{{ name = "many-{n}", host = "h{n}" }}' for n in range(11))}]

[[scope]]
name = "ss1"
kind = "scale-set"
resource_group = "rg1"
location = "local"
enabled = "always"
terminate_notice = "5m"
machine = [
    {{ name = "ss1_0", address = "127.0.1.40" }},
    {{ name = "ss1_1", address = "127.0.1.41" }},
    {{ name = "ss1_2", address = "127.0.1.42" }},
]

[[scope]]
name = "spots"
kind = "scale-set"
resource_group = "rg1"
location = "local"
spot = true
enabled = "always"
machine = [{{ name = "spots_0", address = "127.0.1.45" }}]

[[scope]]
name = "elsewhere"
resource_group = "rg2"
location = "local"
enabled = "always"
machine = [{{ name = "elsewhere", address = "127.0.1.50" }}]

[[scope]]
name = "doomed"
resource_group = "rg2"
location = "local"
enabled = "always"
machine = [{{ name = "doomed", address = "127.0.1.51" }}]
"""

# One address of each scope whose guests say yes to everything.
WILLING: Final = ("127.0.1.10", "127.0.1.30", "127.0.1.40", "127.0.1.50")


class WillingGuests:
    """Guests that approve whatever they read of, a moment later, for as long as the `with` lasts."""

    def __init__(self, service: ServiceProcess, *addresses: str) -> None:
        self._service = service
        self._addresses = addresses
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._approve, name="willing guests")
        # What was read, by address: the types of the events.
        self.read: dict[str, set[str]] = {address: set() for address in addresses}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _approve(self) -> None:
        while not self._over.wait(0.2):
            for address in self._addresses:
                # The service may be dead just now: a guest asks again.
                with suppress(OSError):
                    self._look(address)

    def _look(self, address: str) -> None:
        for event in self._service.document(address)["Events"]:
            self.read[address].add(event["EventType"])
            if event["EventStatus"] == "Scheduled":
                self._service.approve(address, event["EventId"])
