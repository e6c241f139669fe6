"""Notifications: over real sockets, to receivers that are well, away, slow or refusing; and by apprise."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final, Self

import pytest

import forewarn
from forewarn.agent import deliveries, notifications
from forewarn.agent.news import TROUBLE_PATIENCE, Kind, News, Spell
from forewarn.agent.notifications import QUEUE_SIZE_MAX, Notifications
from forewarn.agent.posting import post
from forewarn.agent.reports import Report
from forewarn.agent.running import pulsing
from forewarn.agent.settings import Notification, parse_settings
from forewarn.client.documents import SCHEDULED, Event
from forewarn.errors import Malformed, Refused, Unavailable
from forewarn.systemd import Systemd
from forewarn.testing.agents import AgentProcess
from forewarn.testing.authorities import local_tls
from forewarn.testing.receivers import Received, Receiver
from forewarn.testing.scheduled_events import ScheduledEvents

EVENT: Final = Event(
    "A-1",
    "Reboot",
    SCHEDULED,
    ("web-0", "web-1"),
    not_before=datetime(2026, 3, 1, 12, tzinfo=UTC),
    description="Host maintenance",
    source="Platform",
    duration=timedelta(seconds=9),
)
ANNOUNCED: Final = News(Kind.ANNOUNCED, "web-0", EVENT, "announced")
TROUBLE: Final = News(Kind.TROUBLE, "web-0", None, "in trouble for 1 min: no answer")
# Posts to where it is told, as a program of its own that has its own environment.
POSTS: Final = """
import sys
from forewarn.agent.posting import post
post(sys.argv[1], 'text/plain', b'x')
"""
QUICK: Final = (0.01, 0.01, 0.01)

needs_apprise = pytest.mark.skipif(
    importlib.util.find_spec("apprise") is None, reason="apprise is not installed"
)


def to(url: str, **members: object) -> Notification:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in members.items())
    (receiver,) = parse_settings(f'[[notify]]\nurl = "{url}"\n{lines}', "a file").notify
    return receiver


# -- in which words ----------------------------------------------------------------------------


def test_a_template_may_have_every_word() -> None:
    template = (
        "{name} {kind} {what} {id} {type} {status} {source} {not_before} {duration} {description} "
        "{resources}"
    )

    assert notifications.text(template, ANNOUNCED) == (
        "web-0 announced announced A-1 Reboot Scheduled Platform Sun, 01 Mar 2026 12:00:00 GMT 9s "
        "Host maintenance web-0, web-1"
    )
    assert notifications.text(template, TROUBLE).startswith("web-0 trouble in trouble")


def test_the_usual_words_are_those_of_the_news() -> None:
    template = to("https://hooks.example/x").template

    assert notifications.text(template, ANNOUNCED) == "web-0: Reboot A-1: announced"
    assert notifications.text(template, TROUBLE) == "web-0: in trouble for 1 min: no answer"


def test_trouble_is_told_after_a_while_once_and_when_it_is_over() -> None:
    spell, second = Spell(), timedelta(seconds=1)
    told = []
    states = ["no answer"] * 100 + [None] * 3 + ["no answer"] * 5 + [None] * 3

    for number, trouble in enumerate(states):
        spell, what = spell.after(trouble, number * second)
        if what is not None:
            told.append((number, what))

    assert told == [
        (TROUBLE_PATIENCE.seconds, "in trouble for 1 min: no answer"),
        (100, "scheduled events can be read again"),
    ]


def test_everybody_hears_of_trouble_that_lasts() -> None:
    told: list[News] = []
    seconds = 0
    pulse = pulsing(Systemd(None), told.append, lambda: timedelta(seconds=seconds))

    for seconds, trouble in ((0, "no answer"), (30, "no answer"), (90, "reset"), (95, None)):  # noqa: B007 - the clock's
        pulse(Report(datetime(2026, 3, 1, tzinfo=UTC), "web-0", trouble=trouble))

    assert [(news.kind, news.name, news.event, news.what) for news in told] == [
        (Kind.TROUBLE, "web-0", None, "in trouble for 1 min: reset"),
        (Kind.TROUBLE, "web-0", None, "scheduled events can be read again"),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('url = "hooks.example"', "not a URL"),
        ('url = "https:///x"', "no host"),
        ('url = "https://x:99999/"', "not a URL"),
        ('url = "https://me:secret@hooks.example/"', "a user in it"),
        ('url = "https://hooks.example/ü"', "not a URL"),
        ('url = "https://hooks.example/a b"', "not a URL"),
        ('url = "https://x/"\ntemplate = "{who}"', "cannot be filled in"),
        ('url = "https://x/"\ncontent_type = "text/html"', "content_type has no value"),
        ('url = "https://x/"\non = ["everything"]', "on has no value"),
    ],
)
def test_what_cannot_be_told_is_known_at_the_start(line: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        parse_settings(f"[[notify]]\n{line}\n", "a file")


def test_what_is_logged_of_a_url_has_no_secret_in_it() -> None:
    assert deliveries.shown("https://hooks.example/services/T0/SECRET") == "https://hooks.example…"
    assert deliveries.shown("tgram://SECRET/chat") == "tgram://…"


# -- by POST -----------------------------------------------------------------------------------


def test_a_webhook_gets_a_text_and_the_events_members() -> None:
    with Receiver() as receiver, Notifications((to(receiver.url),)) as told:
        told.tell(ANNOUNCED)
        receiver.wait_for(lambda taken: len(taken) == 1)

    (received,) = receiver.taken
    assert received.headers["content-type"] == "application/json"
    assert received.headers["user-agent"].startswith("forewarn-agent/")
    assert received.json == {
        "text": "web-0: Reboot A-1: announced",
        "name": "web-0",
        "kind": "announced",
        "what": "announced",
        "EventId": "A-1",
        "EventType": "Reboot",
        "EventStatus": "Scheduled",
        "EventSource": "Platform",
        "Resources": ["web-0", "web-1"],
        "NotBefore": "Sun, 01 Mar 2026 12:00:00 GMT",
        "Description": "Host maintenance",
        "DurationInSeconds": 9.0,
    }


def test_a_webhook_may_want_plain_text_and_some_news_only() -> None:
    with Receiver() as receiver:
        wanted = to(receiver.url, content_type="text/plain", template="{what} ü", on=["trouble"])
        with Notifications((wanted,)) as told:
            told.tell(ANNOUNCED)
            told.tell(TROUBLE)

    (received,) = receiver.taken
    assert received.body.decode() == f"{TROUBLE.what} ü"
    assert received.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("status", [0, 500, 503, 429, 408])
def test_what_may_pass_is_tried_again(status: int) -> None:
    failures = [status, status]

    def answers(_: Received) -> int:
        return failures.pop() if failures else 200

    with Receiver(answers) as receiver, Notifications((to(receiver.url),), delays=QUICK) as told:
        told.tell(ANNOUNCED)
        receiver.wait_for(lambda taken: len(taken) == 1)

    assert [one.status for one in receiver.received] == [status, status, 200]


@pytest.mark.parametrize("status", [400, 403, 404, 410, 302, 307])
def test_what_is_refused_or_led_elsewhere_is_given_up(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Receiver(lambda _: status) as receiver, Notifications((to(receiver.url),)) as told:
        told.tell(ANNOUNCED)
        told.tell(TROUBLE)

    assert [one.path for one in receiver.received] == ["/hook", "/hook"]
    assert caplog.text.count("cannot be told of news") == 1
    assert f"answered {status}" in caplog.text


def test_a_receiver_that_is_away_is_complained_of_once_and_told_again_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    receiver = Receiver()
    done = threading.Semaphore(0)

    def deliver(wanted: Notification, news: News) -> None:
        try:
            notifications.deliver(wanted, news)
        finally:
            done.release()

    with Notifications((to(receiver.url),), deliver, delays=()) as told:
        for _ in range(3):
            told.tell(ANNOUNCED)
        for _ in range(3):
            assert done.acquire(timeout=20)
        with receiver:
            told.tell(TROUBLE)
            receiver.wait_for(lambda taken: len(taken) == 1)

    assert caplog.text.count("cannot be told of news") == 1
    assert caplog.text.count("is told of news again") == 1


def test_a_receiver_that_hangs_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    taken: list[str] = []
    arrived = threading.Event()

    def deliver(wanted: Notification, news: News) -> None:
        if "slow" in wanted.url:
            gate.wait(20)
        else:
            taken.append(news.what)
            arrived.set()

    receivers = (to("https://slow.example/"), to("https://quick.example/", on=["trouble"]))
    with Notifications(receivers, deliver) as told:
        # All of these return, though nothing is told.
        for _ in range(2 * QUEUE_SIZE_MAX):
            told.tell(ANNOUNCED)
        told.tell(TROUBLE)
        assert arrived.wait(20)
        gate.set()

    assert taken == [TROUBLE.what]
    assert f"{QUEUE_SIZE_MAX} news wait already" in caplog.text


def test_what_waits_is_told_before_the_end() -> None:
    with Receiver() as receiver:
        with Notifications((to(receiver.url),)) as told:
            for number in range(10):
                told.tell(replace(TROUBLE, what=str(number)))

        assert [one.json["what"] for one in receiver.taken] == [str(one) for one in range(10)]


class Tls:
    """A receiver with a certificate that only who was told so trusts."""

    def __enter__(self) -> Self:
        self.received: list[bytes] = []
        tls = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                tls.received.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        class Server(HTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Who does not trust us hangs up."""

        self.server = Server(("127.0.0.1", 0), Handler)
        context = local_tls().server
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"https://localhost:{self.server.server_port}/hook"


def test_certificates_are_checked(tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_bytes(local_tls().authority)
    with Tls() as tls:
        with pytest.raises(Unavailable, match="certificate verify failed"):
            post(tls.url, "text/plain", b"x")
        assert tls.received == []
        done = subprocess.run(
            [sys.executable, "-c", POSTS, tls.url],
            env={**os.environ, "SSL_CERT_FILE": str(authority),
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert tls.received == [b"x"]


def test_a_proxy_of_the_environment_is_used() -> None:
    with Receiver() as proxy:
        subprocess.run(
            [sys.executable, "-c", POSTS, "http://hooks.example/hook"],
            env={**os.environ, "http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": "",
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=True, timeout=60,
        )  # fmt: skip

    assert [one.path for one in proxy.taken] == ["http://hooks.example/hook"]


def test_nobody_is_there_and_no_name_leads_anywhere() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        post("http://127.0.0.1:1/", "text/plain", b"x")
    with pytest.raises(Unavailable, match="cannot be reached"):
        post(f"http://{'x' * 64}.example/", "text/plain", b"x")


def test_a_refusal_is_no_want_of_an_answer() -> None:
    with Receiver(lambda _: 401) as receiver, pytest.raises(Refused, match="answered 401"):
        post(receiver.url, "text/plain", b"x")


# -- by apprise --------------------------------------------------------------------------------


@needs_apprise
def test_other_urls_are_apprises() -> None:
    with Receiver() as receiver:
        url = f"json://127.0.0.1:{receiver.port}/hook"
        deliveries.check(url)
        assert receiver.received == []
        with Notifications((to(url),)) as told:
            told.tell(ANNOUNCED)
            receiver.wait_for(lambda taken: len(taken) == 1)

    (received,) = receiver.taken
    assert received.json["message"] == "web-0: Reboot A-1: announced"
    assert received.json["title"] == "web-0: announced"


@needs_apprise
def test_what_apprise_does_not_know_is_known_at_the_start() -> None:
    with pytest.raises(Malformed, match="no URL that apprise knows"):
        deliveries.check("nonsense://SECRET")
    with pytest.raises(Unavailable, match="apprise could not tell it"):
        deliveries.tell_by_apprise("json://127.0.0.1:1/", "title", "text")


def test_without_apprise_the_agent_says_what_to_install(tmp_path: Path) -> None:
    """In a Python that has none, as most have."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    file = tmp_path / "agent.toml"
    file.write_text('[[notify]]\nurl = "tgram://SECRET/chat"\n')

    done = subprocess.run(
        [tmp_path / "bare" / "bin" / "python", "-m", "forewarn.agent", "--config", file],
        env={"PYTHONPATH": str(Path(forewarn.__file__).parents[1]), "PATH": os.defpath},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 2
    assert "pip install 'forewarn[apprise]'" in done.stderr
    assert "SECRET" not in done.stderr


# -- a real agent ------------------------------------------------------------------------------


def test_an_agent_tells_of_an_event_from_its_announcement_to_its_undoing(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    with Receiver() as receiver:
        agent = AgentProcess(
            tmp_path, scheduled_events.url, f'[[notify]]\nurl = "{receiver.url}"\n'
        )
        agent.hook("prepare", "10-drain", "exit 0")
        with agent:
            agent.wait_for_log("this VM is")
            scheduled_events.reboot("web-0")
            receiver.wait_for(lambda taken: any(one.json["kind"] == "started" for one in taken))
            scheduled_events.advance_to_next()
            receiver.wait_for(lambda taken: any(one.json["kind"] == "undone" for one in taken))

    assert [one.json["kind"] for one in receiver.taken] == [
        "announced",
        "ready",
        "approved",
        "started",
        "undone",
    ]


def test_a_receiver_that_is_away_delays_no_approval(
    scheduled_events: ScheduledEvents, tmp_path: Path
) -> None:
    away = "http://127.0.0.1:1/hook"
    with AgentProcess(tmp_path, scheduled_events.url, f'[[notify]]\nurl = "{away}"\n') as agent:
        agent.wait_for_log("this VM is")
        event = scheduled_events.reboot("web-0")
        scheduled_events.wait_until(lambda: event.approved_by == "web-0")

        assert agent.get("/healthz").status == 200
