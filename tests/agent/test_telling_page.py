"""The page on telling others: its lines are typed beside a real agent, and its tables are true."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from forewarn.agent import metrics, notifications, peers, posting
from forewarn.agent.answers import PATHS
from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.inquiries import LIMIT
from forewarn.agent.news import Kind, News
from forewarn.agent.reports import Counts, Report
from forewarn.agent.rules import Verdict
from forewarn.agent.settings import LISTEN, parse_settings
from forewarn.client.documents import SCHEDULED, Document, Event
from forewarn.testing.agents import AgentProcess
from forewarn.testing.receivers import Receiver
from forewarn.testing.scheduled_events import ScheduledEvents

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "agent" / "telling-others.md").read_text(encoding="utf-8")
EVENT_ID: Final = "5E2D0B6C-0000-0000-0000-000000000001"
NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEVER: Final = '[[rules]]\napprove = "never"\n'


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def typed(block: str, agent: AgentProcess, event_id: str = EVENT_ID) -> str:
    """A block with what its lines have the shell say now."""
    told = []
    for line in block.splitlines():
        if line.startswith("$ "):
            command = line[2:].replace(f"http://{LISTEN}", agent.url).replace(EVENT_ID, event_id)
            done = subprocess.run(
                ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=30, check=False
            )
            told.append(f"{line}\n{done.stdout}".replace(event_id, EVENT_ID))
    return "".join(told)


@pytest.mark.end_to_end
def test_what_the_page_has_one_type_is_answered_as_it_says(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    idle, announced = blocks("console")
    agent = AgentProcess(tmp_path, scheduled_events.url, NEVER)
    agent.hook("prepare", "10-drain", "exit 0")
    with agent:
        agent.wait_for_log("this VM is")
        assert typed(idle, agent) == idle
        event = scheduled_events.reboot("web-0")
        agent.wait_for_log("made ready")
        scheduled_events.wait_until(lambda: agent.get("/drainz").status == 503)

        assert typed(announced, agent, str(event.id)) == announced


def test_a_webhook_gets_what_the_page_shows(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    (shown,) = (json.loads(block) for block in blocks("json"))
    with Receiver() as receiver:
        notify = f'[[notify]]\nurl = "{receiver.url}"\non = ["announced"]\n'
        with AgentProcess(tmp_path, scheduled_events.url, NEVER + notify) as agent:
            agent.wait_for_log("this VM is")
            event = scheduled_events.reboot("web-0")
            receiver.wait_for(lambda taken: len(taken) == 1)
    told = json.loads(receiver.taken[0].body.decode().replace(str(event.id), EVENT_ID))

    assert told.pop("NotBefore").endswith(" GMT")
    assert shown.pop("NotBefore").endswith(" GMT")
    assert told == shown


def test_every_file_of_the_page_is_taken() -> None:
    files = blocks("toml")

    settings = [parse_settings(text, "the page") for text in files]

    assert len(files) == 4
    assert settings[0].listen == LISTEN
    assert settings[2].peers.members == ("web-0", "web-1", "web-2", "web-3")


def test_every_path_is_in_the_page_and_every_kind_of_news() -> None:
    for path in PATHS:
        assert f"| `{path}` |" in PAGE
    for kind in Kind:
        assert f"| `{kind.value}` |" in PAGE
    words = notifications.words(News(Kind.TROUBLE, "web-0", None, "what"))
    for word in words:
        assert f"`{{{word}}}`" in PAGE


def test_the_table_of_metrics_has_all_with_their_labels() -> None:
    run = Run(Hook("x", ("x",)), attempt=1, began=NOON, result=Result.READY)
    event = Event("A-1", "Reboot", SCHEDULED, ("web-0",), not_before=NOON)
    case = Case(event, NOON, "boot", phases={Phase.PREPARE: (run,)}, approved=NOON)
    held = Verdict(approves=False, why="")
    report = Report(NOON, "web-0", Document(1, (event,)), ((case, held),))
    text = metrics.render(report, Counts({(Phase.PREPARE, Result.READY): 1}))
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)

    rows = dict(re.findall(r"^\| `((?:azure|forewarn)_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE))

    assert list(rows) == names
    for name, labels in rows.items():
        found = re.findall(rf"^{name}(?:_bucket)?\{{(.*?)\}} ", text, re.MULTILINE)
        told = set(re.findall(r'(\w+)="', found[0])) if found else set()
        assert told == set(re.findall(r"`(\w+)`", labels)), name


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert f"within {LIMIT.seconds} seconds" in PAGE
    assert f"{notifications.QUEUE_SIZE_MAX} news may wait" in PAGE
    assert len(notifications.DELAYS_SECONDS) + 1 == 4
    assert "tried four times" in PAGE
    assert sum(notifications.DELAYS_SECONDS) < 15
    assert peers.STALE_SECONDS == 3
    assert "three seconds" in PAGE
    assert set(posting.PASSING) == {408, 425, 429}
    assert "5xx, 408, 425 or 429" in PAGE
