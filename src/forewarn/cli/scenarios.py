"""`forewarn scenario`: run one, list those that come with forewarn, show one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from forewarn.cli.answers import Clock
from forewarn.cli.client import Client
from forewarn.cli.connection import Connection
from forewarn.cli.options import AsJson, Length
from forewarn.cli.own_emulator import own_emulator
from forewarn.cli.playing import Outcome, Played, Player
from forewarn.cli.tables import Table, print_json, print_json_line, print_line, print_table
from forewarn.clocks import SystemClock
from forewarn.config import scenarios
from forewarn.config.scenarios import Scenario
from forewarn.config.surroundings import Surroundings
from forewarn.core.periods import spell
from forewarn.errors import Malformed, Refused
from forewarn.tables.durations import parse_duration

NOT_KEPT: Final = 1
LOOK_SECONDS: Final = 0.1
# How long handlers have for a last look, in real time.
READ_LATEST: Final = timedelta(seconds=5)
_SECOND: Final = timedelta(seconds=1)

Lines = Annotated[
    bool, Parameter(name="--json", help="Print a line of JSON for each step, for programs.")
]


def run(
    scenario: Annotated[str, Parameter(name="SCENARIO")],
    /,
    *,
    clock: Literal["manual", "real"] | None = None,
    speed: float | None = None,
    seed: int | None = None,
    port: int | None = None,
    attach: Length = "1m",
    data: Path | None = None,
    as_json: Lines = False,
) -> int:
    """Play a scenario, and say whether what it expects came true.

    It is played in an emulator of its own, as fast as it goes; or in the one that
    --data names, which begins anew for it. To have a handler take part, let the
    clock go.

    For example:

        forewarn scenario run live-migration
        forewarn scenario run ./mine.toml --speed 60 --port 8080
        forewarn scenario run handler-approves --data /tmp/forewarn-k3x9

    The exit status is 0 if all expectations were kept, and 1 if not.

    Args:
        scenario: The name of one that comes with forewarn, or the path of a file.
        clock: Whether time passes by itself, or as the steps want it (manual, if not said).
        speed: How many seconds pass in one, at most 3600; without a handler, leave it out.
        seed: Make the ids of events and the time of the beginning the same each time.
        port: Where VMs are known by their address; the ports after it are one for each VM.
        attach: How long to wait for a handler that is to approve something, in real time.
        data: Data directory of an emulator that runs already; else FOREWARN_DATA, or none.
    """
    chosen = scenarios.find_scenario(scenario)
    patience = parse_duration(attach).total_seconds()
    with _emulator(data, chosen, _options(clock, speed, seed, port), seed) as client:
        now = client.clock()
        _introduce(client, chosen, now, as_json=as_json)
        if chosen.awaits_handler and now["speed"] and not _attended(client, patience):
            _say(f"no handler asked within {attach}: it goes on without", as_json=as_json)
        played = []
        # The beginning is when somebody is there.
        player = Player(client, chosen, client.clock())
        for one in player.play():
            played.append(one)
            _tell(one, as_json=as_json)
        if now["speed"]:
            _let_handlers_read(client, player)
    return _judge(chosen, played, as_json=as_json)


def list_(*, as_json: AsJson = False) -> None:
    """List the scenarios that come with forewarn.

    For example:

        forewarn scenario list
    """
    found = [
        scenarios.parse_scenario(text, f"{name}.toml", name)
        for name, text in scenarios.shipped().items()
    ]
    if as_json:
        print_json({"scenarios": [{"name": one.name, "title": one.title} for one in found]})
        return
    rows = [(one.name, one.title) for one in found]
    print_table(Table(headings=("scenario", "what happens"), rows=rows))


def show(name: Annotated[str, Parameter(name="NAME")], /) -> None:
    """Show the file of a scenario that comes with forewarn.

    It is there to be read, and to begin one of your own with.

    For example:

        forewarn scenario show live-migration > mine.toml

    Args:
        name: The scenario's name.
    """
    for line in scenarios.shipped_text(name).splitlines():
        print_line(line)


@contextmanager
def _emulator(
    data: Path | None, scenario: Scenario, options: list[str], seed: int | None
) -> Iterator[Client]:
    data = data or Surroundings.of_this_process().data_directory
    if data is None:
        if "--speed" not in options and "--clock" not in options:
            options = [*options, "--clock", "manual"]
        with own_emulator(scenario.fleet_toml, options) as client:
            yield client
        return
    if any(word in options for word in ("--clock", "--speed", "--port")):
        raise Malformed(
            "the emulator that runs has a clock and ports already: leave --clock, --speed and "
            "--port out, or leave out which emulator (--data, FOREWARN_DATA)"
        )
    client = Connection(data=data).client()
    _refuse_unfit(client, scenario)
    if seed is None:
        client.reset()
    else:
        client.seed(seed)
    yield client


def _options(
    clock: str | None, speed: float | None, seed: int | None, port: int | None
) -> list[str]:
    """What was said, as options of `forewarn emulate`."""
    given = {"--clock": clock, "--speed": speed, "--seed": seed, "--port": port}
    return [
        word
        for name, value in given.items()
        if value is not None
        for word in (name, f"{value:g}" if isinstance(value, float) else str(value))
    ]


def _refuse_unfit(client: Client, scenario: Scenario) -> None:
    """Refuse a service that is no emulator, or has not the scenario's VMs. Raises: Refused."""
    known = {name.lower() for name in client.addresses()["machines"]}
    missing = [name for name in scenario.fleet.machine_names if name.lower() not in known]
    if missing:
        raise Refused(
            f"the emulator has no VM {', '.join(missing)}: start it with those that the scenario "
            "names, or leave out which emulator (--data, FOREWARN_DATA) to have one started"
        )


def _attended(client: Client, seconds: float) -> bool:
    """Wait until somebody asks as a VM; whether somebody did."""
    clock = SystemClock()
    began = clock.elapsed()
    while not client.requests()["requests"]:
        if (clock.elapsed() - began).total_seconds() >= seconds:
            return False
        threading.Event().wait(LOOK_SECONDS)
    return True


def _let_handlers_read(client: Client, player: Player) -> None:
    """Wait until whoever asked as a VM has read what came last, so that it can act on it."""
    before = _asked(client)
    left = {machine for machine, count in before.items() if count > player.asked[machine]}
    clock = SystemClock()
    began = clock.elapsed()
    while left and clock.elapsed() - began < READ_LATEST:
        threading.Event().wait(LOOK_SECONDS)
        now = _asked(client)
        left = {machine for machine in left if now[machine] <= before[machine]}


def _asked(client: Client) -> Counter[str]:
    """How often was asked as each VM, by its short name."""
    requests = client.requests()["requests"]
    return Counter(one["machine"].lower() for one in requests if one["machine"] is not None)


def _introduce(client: Client, scenario: Scenario, now: Clock, *, as_json: bool) -> None:
    addresses = client.addresses()
    if as_json:
        told = {"scenario": scenario.name, "title": scenario.title, **now, **addresses}
        print_json_line(told)
        return
    print_line(f"{scenario.name}: {scenario.title}")
    for machine, url in addresses["machines"].items():
        print_line(f"{machine} is {url}")
    if scenario.awaits_handler and now["speed"]:
        print_line("it begins when a handler asks there")


def _tell(played: Played, *, as_json: bool) -> None:
    after = int(played.after.total_seconds())
    if as_json:
        print_json_line(
            {
                "step": played.step.number,
                "at": f"{played.at:%Y-%m-%dT%H:%M:%SZ}",
                "after_seconds": after,
                "outcome": played.outcome.value,
                "what": played.what,
                "seen": played.seen,
            }
        )
        return
    offset = spell(played.after - (played.after % _SECOND))
    line = f"+{offset:<8} {played.at:%H:%M:%SZ}  {played.outcome.value}: {played.what}"
    if played.outcome in {Outcome.NOT_KEPT, Outcome.PASSED_OVER}:
        line += f"; seen: {played.seen}"
    print_line(line)


def _judge(scenario: Scenario, played: list[Played], *, as_json: bool) -> int:
    count = Counter(one.outcome for one in played)
    is_kept = not count[Outcome.NOT_KEPT]
    left = len(scenario.steps) - len(played)
    if as_json:
        verdict = {
            "verdict": "kept" if is_kept else "not kept",
            "kept": count[Outcome.KEPT],
            "not_kept": [one.step.number for one in played if one.outcome is Outcome.NOT_KEPT],
            "passed_over": count[Outcome.PASSED_OVER],
            "not_played": left,
        }
        print_json_line(verdict)
    else:
        print_line(_verdict(count, left))
    return 0 if is_kept else NOT_KEPT


def _verdict(count: Counter[Outcome], left: int) -> str:
    kept, failed = count[Outcome.KEPT], count[Outcome.NOT_KEPT]
    passed = count[Outcome.PASSED_OVER]
    text = f"NOT KEPT: {failed} failed, {kept} kept" if failed else f"KEPT: {kept} expectations"
    if passed:
        text += f", {passed} passed over"
    return f"{text}; {left} steps were not played" if left else text


def _say(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json_line({"note": text})
    else:
        print_line(text)
