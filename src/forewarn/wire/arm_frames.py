"""Azure Resource Manager's JSON around the resources: subscription, groups, operations, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from forewarn.core.operations import Operation, OperationStatus
from forewarn.wire.arm import (
    AVAILABILITY_SETS,
    COMPUTE,
    INSTANCES,
    MACHINES,
    SCALE_SETS,
    Json,
    Names,
)

# Any version is answered; tools that want to choose one find these.
API_VERSIONS: Final = ("2026-04-01", "2025-04-01", "2024-11-01", "2024-07-01", "2022-11-01")


def subscription(names: Names, tenant: str) -> Json:
    """The one subscription that there is."""
    return {
        "id": names.root,
        "subscriptionId": names.subscription,
        "tenantId": tenant,
        "displayName": "forewarn",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }


def resource_group(names: Names, group: str, where: str) -> Json:
    """A resource group."""
    return {
        "id": names.group(group),
        "name": group,
        "type": "Microsoft.Resources/resourceGroups",
        "location": where,
        "properties": {"provisioningState": "Succeeded"},
    }


def region(names: Names, where: str) -> Json:
    """A location."""
    return {
        "id": f"{names.root}/locations/{where}",
        "name": where,
        "displayName": where,
        "regionalDisplayName": where,
        "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
    }


def provider(names: Names, regions: Sequence[str]) -> Json:
    """What kinds of resources there are."""
    return {
        "id": f"{names.root}/providers/{COMPUTE}",
        "namespace": COMPUTE,
        "registrationState": "Registered",
        "resourceTypes": [
            {
                "resourceType": kind,
                "locations": list(regions),
                "apiVersions": list(API_VERSIONS),
            }
            for kind in (MACHINES, SCALE_SETS, INSTANCES, AVAILABILITY_SETS)
        ],
    }


def operation(operation: Operation) -> Json:
    """How far a long-running operation is."""
    form: Json = {
        "startTime": f"{operation.started_at:%FT%TZ}",
        "status": operation.status.value,
        "name": operation.id,
        # Ours: by which its caller can look up who was asked, and who approved.
        "properties": {"events": list(operation.event_ids)},
    }
    ending = operation.ending
    if ending is not None:
        form["endTime"] = f"{ending.at:%FT%TZ}"
        if ending.status is not OperationStatus.SUCCEEDED:
            form["error"] = {"code": ending.code, "message": ending.message}
    return form


def fault(code: str, message: str, details: Sequence[Json] = ()) -> Json:
    """Why not."""
    form: Json = {"code": code, "message": message}
    if details:
        form["details"] = list(details)
    return {"error": form}
