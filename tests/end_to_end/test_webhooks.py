"""Webhooks of a real service, over real sockets, through deaths."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.testing.processes import ServiceProcess, request
from forewarn.testing.receivers import Received, Receiver, is_signed

pytestmark = pytest.mark.end_to_end

FLEET = """
[[scope]]
name = "web"
resource_group = "rg1"
kind = "availability-set"
enabled = "always"
  [[scope.machine]]
  name = "web-0"
  address = "127.0.3.10"

[[scope]]
name = "db"
resource_group = "rg2"
enabled = "always"
  [[scope.machine]]
  name = "db"
  address = "127.0.3.20"
"""
PAGE = Path(__file__).parents[2] / "docs" / "operating" / "webhooks.md"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def service(tmp_path: Path, receiver: Receiver) -> Iterator[ServiceProcess]:
    allow = ("--webhook-allow", f"127.0.0.1:{receiver.port}")
    with ServiceProcess(tmp_path / "data", FLEET, *allow) as made:
        yield made


def changes(service: ServiceProcess) -> dict[str, list[tuple[str, str]]]:
    """What the journal has of each scope: the event and the change."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in json.loads(service.run("journal", "--json").stdout)["entries"]:
        if entry["event"] is not None:
            scope = f"{entry['resource_group']}/{entry['scope']}"
            found.setdefault(scope, []).append((entry["event"]["event_id"], entry["what"]))
    return found


def told(received: list[Received]) -> dict[str, list[tuple[str, str]]]:
    """What was told of each scope, the first time."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for one in received:
        content = one.json
        if one.id not in seen:
            seen.add(one.id)
            assert content["id"] == one.id
            word = content["type"].removeprefix("forewarn.event.").replace("-", " ")
            word = "announced" if word == "scheduled" else word
            found.setdefault(content["data"]["Scope"], []).append((content["subject"], word))
    return found


def wait_until_told(
    service: ServiceProcess, receiver: Receiver, words: dict[str, set[str]]
) -> None:
    """Wait until the journal has these words of each scope, and all of it was told in its order."""
    deadline = time.monotonic() + 90
    while True:
        expected, found = changes(service), told(receiver.taken)
        written = {scope: {word for _, word in expected[scope]} for scope in expected}
        if expected == found and all(words[scope] <= written[scope] for scope in words):
            return
        assert time.monotonic() < deadline, (expected, found)
        time.sleep(0.5)


def slowly(seconds: float) -> Receiver:
    def answer(_: Received) -> int:
        time.sleep(seconds)
        return 200

    return Receiver(answer)


def test_a_receiver_that_was_down_while_the_service_died_misses_nothing(
    service: ServiceProcess, receiver: Receiver
) -> None:
    """keeps N10: at least once, in the order of each scope, through deaths of either side."""
    added = service.json("webhook", "add", "pager", receiver.url)
    (first,) = service.announce("Freeze", "web-0")
    service.restart()
    (second,) = service.announce("Freeze", "db")
    receiver.start()
    receiver.wait_for(lambda taken: len({one.id for one in taken}) >= 4)
    for event, address in ((first, "127.0.3.10"), (second, "127.0.3.20")):
        assert service.approve(address, event["event_id"]).status == 200
        service.restart()
    receiver.stop()
    (third,) = service.announce("Reboot", "db")
    assert service.run("cancel", third["event_id"]).returncode == 0
    service.restart()
    receiver.start()

    both = {"announced", "approved", "started", "completed"}
    wait_until_told(service, receiver, {"rg1/web": both, "rg2/db": {*both, "canceled"}})
    assert all(is_signed(one, added["secret"]) for one in receiver.taken)


def test_dying_in_the_middle_of_deliveries_loses_nothing(
    service: ServiceProcess, receiver: Receiver
) -> None:
    """keeps N10"""
    slow = slowly(0.05)
    slow.port = receiver.port
    with slow:
        service.json("webhook", "add", "pager", slow.url)
        for _ in range(3):
            events = [*service.announce("Freeze", "web-0"), *service.announce("Freeze", "db")]
            service.restart()
            assert service.run("cancel", *(one["event_id"] for one in events)).returncode == 0
            service.restart()

        wait_until_told(service, slow, {"rg1/web": {"canceled"}, "rg2/db": {"canceled"}})


def test_a_slow_receiver_holds_up_neither_the_service_nor_its_end(
    service: ServiceProcess, receiver: Receiver
) -> None:
    """keeps N10"""
    with slowly(3) as slow:
        assert service.stop() == 0
        allow = ("--webhook-allow", f"127.0.0.1:{slow.port}")
        with ServiceProcess(service.data, None, *allow) as busy:
            busy.json("webhook", "add", "slow", slow.url)
            busy.announce("Freeze", "web-0")
            began = time.monotonic()
            for _ in range(20):
                assert busy.get("127.0.3.10").status == 200
            assert time.monotonic() - began < 2
            began = time.monotonic()
            assert busy.stop() == 0
            assert time.monotonic() - began < 2.5
    assert receiver.received == []


def test_the_command_line_manages_webhooks(service: ServiceProcess, receiver: Receiver) -> None:
    refused = service.run("webhook", "add", "evil", "https://evil.example/")
    assert (refused.returncode, "--webhook-allow evil.example" in refused.stderr) == (3, True)
    metadata = service.run("webhook", "add", "evil", "http://169.254.169.254/")
    assert (metadata.returncode, "never told" in metadata.stderr) == (3, True)
    assert "no webhooks" in service.run("webhook", "list").stdout
    added = service.run("webhook", "add", "pager", receiver.url, "--change", "started")
    assert re.search(r"^secret whsec_\S{44}$", added.stdout, re.MULTILINE)
    assert service.run("webhook", "test", "pager").returncode == 6
    receiver.start()
    assert "taken" in service.run("webhook", "test", "Pager").stdout
    assert "test-" in service.json("webhook", "test", "pager")["id"]
    assert "active" in service.run("webhook", "list").stdout
    assert "started" in service.run("webhook", "show", "pager").stdout
    assert service.json("webhook", "show", "pager")["changes"] == ["started"]
    assert "paused" in service.run("webhook", "pause", "pager").stdout
    assert "paused" in service.run("webhook", "list").stdout
    assert service.json("webhook", "pause", "pager")["paused"] is True
    assert "active" in service.run("webhook", "resume", "pager").stdout
    assert "no dead letters" in service.run("webhook", "dead-letters", "pager").stdout
    assert service.json("webhook", "dead-letters", "pager") == {"dead_letters": []}
    assert service.json("webhook", "redeliver", "pager") == {"delivered": []}
    assert service.run("webhook", "redeliver", "pager", "1").returncode == 4
    assert service.run("webhook", "discard", "pager", "1").returncode == 4
    assert service.run("webhook", "show", "nobody").returncode == 4
    metrics = service.ask("GET", "/metrics").body
    assert b"forewarn_webhooks 1.0" in metrics
    assert service.json("webhook", "list")["webhooks"][0]["name"] == "pager"
    assert "removed" in service.run("webhook", "remove", "pager").stdout
    assert service.json("webhook", "list") == {"webhooks": []}


def test_the_receiver_of_the_page_works_as_it_stands(
    service: ServiceProcess, receiver: Receiver, tmp_path: Path
) -> None:
    """keeps N10"""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "receiver.py"
    file.write_text(example, encoding="utf-8")
    secret = service.json("webhook", "add", "pager", receiver.url)["secret"]

    with subprocess.Popen(
        [sys.executable, str(file), secret, str(receiver.port)], stdout=subprocess.PIPE, text=True
    ) as example_process:
        try:
            assert example_process.stdout is not None
            (event,) = service.announce("Freeze", "web-0")
            line = example_process.stdout.readline()
            assert line.split() == ["forewarn.event.scheduled", event["event_id"], "Scheduled"]
            headers = {"webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,x"}
            base = f"http://127.0.0.1:{receiver.port}"
            forged = request(base, "POST", "/", headers=headers, body=b"{}")
            assert forged.status == 401
        finally:
            example_process.kill()
