"""`forewarn principal`: who may call the service, and with which secret."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from forewarn.cli.answers import NewSecret, Principal
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, Length
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.tables.durations import parse_duration

_HEADINGS = ("Name", "Role", "Resource groups", "Client id", "State")

Name = Annotated[str, Parameter(name="NAME", help="The principal's name, or its client id.")]
# A file in the form of operator.json, for --credentials.
_FORM = ("client_id", "client_secret", "tenant_id")


def add(
    name: Annotated[str, Parameter(name="NAME", help="What to call it; the journal names it so.")],
    /,
    *,
    role: Literal["reader", "owner", "operator"],
    group: tuple[str, ...] = (),
    client_id: str | None = None,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Let somebody call the service.

    The secret is shown this once. With --json, the answer serves as a file for
    --credentials.

    For example:

        forewarn principal add dashboard --role reader
        forewarn principal add shop-team --role owner --group shop --group shop-test

    Args:
        role: A reader reads, an owner also acts on its resource groups, an operator may do all.
        group: A resource group it is limited to; may be given several times.
        client_id: The id to log in with; a new GUID if not given.
    """
    wanted: dict[str, object] = {"name": name, "role": role, "groups": group}
    if client_id is not None:
        wanted["id"] = client_id
    _tell(connection.client().add_principal(wanted), as_json=as_json)


def list_principals(
    *,
    show_all: Annotated[
        bool, Parameter(name="--all", help="Show those too that were revoked.")
    ] = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """List who may call the service.

    For example:

        forewarn principal list
        forewarn principal list --all --json
    """
    everybody = connection.client().principals()
    shown = [one for one in everybody if show_all or one["revoked_at"] is None]
    if as_json:
        print_json({"principals": shown})
        return
    rows = [
        (one["name"], one["role"], ", ".join(one["groups"]), one["id"], _state(one))
        for one in shown
    ]
    print_table(Table(headings=_HEADINGS, rows=rows))


def revoke(name: Name, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Shut somebody out, at once and for good.

    Its tokens are worth nothing from now on, and the webhooks that it added are
    paused: `forewarn webhook resume` goes on with one that others need.

    For example:

        forewarn principal revoke dashboard
    """
    revoked = connection.client().revoke_principal(name)
    if as_json:
        print_json(revoked)
    else:
        print_line(f"{revoked['name']} ({revoked['id']}) is revoked")


def rotate(
    name: Name,
    /,
    *,
    keep_old: Length = "0s",
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Give somebody a new secret.

    The secret is shown this once. The old one, and the tokens got by it, are worth
    nothing from now on, unless it is kept for a while.

    For example:

        forewarn principal rotate dashboard --keep-old 1h

    Args:
        keep_old: How long the old secret goes on, at most 30d.
    """
    seconds = parse_duration(keep_old).total_seconds()
    _tell(connection.client().rotate_principal(name, seconds), as_json=as_json)


def _tell(made: NewSecret, *, as_json: bool) -> None:
    principal = made["principal"]
    values = (principal["id"], made["client_secret"], made["tenant_id"])
    if as_json:
        print_json({**principal, **dict(zip(_FORM, values, strict=True))})
        return
    rows = [
        ("Name", principal["name"]),
        ("Role", principal["role"]),
        *((("Resource groups", ", ".join(principal["groups"])),) if principal["groups"] else ()),
        *(
            (("Old secret until", principal["old_secret_until"]),)
            if principal["old_secret_until"]
            else ()
        ),
        ("Client id", values[0]),
        ("Client secret", values[1]),
        ("Tenant id", values[2]),
    ]
    print_table(Table(rows=rows, unfolded=2))
    print_line("the secret is not shown again")


def _state(one: Principal) -> str:
    if one["revoked_at"] is not None:
        return f"revoked {one['revoked_at']}"
    if one["old_secret_until"] is not None:
        return f"old secret until {one['old_secret_until']}"
    return "active"
