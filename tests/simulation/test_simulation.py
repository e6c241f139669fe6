"""The promises hold in thousands of stories full of faults; whoever breaks one is found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count

import coverage
import pytest
from tests.simulation.broken import (
    CarelessStore,
    DeafConductor,
    EagerConductor,
    GullibleConductor,
    HastyConductor,
    HollowStore,
    LazyConductor,
    MuteStore,
    RecklessConductor,
    SecretiveConductor,
    StuckStore,
    TwofoldFabric,
)

from forewarn.ports.store import Cursor
from forewarn.service.conductor import Conductor
from forewarn.testing import simulation
from forewarn.testing.acts import Approve, Die, Intrude, Jump, Spoil
from forewarn.testing.faults import StoreDoor
from forewarn.testing.player import Player
from forewarn.testing.scripts import Script, write
from forewarn.testing.simulation import Failure, Tally
from forewarn.testing.stage import Cast
from forewarn.testing.witnesses import WitnessedFabric

SEEDS = 2000
SEEDS_PER_TEST = 50
# A broken rule shows in far fewer.
HUNTED_MAX = 300


@pytest.fixture
def unmeasured() -> Iterator[None]:
    """To measure coverage takes three times as long, and thousands of stories cover nothing new."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.stop()
    yield
    if measuring is not None:
        measuring.start()


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("first", range(1, SEEDS + 1, SEEDS_PER_TEST))
def test_the_promises_hold_whatever_goes_wrong(first: int) -> None:
    """keeps S7, S8, S9, S10, S11, S12, S13, S14, S15, S16, S17, S19, S20, S21, S23, N4, N5, N6, N12."""
    tally = simulation.run(range(first, first + SEEDS_PER_TEST), lambda _: True)

    assert not tally.failures, "\n\n".join(map(str, tally.failures))


def cast_with(broken: type) -> Cast:
    if issubclass(broken, StoreDoor):
        return Cast(store=broken)
    if issubclass(broken, WitnessedFabric):
        return Cast(fabric=broken)
    assert issubclass(broken, Conductor)
    return Cast(conductor=broken)


def hunt(broken: type) -> Failure:
    """The first story in which a broken part is found out, as it was told."""
    for seed in range(1, HUNTED_MAX):
        failure = simulation.attempt(write(seed), cast_with(broken))
        if failure is not None:
            return failure
    raise LookupError(f"nobody noticed a {broken.__name__}")


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (HastyConductor, "S11|S17"),
        (EagerConductor, "S17: nobody approved it"),
        (LazyConductor, "S1[67]: .*(nothing happens|come to rest)"),
        (GullibleConductor, "S11: too little notice"),
        (RecklessConductor, "S20"),
        (DeafConductor, "S13: heard, and disabled"),
        (SecretiveConductor, "S8: an impact nobody was told of"),
        (StuckStore, "S[79]"),
        (CarelessStore, "S9|S16|S23|S8|N6"),
        (MuteStore, "S23"),
        (HollowStore, "S7: guests read what nobody committed|S16|S23"),
        (TwofoldFabric, "S10: carried out twice"),
    ],
)
def test_a_rule_broken_on_purpose_is_caught(broken: type, promise: str) -> None:
    failure = hunt(broken)

    with pytest.raises(type(failure.error), match=promise):
        raise failure.error


def test_a_failure_is_told_with_its_seed_and_as_short_as_can_be() -> None:
    failure = hunt(HastyConductor)

    shortest = simulation.shorten(failure, cast_with(HastyConductor))

    assert len(shortest.script.beats) <= 3 < len(failure.script.beats)
    assert shortest.reason == failure.reason
    assert simulation.attempt(shortest.script, cast_with(HastyConductor)) is not None
    told = str(shortest)
    assert f"seed {failure.script.seed} at commit " in told
    assert "Announce(service=" in told
    assert "the shortest story" in told


def journal(script: Script) -> list[object]:
    player = Player(script, Cast())
    player.play()
    return list(player.stage.store.changes(Cursor(""), 100_000))


def test_a_seed_tells_the_same_story_again() -> None:
    assert write(77) == write(77)
    assert journal(write(77)) == journal(write(77))
    assert journal(write(77)) != journal(write(78))


def test_whatever_can_go_wrong_does() -> None:
    acts = Counter(type(beat.act) for seed in range(20) for beat in write(seed).beats)

    assert {Approve, Die, Intrude, Jump, Spoil} <= set(acts)
    assert min(acts.values()) > 1


def test_the_command_tells_one_seed_or_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulation.main(["3"]) == 0
    assert capsys.readouterr().out.startswith("1 seeds, 10")

    assert simulation.main(["5", "--seconds", "0.01"]) == 0
    assert "seeds from 5 on, commit " in capsys.readouterr().out


def test_a_run_goes_on_for_as_long_as_it_is_told() -> None:
    def goes_on(tally: Tally) -> bool:
        return tally.seeds < 3

    tally = simulation.run(count(1), goes_on)

    assert tally.seeds == 3
    assert tally.counts["turns"] > 0
