"""The kinds of names, told apart so that one is never passed for another."""

from __future__ import annotations

from typing import NewType

EventId = NewType("EventId", str)
# A long-running operation's name, in lower case.
OperationId = NewType("OperationId", str)
# Unique within its scope only: two resource groups may each have a "web-0".
MachineName = NewType("MachineName", str)
HostName = NewType("HostName", str)
# "<resource group>/<scope name>", in lower case: Azure's names ignore case.
ScopeId = NewType("ScopeId", str)
# A document's number as guests see it; not to be confused with a Revision.
Incarnation = NewType("Incarnation", int)
# A ledger's number in the store.
Revision = NewType("Revision", int)


def scope_id(resource_group: str, name: str) -> ScopeId:
    """The id of a scope, whichever way its names are capitalized."""
    return ScopeId(f"{resource_group}/{name}".lower())
