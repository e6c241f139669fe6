"""`forewarn webhook`: who is told of changes, and what they could not be told."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from forewarn.cli.answers import DeadLetter, Webhook
from forewarn.cli.client import Client
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.errors import Unavailable, Unknown

HELP: Final = """\
Tell programs elsewhere of every change of an event.

For example:

    forewarn webhook add pager https://hooks.example.org/forewarn
    forewarn webhook list
    forewarn webhook test pager
    forewarn webhook dead-letters pager

The service tells only hosts that it was started with: --webhook-allow HOST.\
"""

_Which = Annotated[str, Parameter(name="WEBHOOK", help="The webhook's name or id.")]
_Numbers = Annotated[tuple[int, ...], Parameter(name="NUMBER", help="Numbers of dead letters.")]


def add(
    name: Annotated[str, Parameter(name="NAME")],
    url: Annotated[str, Parameter(name="URL")],
    /,
    *,
    form: Literal["cloudevents", "event-grid"] = "cloudevents",
    group: tuple[str, ...] = (),
    scope: tuple[str, ...] = (),
    event_type: Annotated[tuple[str, ...], Parameter(name="--type")] = (),
    change: tuple[str, ...] = (),
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Add a webhook, and print the secret that its deliveries are signed with.

    The secret is shown this once. Without a filter every change is told.

    For example:

        forewarn webhook add pager https://hooks.example.org/forewarn
        forewarn webhook add alarm https://hooks.example.org/a --change started
        forewarn webhook add team https://hooks.example.org/t --group rg1

    Args:
        name: What to call it.
        url: Where to post changes; its host is on the service's allow-list.
        form: CloudEvents 1.0, or the form in which Azure's Event Grid tells of scheduled events.
        group: Only changes in this resource group; may be given several times.
        scope: Only changes in this scope, written GROUP/NAME; may be given several times.
        event_type: Only events of this type, such as reboot; may be given several times.
        change: Only such changes, as completed or canceled; may be given several times.
    """
    wish = {
        "name": name,
        "url": url,
        "form": form,
        "groups": group,
        "scopes": scope,
        "types": event_type,
        "changes": change,
    }
    added = connection.client().add_webhook(wish)
    if as_json:
        print_json(added)
        return
    print_line(f"added {added['webhook']['name']} ({added['webhook']['id']})")
    print_line(f"secret {added['secret']}")
    print_line("keep it: it is not shown again")


def list_(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """List the webhooks that you may see.

    For example:

        forewarn webhook list
        forewarn webhook list --json
    """
    found = connection.client().webhooks()
    if as_json:
        print_json({"webhooks": found})
    elif not found:
        print_line("no webhooks; `forewarn webhook add NAME URL` adds one")
    else:
        headings = ("Name", "Id", "URL", "State", "Waiting", "Dead letters")
        rows = [
            (
                one["name"],
                one["id"],
                one["url"],
                _state(one),
                str(one["waiting"]),
                str(one["dead_letters"]),
            )
            for one in found
        ]
        print_table(Table(headings=headings, rows=rows))


def show(webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Show one webhook.

    For example:

        forewarn webhook show pager
    """
    found = _found(connection.client(), webhook)
    if as_json:
        print_json(found)
        return
    rows = [
        ("name", found["name"]),
        ("id", found["id"]),
        ("url", found["url"]),
        ("form", found["form"]),
        ("state", _state(found)),
        ("trouble", found["trouble"] or "none"),
        ("waiting", str(found["waiting"])),
        ("dead letters", str(found["dead_letters"])),
        ("groups", ", ".join(found["groups"]) or "all"),
        ("scopes", ", ".join(found["scopes"]) or "all"),
        ("types", ", ".join(found["types"]) or "all"),
        ("changes", ", ".join(found["changes"]) or "all"),
        ("added", f"{found['created_at']} by {found['created_by']}"),
    ]
    print_table(Table(rows=rows))


def try_out(webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Send a message that tells of nothing, and say whether it was taken.

    For example:

        forewarn webhook test pager
    """
    client = connection.client()
    sent = client.try_webhook(_found(client, webhook)["id"])
    if as_json:
        print_json({"id": sent})
    else:
        print_line(f"taken, with id {sent}")


def pause(webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Tell a webhook nothing until it is resumed; what happens meanwhile is told then.

    For example:

        forewarn webhook pause pager
    """
    _set_paused(connection.client(), webhook, paused=True, as_json=as_json)


def resume(webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Go on telling a webhook, from where it was paused.

    For example:

        forewarn webhook resume pager
    """
    _set_paused(connection.client(), webhook, paused=False, as_json=as_json)


def remove(webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Remove a webhook, with its dead letters.

    For example:

        forewarn webhook remove pager
    """
    client = connection.client()
    found = _found(client, webhook)
    client.remove_webhook(found["id"])
    if as_json:
        print_json(found)
    else:
        print_line(f"removed {found['name']}")


def dead_letters(
    webhook: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY
) -> None:
    """List what a webhook could not be told.

    For example:

        forewarn webhook dead-letters pager
    """
    client = connection.client()
    found = client.dead_letters(_found(client, webhook)["id"])
    if as_json:
        print_json({"dead_letters": found})
    elif not found:
        print_line("no dead letters")
    else:
        headings = ("Number", "Changed at", "Scope", "Change", "Event", "Tries", "Why")
        print_table(Table(headings=headings, rows=[_row(letter) for letter in found]))


def redeliver(
    webhook: _Which,
    numbers: _Numbers = (),
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Try dead letters once more: those that are named, or all that can be delivered.

    A letter that is taken is a dead one no more.

    For example:

        forewarn webhook redeliver pager 1 2
        forewarn webhook redeliver pager
    """
    client = connection.client()
    found = _found(client, webhook)["id"]
    # Letters without an id only say what is missing.
    wanted = numbers or tuple(one["number"] for one in client.dead_letters(found) if one["id"])
    delivered: list[int] = []
    trouble: Unavailable | None = None
    for number in wanted:
        try:
            client.redeliver(found, number)
        except Unavailable as error:
            trouble = error
            break
        delivered.append(number)
    if as_json:
        print_json({"delivered": delivered})
    else:
        print_line(f"delivered {len(delivered)} of {len(wanted)}")
    if trouble is not None:
        raise trouble


def discard(
    webhook: _Which,
    numbers: _Numbers,
    /,
    *,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Forget dead letters.

    For example:

        forewarn webhook discard pager 1 2
    """
    client = connection.client()
    found = _found(client, webhook)["id"]
    for number in numbers:
        client.discard(found, number)
    if as_json:
        print_json({"discarded": numbers})
    else:
        print_line(f"discarded {len(numbers)}")


def _set_paused(client: Client, webhook: str, *, paused: bool, as_json: bool) -> None:
    found = client.patch_webhook(_found(client, webhook)["id"], paused=paused)
    if as_json:
        print_json(found)
    else:
        print_line(f"{found['name']} is {_state(found)}")


def _found(client: Client, webhook: str) -> Webhook:
    for one in client.webhooks():
        if webhook.lower() in {one["id"], one["name"].lower()}:
            return one
    raise Unknown(f"no webhook {webhook}; `forewarn webhook list` lists them")


def _state(webhook: Webhook) -> str:
    if webhook["paused"]:
        return "paused"
    return "failing" if webhook["trouble"] else "active"


def _row(letter: DeadLetter) -> tuple[str, ...]:
    return (
        str(letter["number"]),
        letter["changed_at"] or "",
        letter["scope"] or "",
        (letter["type"] or "").rpartition(".")[2],
        letter["event_id"] or "",
        str(letter["tries"]),
        letter["why"],
    )
