"""The commands that ask a service: a service itself need not load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cyclopts import App

from forewarn.cli import (
    announce,
    az,
    backup,
    clock,
    draining,
    emulators,
    environment,
    events,
    faults,
    fleet,
    identity,
    journal,
    principals,
    steps,
    verbs,
    webhooks,
)

# Named, not imported: the function, what it is given, and what it does.
SCENARIO: Final[Mapping[str, tuple[str, str, str]]] = {
    "run": ("run", "SCENARIO", "Play a scenario, and say whether what it expects came true."),
    "list": ("list_", "", "List the scenarios that come with forewarn."),
    "show": ("show", "NAME", "Show the file of a scenario that comes with forewarn."),
}
PREPARING: Final[Mapping[str, tuple[str, str]]] = {
    "prepare": ("FILE", "Make this host's links as the network file has them."),
    "unprepare": ("", "Take away from this host whatever prepare put there."),
}


def register(app: App, words: Sequence[str]) -> None:
    """Let the app have these commands, for somebody who typed these words."""
    for function, operands in (
        (announce.announce, "TYPE VM..."),
        (verbs.restart, "VM..."),
        (verbs.redeploy, "VM..."),
        (verbs.freeze, "VM..."),
        (verbs.evict, "VM..."),
        (verbs.terminate, "VM..."),
        (verbs.stop, "VM..."),
        (verbs.start, "VM..."),
        (verbs.deallocate, "VM..."),
        (verbs.reimage, "VM..."),
        (verbs.wait, "EVENT..."),
        (steps.approve, "EVENT..."),
        (steps.cancel, "EVENT..."),
        (steps.postpone, "EVENT"),
        (steps.resolve, "EVENT"),
        (events.events, ""),
        (events.show, "EVENT"),
        (backup.backup, "FILE"),
        (identity.login, ""),
        (identity.logout, ""),
        (identity.whoami, ""),
        (environment.env, ""),
        (az.az_setup, ""),
    ):
        name = function.__name__.replace("_", "-")
        app.command(function, name=name, usage=_usage(name, operands), help_epilogue="")
    groups = (
        *(_clock(), _emulator(), _fault(), _fleet(), _host(words), _journal()),
        *(_principal(), _scenario(words), _webhook()),
    )
    for group in groups:
        app.command(group)


def _usage(name: str, operands: str) -> str:
    return " ".join(filter(None, ["Usage: forewarn", name, operands, "[OPTIONS]"]))


def _clock() -> App:
    app = App(name="clock", usage=_usage("clock", "[COMMAND]"), help_epilogue="")
    app.default(clock.clock)
    app.command(clock.advance, usage=_usage("clock advance", "[BY]"))
    return app


def _emulator() -> App:
    app = App(
        name="emulator", usage=_usage("emulator", "COMMAND"), help=emulators.HELP, help_epilogue=""
    )
    app.command(emulators.reset, usage=_usage("emulator reset", ""))
    app.command(emulators.seed, usage=_usage("emulator seed", "NUMBER"))
    app.command(emulators.idle, usage=_usage("emulator idle", ""))
    app.command(emulators.requests, usage=_usage("emulator requests", ""))
    return app


def _fault() -> App:
    app = App(name="fault", usage=_usage("fault", "COMMAND"), help=faults.HELP, help_epilogue="")
    app.command(faults.add, usage=_usage("fault add", "KIND"))
    app.command(faults.list_, name="list", usage=_usage("fault list", ""))
    app.command(faults.clear, usage=_usage("fault clear", "[ID]"))
    return app


def _fleet() -> App:
    app = App(name="fleet", usage=_usage("fleet", "[COMMAND]"), help_epilogue="")
    app.default(fleet.fleet)
    app.command(fleet.apply, usage=_usage("fleet apply", "[FILE]"))
    return app


def _host(words: Sequence[str]) -> App:
    app = App(
        name="host",
        help="See to hosts: list, drain and undrain a service's; prepare and unprepare this one.",
        usage=_usage("host", "COMMAND"),
        help_epilogue="",
    )
    app.command(draining.list_, name="list", usage=_usage("host list", ""))
    app.command(draining.drain, usage=_usage("host drain", "HOST"))
    app.command(draining.undrain, usage=_usage("host undrain", "HOST"))
    for name, (operands, summary) in PREPARING.items():
        app.command(
            f"forewarn.cli.host:{name}",
            name=name,
            usage=_usage(f"host {name}", operands),
            # A summary would take the place of the command's own page.
            help=None if name in words else summary,
        )
    return app


def _journal() -> App:
    app = App(name="journal", usage=_usage("journal", "[COMMAND]"), help_epilogue="")
    app.default(journal.journal)
    app.command(journal.export, usage=_usage("journal export", "FILE"))
    app.command(journal.prune)
    return app


def _principal() -> App:
    app = App(
        name="principal",
        help="Say who may call the service: add, list, revoke, rotate.",
        usage=_usage("principal", "COMMAND"),
        help_epilogue="",
    )
    app.command(principals.add, usage=_usage("principal add", "NAME --role ROLE"))
    app.command(principals.list_principals, name="list", usage=_usage("principal list", ""))
    app.command(principals.revoke, usage=_usage("principal revoke", "NAME"))
    app.command(principals.rotate, usage=_usage("principal rotate", "NAME"))
    return app


def _scenario(words: Sequence[str]) -> App:
    app = App(
        name="scenario",
        help="Play what can happen to VMs in an emulator: run, list, show.",
        usage=_usage("scenario", "COMMAND"),
        help_epilogue="",
    )
    for name, (function, operands, summary) in SCENARIO.items():
        # A summary would take the place of the command's own page.
        own = None if "scenario" in words and name in words else summary
        path = f"forewarn.cli.scenarios:{function}"
        app.command(path, name=name, usage=_usage(f"scenario {name}", operands), help=own)
    return app


def _webhook() -> App:
    app = App(
        name="webhook", usage=_usage("webhook", "COMMAND"), help=webhooks.HELP, help_epilogue=""
    )
    for function, operands in (
        (webhooks.add, "NAME URL"),
        (webhooks.list_, ""),
        (webhooks.show, "WEBHOOK"),
        (webhooks.try_out, "WEBHOOK"),
        (webhooks.pause, "WEBHOOK"),
        (webhooks.resume, "WEBHOOK"),
        (webhooks.remove, "WEBHOOK"),
        (webhooks.dead_letters, "WEBHOOK"),
        (webhooks.redeliver, "WEBHOOK [NUMBER...]"),
        (webhooks.discard, "WEBHOOK NUMBER..."),
    ):
        # Neither is a good name for a function.
        names = {webhooks.list_: "list", webhooks.try_out: "test"}
        name = names.get(function, function.__name__.replace("_", "-"))
        app.command(function, name=name, usage=_usage(f"webhook {name}", operands))
    return app
