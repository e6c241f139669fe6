"""What owners do to their VMs: restart, redeploy, stop and others, each through its operation.

And `freeze`, which is the platform's: no owner has a verb for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from forewarn.cli import errands, following, prefixes, targets
from forewarn.cli.answers import Event
from forewarn.cli.arm import Arm
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.errands import Errand
from forewarn.cli.following import Lookout, Patience
from forewarn.cli.options import AsJson, EventIdPrefix, Length
from forewarn.cli.targets import Target
from forewarn.errors import ForewarnError

Machine = Annotated[
    str, Parameter(name="VM", help="A VM: NAME, GROUP/NAME or GROUP/SCOPE/NAME, in any case.")
]


def restart(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Restart VMs, as their owner: a Reboot is announced to them.

    For example:

        forewarn restart web-0
        forewarn restart rg1/web-0 rg1/web-1 --wait --timeout 20m
    """
    _act(connection.client(), "restart", [machine, *more], patience, as_json=as_json)


def redeploy(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Redeploy VMs, as their owner: a Redeploy is announced to them.

    For example:

        forewarn redeploy web-0 --wait
    """
    _act(connection.client(), "redeploy", [machine, *more], patience, as_json=as_json)


def terminate(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Delete VMs, or instances of scale sets, as their owner.

    A Terminate is announced to them where terminate notification is on; else they
    are gone at once.

    For example:

        forewarn terminate batch_0 --wait
    """
    words = [machine, *more]
    _act(connection.client(), "delete", words, patience, as_json=as_json, told="termination")


def stop(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Power VMs off, as their owner; they stay on their hosts.

    For example:

        forewarn stop web-0 --wait
    """
    words = [machine, *more]
    _act(connection.client(), "powerOff", words, patience, as_json=as_json, told="stop")


def start(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Start VMs that are stopped or deallocated.

    For example:

        forewarn start web-0 --wait
    """
    _act(connection.client(), "start", [machine, *more], patience, as_json=as_json)


def deallocate(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Power VMs off, as their owner, and give up their places on their hosts.

    For example:

        forewarn deallocate web-0 --wait
    """
    words = [machine, *more]
    _act(connection.client(), "deallocate", words, patience, as_json=as_json, told="deallocation")


def reimage(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Give VMs a fresh disk from their image, as their owner.

    For example:

        forewarn reimage batch_0 --wait
    """
    _act(connection.client(), "reimage", [machine, *more], patience, as_json=as_json)


def evict(
    machine: Machine,
    /,
    *more: Machine,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Take spot VMs away, as the platform does: a Preempt is announced to them.

    For example:

        forewarn evict spot-0 --wait
    """
    patience.limit()
    client = connection.client()
    meant = targets.find(client.fleet(), [machine, *more])
    arm = Arm(client.transport)
    subscription_id = arm.subscription()["subscriptionId"]
    begun: list[Errand] = []
    for target in meant:
        with _telling(begun):
            arm.begin(target.resource(subscription_id), "simulateEviction")
            # Azure has no operation for it.
            preempt = _newest_preempt(client.events("all"), target)
        begun.append(Errand(label=f"eviction of {target.name}", event_ids=preempt))
    Lookout(client).finish(begun, patience, as_json=as_json)


def freeze(
    machine: Machine,
    /,
    *more: Machine,
    unannounced: bool = False,
    patience: Patience = following.NONE,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Freeze VMs for a moment, as the platform does when it services a host.

    For example:

        forewarn freeze web-0 --wait
        forewarn announce freeze web-0 --notice 20m --duration 9s

    Args:
        unannounced: Go ahead where the VMs would not be told (scope not enabled).
    """
    patience.limit()
    client = connection.client()
    meant = targets.find(client.fleet(), [machine, *more])
    wish = {
        "type": "Freeze",
        "machines": [target.path for target in meant],
        "unannounced": unannounced,
    }
    answer = client.announce(wish)
    made = [*answer["events"], *answer["unannounced"]]
    Lookout(client).finish(errands.of_events(made), patience, as_json=as_json)


def wait(
    event: EventIdPrefix,
    /,
    *more: EventIdPrefix,
    timeout: Length | None = None,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Follow events until they are over.

    For example:

        forewarn wait 4F2A
        forewarn wait 4F2A 9C01 --timeout 20m

    Args:
        timeout: How long to wait, such as 20m; else until they are over.
    """
    client = connection.client()
    found = [client.event(event_id) for event_id in prefixes.resolve(client, [event, *more])]
    Lookout(client).finish(
        errands.of_events(found), Patience(wait=True, timeout=timeout), as_json=as_json
    )


def _act(
    client: Client,
    verb: str,
    typed: Sequence[str],
    patience: Patience,
    *,
    as_json: bool,
    told: str = "",
) -> None:
    """Have a verb done to VMs: to all that were named, or to none if a name is wrong."""
    patience.limit()
    meant = targets.find(client.fleet(), typed)
    arm = Arm(client.transport)
    subscription_id = arm.subscription()["subscriptionId"]
    begun: list[Errand] = []
    for target in meant:
        with _telling(begun):
            address = arm.begin(target.resource(subscription_id), verb)
        begun.append(Errand(label=f"{told or verb} of {target.name}", address=address))
    Lookout(client).finish(begun, patience, as_json=as_json)


@contextmanager
def _telling(begun: Sequence[Errand]) -> Iterator[None]:
    """Whatever goes wrong, say what was begun before."""
    try:
        yield
    except ForewarnError as error:
        if begun:
            labels = ", ".join(errand.label for errand in begun)
            error.args = (f"{error}; begun already, and going on: {labels}",)
        raise


def _newest_preempt(events: Sequence[Event], target: Target) -> list[str]:
    found = [
        event
        for event in events
        if event["type"] == "Preempt"
        and (event["resource_group"], event["scope"]) == (target.group, target.scope)
        and target.name in event["resources"]
    ]
    newest = max(found, key=lambda event: event["announced_at"], default=None)
    return [] if newest is None else [newest["event_id"]]
