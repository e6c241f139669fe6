"""`forewarn host list`, `drain` and `undrain`: the hosts of a service, and where VMs may be placed."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from forewarn.cli.answers import Host
from forewarn.cli.connection import ANY, Connection
from forewarn.cli.options import AsJson, Length
from forewarn.cli.phrases import seconds
from forewarn.cli.pictures import events_table
from forewarn.cli.tables import Table, print_json, print_line, print_table
from forewarn.clocks import SystemClock
from forewarn.errors import Malformed
from forewarn.tables.durations import parse_duration

_HEADINGS = ("Host", "State", "VMs", "Open events", "Free memory")
_SHOWN_MAX = 6

_Which = Annotated[str, Parameter(name="HOST", help="The host's name.")]


def list_(*, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """List the hosts: who runs on them, and whether VMs may be placed there.

    For example:

        forewarn host list
        forewarn host list --json
    """
    found = connection.client().hosts()
    if as_json:
        print_json({"hosts": found})
    elif not found:
        print_line("no hosts are known; `forewarn serve --libvirt URI` has those of libvirt")
    else:
        print_table(Table(headings=_HEADINGS, rows=[_row(host) for host in found]))


def drain(
    host: _Which,
    /,
    *,
    move: bool = False,
    notice: Length | None = None,
    description: str | None = None,
    unannounced: bool = False,
    as_json: AsJson = False,
    connection: Connection = ANY,
) -> None:
    """Place no VM on a host any more.

    It stays so over restarts, until it is undrained. With --move, its VMs are told
    that they will leave: by a Freeze where their metadata says freeze="migrate",
    which is a live migration, else by a Redeploy. VMs that are told so already are
    not told twice.

    For example:

        forewarn host drain host-a
        forewarn host drain host-a --move --notice 1h --description "a new disk"

    Args:
        move: Announce to the VMs there that they move to other hosts.
        notice: With --move, how long before they may be moved unapproved; the type's minimum, or more.
        description: With --move, what the VMs' owners should know about it.
        unannounced: With --move, go ahead where VMs would not be told (scope not enabled).
    """
    if not move and (notice is not None or description is not None or unannounced):
        raise Malformed(
            "--notice, --description and --unannounced are about VMs that move: add --move"
        )
    wish = {
        "move": move,
        "notice_seconds": None if notice is None else seconds(parse_duration(notice)),
        "description": description,
        "unannounced": unannounced,
    }
    client = connection.client()
    answer = client.drain_host(host, wish)
    if as_json:
        print_json(answer)
        return
    print_line(f"{host} is drained: no VM is placed there until `forewarn host undrain {host}`")
    made = [*answer["events"], *answer["unannounced"]]
    if made:
        print_table(events_table(made, SystemClock().now()))
        if not _have_a_way_out(client.hosts(), host):
            print_line(
                "no other host is open to them, and unless one is by then, these fail and the VMs "
                "stay: `forewarn host undrain` one, or serve with one more --libvirt"
            )
    elif move:
        print_line("no VM there needs to be told")


def undrain(host: _Which, /, *, as_json: AsJson = False, connection: Connection = ANY) -> None:
    """Let VMs be placed on a host again.

    What was announced to VMs stays announced: `forewarn cancel` calls it off.

    For example:

        forewarn host undrain host-a
    """
    answer = connection.client().undrain_host(host)
    if as_json:
        print_json(answer)
    else:
        print_line(f"VMs may be placed on {answer['host']} again")


def _have_a_way_out(hosts: list[Host], left: str) -> bool:
    """Whether VMs can leave a host for another; simulated ones always can, and have no memory."""
    is_real = any(
        h["memory_free_mib"] is not None for h in hosts if h["host"].lower() == left.lower()
    )
    others = [host for host in hosts if host["host"].lower() != left.lower()]
    return not is_real or any(not (h["is_drained"] or h["trouble"]) for h in others)


def _row(host: Host) -> tuple[str, ...]:
    machines = [machine for scope in host["scopes"] for machine in scope["machines"]]
    shown = ", ".join(machines[:_SHOWN_MAX])
    more = f" and {len(machines) - _SHOWN_MAX} more" if len(machines) > _SHOWN_MAX else ""
    free = host["memory_free_mib"]
    return (
        host["host"],
        _state(host),
        shown + more,
        str(len(host["events"])),
        "" if free is None else f"{free} MiB",
    )


def _state(host: Host) -> str:
    words = [host["trouble"] or "", "drained" if host["is_drained"] else ""]
    words.append("an impact is under way" if host["is_busy"] else "")
    return ", ".join(filter(None, words)) or "open"
