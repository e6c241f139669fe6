"""Peers: what is known of the others, how they are asked, and agents that wait for each other."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from forewarn.agent.answers import Reply
from forewarn.agent.endpoint import ReportServer
from forewarn.agent.peers import (
    EVERY_SECONDS,
    FORGOTTEN_SECONDS,
    STALE_SECONDS,
    THREADS_MAX,
    AskedNeighborhood,
    HttpAsk,
    Inquiry,
    Question,
    asking,
)
from forewarn.agent.rules import Condition, Peers, Rule
from forewarn.agent.settings import PeerSettings, parse_settings
from forewarn.client.documents import SCHEDULED, Event
from forewarn.errors import Malformed
from forewarn.testing.agents import AgentProcess
from forewarn.testing.scheduled_events import ScheduledEvents, emulated

EVENT: Final = Event("A-1", "Reboot", SCHEDULED, ("Web-0", "web-1", "web-2"))
MEMBERS: Final = ("web-0", "web-1", "web-2", "Web-3", "web-4")
ALL_READY: Final = Rule(only=(Condition.PEERS_READY,))
NOT_LAST: Final = Rule(only=(Condition.NOT_LAST,))


class Others:
    """Those who are asked: who says yes is in `yes`."""

    def __init__(self) -> None:
        self.yes: set[str] = set()
        self.asked: list[Inquiry] = []
        self.seconds = 0.0
        self.rings = 0
        self._news = threading.Condition()

    def ask(self, inquiry: Inquiry) -> bool:
        with self._news:
            self.asked.append(inquiry)
            return inquiry.peer in self.yes

    def ring(self) -> None:
        with self._news:
            self.rings += 1
            self._news.notify_all()

    def wait_for_rings(self, count: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.rings >= count, 20)


@pytest.fixture
def others() -> Others:
    return Others()


@pytest.fixture
def neighborhood(others: Others) -> AskedNeighborhood:
    return AskedNeighborhood("web-0", MEMBERS, others.ask, others.ring, lambda: others.seconds)


def settled(neighborhood: AskedNeighborhood, rule: Rule) -> Peers:
    """What is known once all questions are answered."""
    neighborhood.peers(EVENT, rule)
    for thread in threading.enumerate():
        if thread.name == "peers":
            thread.join(20)
    return neighborhood.peers(EVENT, rule)


# -- what is known ---------------------------------------------------------------------------------


def test_of_an_events_others_it_is_known_who_said_to_be_ready(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    others.yes = {"web-2"}

    assert neighborhood.peers(EVENT, ALL_READY) == Peers()
    others.wait_for_rings(1)

    assert settled(neighborhood, ALL_READY) == Peers(ready=frozenset({"web-2"}))
    assert set(others.asked) == {
        Inquiry("web-1", Question.READY, "A-1"),
        Inquiry("web-2", Question.READY, "A-1"),
    }


def test_of_the_members_those_are_asked_who_are_not_hit(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    others.yes = {"web-0", "web-1", "Web-3"}

    assert settled(neighborhood, NOT_LAST) == Peers(healthy=frozenset({"web-3"}))
    assert {one.peer for one in others.asked} == {"Web-3", "web-4"}


def test_without_a_condition_nobody_is_asked(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    assert settled(neighborhood, Rule(only=(Condition.LEADER,))) == Peers()
    assert others.asked == []


def test_nobody_is_asked_more_than_about_once_a_second(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    for _ in range(5):
        settled(neighborhood, ALL_READY)
    assert len(others.asked) == 2

    others.seconds = EVERY_SECONDS

    settled(neighborhood, ALL_READY)
    assert len(others.asked) == 4


def test_an_old_answer_does_not_count(others: Others, neighborhood: AskedNeighborhood) -> None:
    others.yes = {"web-1", "web-2"}
    assert settled(neighborhood, ALL_READY).ready == {"web-1", "web-2"}

    others.seconds = STALE_SECONDS + 0.1

    # It is asked for anew, and until then nothing is known.
    assert neighborhood.peers(EVENT, ALL_READY) == Peers()
    assert settled(neighborhood, ALL_READY).ready == {"web-1", "web-2"}


def test_who_says_no_takes_his_yes_back_and_the_bell_is_rung(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    others.yes = {"web-1", "web-2"}
    settled(neighborhood, ALL_READY)
    others.seconds, others.yes = EVERY_SECONDS, {"web-1"}

    known = settled(neighborhood, ALL_READY)

    assert known.ready == {"web-1"}
    assert others.rings == 3


def test_the_bell_is_not_rung_for_what_is_known(
    others: Others, neighborhood: AskedNeighborhood
) -> None:
    others.yes = {"web-1"}
    for second in range(5):
        others.seconds = float(second)
        settled(neighborhood, ALL_READY)

    assert others.rings == 1


def test_what_nobody_asks_for_is_forgotten(others: Others, neighborhood: AskedNeighborhood) -> None:
    others.yes = {"web-1"}
    settled(neighborhood, ALL_READY)
    others.seconds = FORGOTTEN_SECONDS + 1

    neighborhood.peers(EVENT, Rule())

    assert not neighborhood._asked  # noqa: SLF001 - nobody else can tell
    assert not neighborhood._yes  # noqa: SLF001


def test_peers_that_hang_keep_nobody_waiting_and_are_not_many_threads(others: Others) -> None:
    gate = threading.Event()
    at_once = threading.Semaphore(0)

    def ask(_: Inquiry) -> bool:
        at_once.release()
        return gate.wait(20)

    names = tuple(f"web-{number}" for number in range(3 * THREADS_MAX))
    event = Event("A-1", "Reboot", SCHEDULED, names)
    neighborhood = AskedNeighborhood("web-0", (), ask, others.ring, lambda: others.seconds)

    for second in range(5):
        others.seconds = float(second)
        assert neighborhood.peers(event, ALL_READY) == Peers()

    assert all(at_once.acquire(timeout=20) for _ in range(THREADS_MAX))
    assert not at_once.acquire(timeout=0.1)
    gate.set()
    others.wait_for_rings(len(names) - 1)
    assert len(neighborhood.peers(event, ALL_READY).ready) == len(names) - 1


def test_a_question_that_breaks_is_a_no_and_others_are_asked(others: Others) -> None:
    def ask(inquiry: Inquiry) -> bool:
        if inquiry.peer == "web-1":
            raise ZeroDivisionError
        return True

    neighborhood = AskedNeighborhood("web-0", (), ask, others.ring, lambda: others.seconds)

    assert settled(neighborhood, ALL_READY).ready == {"web-2"}


# -- how they are asked ----------------------------------------------------------------------------


@pytest.fixture
def peer() -> Iterator[ReportServer]:
    """An agent's endpoint that says yes to what is asked as it should be."""

    def reply(target: str) -> Reply:
        return Reply(200 if target in ("/readyz", "/readyz?event=A%2F1") else 503, "")

    with ReportServer("127.0.0.1:0", reply) as server:
        yield server


def test_an_agent_is_asked_at_its_endpoint(peer: ReportServer) -> None:
    port = peer.url.rpartition(":")[2]
    ask = HttpAsk(PeerSettings(url=f"http://{{name}}:{port}", urls=(("web-1", peer.url),)))

    assert ask(Inquiry("127.0.0.1", Question.HEALTHY, "A/1"))
    assert ask(Inquiry("Web-1", Question.READY, "A/1"))
    assert not ask(Inquiry("Web-1", Question.READY, "B-2"))


def test_no_answer_is_a_no(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        ask = HttpAsk(
            PeerSettings(urls=(("a", "http://127.0.0.1:1"), ("b", f"http://127.0.0.1:{port}")))
        )

        assert not ask(Inquiry("a", Question.HEALTHY, "A-1"))
        assert not ask(Inquiry("b", Question.HEALTHY, "A-1"))
        assert not ask(Inquiry("c", Question.HEALTHY, "A-1"))
        assert not ask(Inquiry("c", Question.HEALTHY, "A-1"))

    assert caplog.text.count("nothing says where the agent of c is") == 1


def test_a_name_that_is_no_hosts_is_a_no() -> None:
    ask = HttpAsk(PeerSettings(url="http://{name}:1"))

    assert not ask(Inquiry("a/b?", Question.HEALTHY, "A-1"))


def test_a_command_is_told_whom_to_ask_for_what(tmp_path: Path) -> None:
    file = tmp_path / "asked"
    command = (
        "/bin/sh",
        "-c",
        f'echo "$PEER $EVENT_ID $QUESTION $X" >> {file}; test $PEER = web-1',
    )
    ask = asking(PeerSettings(command=command), {"X": "x"})

    assert ask(Inquiry("web-1", Question.READY, "A-1"))
    assert not ask(Inquiry("web-2", Question.HEALTHY, "A-1"))

    assert file.read_text() == "web-1 A-1 ready x\nweb-2 A-1 healthy x\n"


@pytest.mark.parametrize(
    "url", ["https://{name}:8171", "http://{name}/path", "{name}:x", "http://"]
)
def test_where_nobody_can_be_asked_is_known_at_the_start(url: str) -> None:
    for text in (f"[peers]\nurl = {json.dumps(url)}\n", f"[peers.urls]\na = {json.dumps(url)}\n"):
        with pytest.raises(Malformed, match="http://"):
            parse_settings(text, "a file")


# -- real agents -----------------------------------------------------------------------------------

# Three that are hit together, and one that is not.
FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
update_domains = 2
machine = [
  { name = "web-0", host = "host-a", update_domain = 0 },
  { name = "web-1", host = "host-a", update_domain = 0 },
  { name = "web-2", host = "host-a", update_domain = 0 },
  { name = "web-3", host = "host-b", update_domain = 1 },
]
"""
TRIO: Final = ("web-0", "web-1", "web-2")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ScheduledEvents]:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    with emulated(fleet=file) as scheduled_events:
        yield scheduled_events


def free_ports(count: int) -> tuple[int, ...]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return tuple(probe.getsockname()[1] for probe in probes)


def agents(world: ScheduledEvents, directory: Path, condition: str) -> dict[str, AgentProcess]:
    """One for each VM. Its prepare is over, and it is healthy, as soon as its files are there."""
    names = world.machines
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    urls = "".join(f'{name} = "http://127.0.0.1:{port}"\n' for name, port in ports.items())
    made = {
        name: AgentProcess(
            directory / name,
            world.url_of(name),
            f'healthy = "test -e {directory}/{name}.well"\n'
            f'[[rules]]\nonly = ["{condition}"]\n'
            f"[peers]\nmembers = {json.dumps(names)}\n[peers.urls]\n{urls}",
            listen=f"127.0.0.1:{port}",
        )
        for name, port in ports.items()
    }
    for name, agent in made.items():
        gate = f"{directory}/{name}.go"
        agent.hook("prepare", "10-wait", f"while ! test -e {gate}; do sleep 0.05; done")
    return made


def whys(made: dict[str, AgentProcess]) -> set[str]:
    """What keeps those from approving who have something in hand."""
    told = [agent.get("/events").json["events"] for agent in made.values()]
    return {event["why"] for events in told for event in events}


@pytest.mark.end_to_end
def test_agents_that_wait_for_each_other_get_ready_and_approve(
    world: ScheduledEvents, tmp_path: Path
) -> None:
    made = agents(world, tmp_path, "peers-ready")
    with ExitStack() as stack:
        for agent in made.values():
            stack.enter_context(agent).wait_for_log("this VM is")
        event = world.reboot(*TRIO)
        for name in ("web-0", "web-1"):
            (tmp_path / f"{name}.go").touch()
        world.wait_until(
            lambda: whys(made) == {"waits until web-2 made ready", "the hooks are not over"}
        )
        assert event.approved_by is None

        (tmp_path / "web-2.go").touch()

        world.wait_until(lambda: event.approved_by is not None)
        world.wait_until(lambda: event.status == "Started")


@pytest.mark.end_to_end
def test_the_last_healthy_member_is_not_taken(world: ScheduledEvents, tmp_path: Path) -> None:
    made = agents(world, tmp_path, "not-last")
    for name in TRIO:
        (tmp_path / f"{name}.go").touch()
        (tmp_path / f"{name}.well").touch()
    with ExitStack() as stack:
        for agent in made.values():
            stack.enter_context(agent).wait_for_log("this VM is")
        event = world.reboot(*TRIO)
        world.wait_until(lambda: whys(made) == {"no other member is known to be healthy"})
        assert event.approved_by is None

        (tmp_path / "web-3.well").touch()

        world.wait_until(lambda: event.approved_by is not None)


@pytest.mark.end_to_end
def test_peers_may_agree_by_a_command_that_they_share(
    world: ScheduledEvents, tmp_path: Path
) -> None:
    """As by a file that all of them see; none of them listens anywhere."""
    made = {
        name: AgentProcess(
            tmp_path / name,
            world.url_of(name),
            '[[rules]]\nonly = ["peers-ready"]\n'
            f'[peers]\ncommand = "test -e {tmp_path}/$EVENT_ID-$PEER"\n',
            listen="",
        )
        for name in TRIO
    }
    with ExitStack() as stack:
        for agent in made.values():
            agent.hook("prepare", "10-tell", f"touch {tmp_path}/$EVENT_ID-$EVENT_NAME")
            stack.enter_context(agent).wait_for_log("this VM is")

        event = world.reboot(*TRIO)

        world.wait_until(lambda: event.approved_by is not None)
        # Who approved had seen that all were ready.
        assert {one.name for one in tmp_path.glob(f"{event.id}-*")} == {
            f"{event.id}-{name}" for name in TRIO
        }
