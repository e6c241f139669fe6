"""The VM's side of scheduled events: a client for programs in guests, on Azure and on forewarn.

Law: the standard library only, for this room goes into other people's VMs. What to ask, when, and what
an answer means are decided by functions of values (`watching`, `errands`, `changes`); those who wait,
in a thread or in a loop, are thin around them. Nothing but `discovery` looks at the environment, and
nothing ever goes by a proxy.

Here is the client that waits in threads. The one that waits in a loop is `asynchronous.AsyncClient`, so
that who has no loop need not carry asyncio: it would make a process larger by a third.
"""

from __future__ import annotations

from forewarn.client.changes import Change, Kind
from forewarn.client.documents import Event
from forewarn.client.patience import Pace
from forewarn.client.synchronous import Client

__all__ = ["Change", "Client", "Event", "Kind", "Pace"]
