"""The VM's side of scheduled events: a client for programs in guests, on Azure and on forewarn.

Law: the standard library only, for this room goes into other people's VMs. What to ask, when, and what
an answer means are decided by functions of values (`watching`, `errands`, `changes`); those who wait,
in a thread or in a loop, are thin around them. Nothing but `discovery` looks at the environment, and
nothing ever goes by a proxy.
"""

from __future__ import annotations

from forewarn.client.asynchronous import AsyncClient
from forewarn.client.changes import Change, Kind
from forewarn.client.documents import Event
from forewarn.client.patience import Pace
from forewarn.client.synchronous import Client

__all__ = ["AsyncClient", "Change", "Client", "Event", "Kind", "Pace"]
