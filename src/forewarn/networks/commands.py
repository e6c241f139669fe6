"""Running programs: the room's hands and eyes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from forewarn.errors import Refused, Unavailable
from forewarn.networks import filters
from forewarn.networks.plans import Command
from forewarn.networks.surveys import Survey, parse_devices, parse_routes

PACKAGES: Final = {"ip": "iproute2", "nft": "nftables", "sysctl": "procps"}

_SETTINGS: Final = Path("/proc/sys/net/ipv4/conf")
# Where they are, though the PATH of somebody who became root with `su` may not say so.
_SUPERUSERS: Final = ("/usr/sbin", "/sbin")
_SECONDS_MAX: Final = 120


def require_root() -> None:
    """Refuse whoever may not change a host's network. Raises: Refused."""
    if os.geteuid() != 0:
        raise Refused("only root may see and change a host's links and filters: run it with sudo")


def survey() -> Survey:
    """The host, or the network namespace, that we are in. Raises: Refused, Unavailable."""
    devices = _answer("ip", "-json", "-details", "address", "show")
    routes = _answer("ip", "-json", "-4", "route", "show")
    listed = {family: _table(family) for family in filters.FAMILIES}
    return Survey(
        parse_devices(devices, {file.name: _rp_filter(file) for file in _SETTINGS.iterdir()}),
        parse_routes(routes),
        {family: text for family, text in listed.items() if text},
    )


def rp_filter_of_all() -> int:
    """The host's own setting, which a device can make stricter and never looser."""
    return _rp_filter(_SETTINGS / "all")


def run(commands: Iterable[Command]) -> None:
    """Run commands, until one fails. Raises: Refused, Unavailable."""
    for command in commands:
        _answer(*command.words, told=command.told)


def _answer(program: str, *words: str, told: str = "") -> str:
    done = _run(program, *words, told=told)
    if done.returncode:
        raise Refused(
            f"`{program} {' '.join(words[:2])}` failed: {_reason(done)}; see what would be run with "
            "--dry-run, mend it, and run this again"
        )
    return done.stdout


def _run(program: str, *words: str, told: str = "") -> subprocess.CompletedProcess[str]:
    path = shutil.which(program) or shutil.which(program, path=os.pathsep.join(_SUPERUSERS))
    if path is None:
        raise Refused(f"there is no {program} here: `apt-get install {PACKAGES[program]}`")
    try:
        return subprocess.run(  # noqa: S603 - words of our own, and no shell
            [path, *words],
            input=told,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(
            f"{program} took longer than {_SECONDS_MAX} s: see what keeps it, then run this again"
        ) from error


def _table(family: str) -> str:
    done = _run("nft", "-s", "list", "table", family, filters.TABLE)
    # Where there is none, or where the kernel knows of no such family; it is told when one is wanted.
    absent = ("No such file", "not supported")
    if done.returncode and not any(reason in done.stderr for reason in absent):
        raise Refused(f"nft cannot list the table {family} {filters.TABLE}: {_reason(done)}")
    return done.stdout


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return lines[0] if lines else f"exit status {done.returncode}"


def _rp_filter(folder: Path) -> int:
    try:
        return int((folder / "rp_filter").read_text(encoding="ascii"))
    except FileNotFoundError:
        # The device went while we looked.
        return 0
