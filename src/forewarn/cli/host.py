"""`forewarn host prepare` and `unprepare`: what a host needs so that guests cannot lie about who they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from forewarn.cli.options import AsJson
from forewarn.cli.tables import print_json, print_line
from forewarn.config.networks import load_network
from forewarn.errors import Refused
from forewarn.networks import commands, plans
from forewarn.networks.links import Network
from forewarn.networks.namespaces import inside
from forewarn.networks.plans import Command

DryRun = Annotated[bool, Parameter(help="Print what would be run, and run nothing.")]


def prepare(
    file: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make this host's links as the network file has them.

    Taps get the endpoint's address with their guest as the only peer, bridges
    get it beside their own; filters of our own (nftables, table forewarn) drop
    whatever a guest says in another's name. What is as wanted already is left
    alone; links that left the file are taken away.

    For example:

        forewarn host prepare /etc/forewarn/network.toml --dry-run
        forewarn host prepare /etc/forewarn/network.toml

    Args:
        file: The network file: taps, bridges, and the guests at them.
    """
    network = load_network(file)
    commands.require_root()
    with inside(network.namespace):
        found = commands.survey()
        todo = plans.prepare(network, found)
        if not dry_run:
            _run(todo, network)
            found = commands.survey()
        notes = plans.notes(network, found, commands.rp_filter_of_all())
    for note in notes:
        sys.stderr.write(f"forewarn: {note}\n")
    spelled = tuple(plans.placed(command, network.namespace) for command in todo)
    count = len(network.devices)
    links = f"{count} link{'s' if count != 1 else ''}"
    _tell(spelled, dry_run, as_json, f"prepared {links}: {_named(network)}")


def unprepare(
    *, namespace: str | None = None, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Take away from this host whatever prepare put there.

    Devices that prepare made are removed; others become what they were before.

    For example:

        forewarn host unprepare --dry-run
        forewarn host unprepare

    Args:
        namespace: The network namespace that was prepared, if the network file named one.
    """
    commands.require_root()
    with inside(namespace):
        todo = plans.unprepare(commands.survey())
        if not dry_run:
            _run(todo, Network())
    _tell(
        tuple(plans.placed(command, namespace) for command in todo),
        dry_run,
        as_json,
        "this host is as it was before it was prepared",
    )


def _run(todo: tuple[Command, ...], network: Network) -> None:
    """Run it, then look whether it helped."""
    commands.run(todo)
    found = commands.survey()
    left = plans.prepare(network, found) if network.devices else plans.unprepare(found)
    if left:
        raise Refused(
            f"this host did not become as wanted; what remains is `{left[0].spelled}`: see whether "
            "another program manages these links, keep it from that, and run this again"
        )


def _tell(todo: tuple[Command, ...], dry_run: bool, as_json: bool, done: str) -> None:
    if as_json:
        told = [{"command": list(one.words), "input": one.told} for one in todo]
        print_json({"dry_run": dry_run, "commands": told})
    elif not todo:
        print_line("nothing to do: this host is as wanted")
    elif dry_run:
        for command in todo:
            for line in command.spelled.split("\n"):
                # Rules are laid out with tabs, which are no news to a terminal.
                print_line(line.replace("\t", "    "))
    else:
        print_line(done)


def _named(network: Network) -> str:
    shown = network.devices[:8]
    return ", ".join(shown) + (", …" if len(network.devices) > len(shown) else "")
