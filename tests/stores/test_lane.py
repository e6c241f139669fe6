"""Lane: what is asked for at the same time is done together, and nobody is left waiting."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from forewarn.errors import OutcomeUnknown
from forewarn.stores.lane import Lane

T = TypeVar("T")

SECONDS = 10


class InterruptedWork(BaseException):
    """Like KeyboardInterrupt: nothing that an ordinary `except` would catch."""


class Works:
    """Squares numbers, negative ones excepted, in groups; the gate holds up whoever is at work."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began = threading.Semaphore(0)
        self.groups: list[list[int]] = []
        self.is_closed = False
        self.lane = Lane[int, int](self._square)

    def _square(self, aboard: Callable[[], list[int]]) -> list[int | Exception]:
        if self.is_closed:
            raise LookupError("closed")
        group = aboard()
        self.groups.append(group)
        self.began.release()
        assert self.gate.wait(SECONDS)
        if 0 in group:
            raise InterruptedWork
        return [n * n if n > 0 else ValueError(n) for n in group]


@pytest.fixture
def works() -> Works:
    return Works()


class Crew:
    """A thread for each piece of work; one that never comes back fails its test, and ends with it."""

    def submit(self, work: Callable[..., T], *arguments: int) -> Future[T]:
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                done.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return done


@pytest.fixture
def crew() -> Crew:
    return Crew()


def go(works: Works, crew: Crew, *numbers: int) -> list[Future[int]]:
    """Send one after another into the lane, in this order."""
    sent = []
    for number in numbers:
        before = waiting(works)
        sent.append(crew.submit(works.lane.go, number))
        wait_until(lambda before=before: waiting(works) > before)  # type: ignore[misc]
    return sent


def lead(works: Works, crew: Crew, number: int) -> Future[int]:
    leader = crew.submit(works.lane.go, number)
    assert works.began.acquire(timeout=SECONDS)
    return leader


def waiting(works: Works) -> int:
    return len(works.lane._waiting)  # noqa: SLF001 - nothing else tells that somebody waits


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(SECONDS * 1000):
        if is_so():
            return
        pause.wait(0.001)
    pytest.fail("it never came to that")


def test_who_comes_alone_goes_at_once_and_alone(works: Works) -> None:
    works.gate.set()

    assert [works.lane.go(number) for number in (2, 3, 4)] == [4, 9, 16]
    assert works.groups == [[2], [3], [4]]


def test_those_who_come_meanwhile_go_together_in_the_order_of_arrival(
    works: Works, crew: Crew
) -> None:
    first = lead(works, crew, 1)
    others = go(works, crew, 5, 3, 4, 2)

    works.gate.set()

    assert first.result(SECONDS) == 1
    assert [other.result(SECONDS) for other in others] == [25, 9, 16, 4]
    assert works.groups == [[1], [5, 3, 4, 2]]


def test_each_has_an_outcome_of_its_own(works: Works, crew: Crew) -> None:
    first = lead(works, crew, 1)
    two, bad, worse = go(works, crew, 2, -1, -2)

    works.gate.set()

    assert (first.result(SECONDS), two.result(SECONDS)) == (1, 4)
    with pytest.raises(ValueError, match="-1"):
        bad.result(SECONDS)
    with pytest.raises(ValueError, match="-2"):
        worse.result(SECONDS)


def test_if_the_leader_is_interrupted_the_others_do_not_know_and_all_goes_on(
    works: Works, crew: Crew
) -> None:
    first = lead(works, crew, 1)
    interrupted, unlucky = go(works, crew, 0, 2)

    works.gate.set()

    assert first.result(SECONDS) == 1
    with pytest.raises(InterruptedWork):
        interrupted.result(SECONDS)
    with pytest.raises(OutcomeUnknown, match="repeat the commit"):
        unlucky.result(SECONDS)
    assert works.lane.go(3) == 9


def test_where_nothing_can_be_done_each_is_told_so(works: Works, crew: Crew) -> None:
    first = lead(works, crew, 1)
    others = go(works, crew, 2, 3, 4)
    works.is_closed = True

    works.gate.set()

    assert first.result(SECONDS) == 1
    for other in others:
        with pytest.raises(LookupError, match="closed"):
            other.result(SECONDS)
    assert waiting(works) == 0


def test_who_is_interrupted_while_waiting_holds_nobody_up(works: Works, crew: Crew) -> None:
    def interrupt(_signal: int, _frame: object) -> None:
        raise InterruptedWork

    first = lead(works, crew, 1)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt_main() -> None:
        wait_until(lambda: waiting(works) == 1)
        signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        interrupting = crew.submit(interrupt_main)
        with pytest.raises(InterruptedWork):
            works.lane.go(2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    interrupting.result(SECONDS)
    (other,) = go(works, crew, 3)
    works.gate.set()

    assert (first.result(SECONDS), other.result(SECONDS)) == (1, 9)
    assert works.groups == [[1], [3]]


def test_those_who_go_again_and_again_stay_together(works: Works, crew: Crew) -> None:
    """Not all of the time, for threads are slow at times: but two halves would be half of it."""
    works.gate.set()
    pause = threading.Event()

    def slowly(aboard: Callable[[], list[int]]) -> list[int | Exception]:
        group = aboard()
        sizes.append(len(group))
        pause.wait(0.02)
        return [*group]

    sizes: list[int] = []
    lane = Lane[int, int](slowly)

    def go_again(number: int) -> None:
        for _ in range(20):
            assert lane.go(number) == number

    for going in [crew.submit(go_again, number) for number in range(8)]:
        going.result(SECONDS)

    assert sum(sizes) == 160
    assert sum(size == 8 for size in sizes) >= 10
