"""What one caller may take of the loop, on a loop whose time passes only while it has nothing to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine

import pytest

from forewarn.web.allowances import Allowance
from forewarn.web.limits import Limits

# Twenty at once, then a hundred a second, and four in a turn.
ADDRESS = "10.0.0.1"
STINGY = Limits(
    requests_per_second_max=100,
    requests_burst_max=20,
    requests_per_turn_max=4,
    bytes_per_second_max=100_000,
)


class _Skipping(selectors.DefaultSelector):
    """Lets time pass instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(0)


class QuickLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds take no time, and whose computing takes none of its seconds."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


def run(story: Callable[[], Coroutine[None, None, None]]) -> None:
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        runner.run(story())


def now() -> float:
    return asyncio.get_running_loop().time()


class Guest:
    """Somebody in line: asks, and asks again as soon as it was answered."""

    def __init__(self, allowance: Allowance, name: str = "", asks: int = 1, cost: int = 0) -> None:
        self._allowance = allowance
        self._name = name
        self._cost = cost
        self._left = asks
        self._answered: list[str] = []
        self.done = asyncio.Event()

    def begin(self, answered: list[str]) -> None:
        self._answered = answered
        self._allowance.line_up(self)

    def go_on(self) -> None:
        self._answered.append(self._name)
        self._allowance.left -= self._cost
        self._left -= 1
        if self._left:
            self._allowance.line_up(self)
        else:
            self.done.set()


async def answer(*guests: Guest) -> tuple[list[str], float]:
    """Let all of them be answered; in which order, and how long that took."""
    begun = now()
    answered: list[str] = []
    for guest in guests:
        guest.begin(answered)
    for guest in guests:
        await guest.done.wait()
    return answered, now() - begun


def test_a_caller_has_so_much_at_once_and_then_so_much_a_second() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)

        _, at_once = await answer(Guest(allowance, asks=20))
        _, later = await answer(Guest(allowance, asks=100))

        assert at_once < 0.05
        assert later == pytest.approx(1, abs=0.1)

    run(story)


def test_a_silence_earns_no_more_than_so_much_at_once() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        await answer(Guest(allowance, asks=20))
        await asyncio.sleep(3600)

        _, took = await answer(Guest(allowance, asks=60))

        assert took == pytest.approx(0.4, abs=0.1)

    run(story)


@pytest.mark.parametrize(("size", "seconds"), [(900, 0.0), (15_000, 0.45)])
def test_bytes_are_paid_for_like_requests(size: int, seconds: float) -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        await answer(Guest(allowance, asks=20))
        begun = now()
        for _ in range(3):
            allowance.charge_bytes(size)
            await answer(Guest(allowance))

        assert now() - begun == pytest.approx(seconds, abs=0.1)

    run(story)


def test_a_debt_is_paid_before_the_next_answer() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        await answer(Guest(allowance, asks=20))
        allowance.left -= 15

        _, took = await answer(Guest(allowance))

        assert 0.1 < took < 0.2

    run(story)


def test_nobody_is_made_to_pay_for_ever() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        allowance.left -= 5_000

        _, took = await answer(Guest(allowance))

        assert took < 1

    run(story)


def test_whoever_has_much_to_ask_lets_others_in_between() -> None:
    async def story() -> None:
        limits = Limits(requests_per_turn_max=4)
        greedy, modest = Allowance(limits, ADDRESS), Allowance(limits, "10.0.0.2")
        crowd = [Guest(greedy, "greedy") for _ in range(40)]

        answered, _ = await answer(*crowd, Guest(modest, "modest"))

        assert answered.index("modest") <= limits.requests_per_turn_max

    run(story)


def test_whoever_asked_a_moment_ago_stands_in_line() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)

        assert allowance.renew()
        assert not allowance.renew()
        await asyncio.sleep(1)
        assert allowance.renew()

    run(story)


def test_whoever_comes_late_does_not_pass_those_in_line() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        waiting = Guest(allowance)
        waiting.begin([])

        assert not allowance.renew()
        await waiting.done.wait()

    run(story)


def test_a_debt_is_not_renewed_away() -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        allowance.left -= 10

        assert not allowance.renew()

    run(story)


@pytest.mark.parametrize(("silence", "is_untouched"), [(0.0, False), (0.1, False), (0.3, True)])
def test_an_allowance_is_forgotten_once_all_is_earned_again(
    silence: float,
    is_untouched: bool,  # noqa: FBT001 - a row of a table
) -> None:
    async def story() -> None:
        allowance = Allowance(STINGY, ADDRESS)
        await answer(Guest(allowance, asks=20))
        await asyncio.sleep(silence)

        assert allowance.is_untouched(now()) is is_untouched

    run(story)
