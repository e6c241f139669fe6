"""The agent's file: every member, and every fault with its line and its remedy."""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.news import Kind
from forewarn.agent.rules import Approve, Condition, OnFailure, Rule, WithoutHooks
from forewarn.agent.settings import (
    Command,
    Notification,
    PeerSettings,
    Settings,
    load_settings,
    parse_settings,
)
from forewarn.errors import Malformed

SHIPPED: Final = (Path(__file__).parents[2] / "packaging/deb/agent.toml").read_text("utf-8")

ALL: Final = """\
endpoint = "http://127.0.0.1:8170"
name = "web-0"
state = "/srv/state"
hooks = "/srv/hooks"
listen = "127.0.0.1:9000"
undo_waits = false
healthy = "true"

[[rules]]
types = ["Freeze"]
sources = ["Platform"]
names = ["web-*"]
duration_min = "1s"
duration_max = "9s"
approve = "always"
only = ["leader", "peers-ready", "not-last"]
on_failure = "alert"
without_hooks = "hold"
run_hooks = false

[[commands]]
phase = "undo"
run = ["systemctl", "start", "batch"]
name = "50-batch"
types = ["Reboot"]
sources = ["User"]
limit = "5m"

[peers]
members = ["web-0", "web-1"]
url = "http://{name}:8171"
urls = { Web-1 = "http://10.0.0.2:8171" }
command = "is-ready"

[[notify]]
url = "https://hooks.example/x"
on = ["failed", "alert"]
template = "{name} {what}"
content_type = "text/plain"
"""


def test_every_member_is_read() -> None:
    settings = parse_settings(ALL, "agent.toml")

    assert settings == Settings(
        endpoint="http://127.0.0.1:8170",
        name="web-0",
        state=Path("/srv/state"),
        hooks=Path("/srv/hooks"),
        listen="127.0.0.1:9000",
        undo_waits=False,
        healthy=("/bin/sh", "-c", "true"),
        rules=(
            Rule(
                types=("Freeze",),
                sources=("Platform",),
                names=("web-*",),
                duration_min=timedelta(seconds=1),
                duration_max=timedelta(seconds=9),
                approve=Approve.ALWAYS,
                only=(Condition.LEADER, Condition.PEERS_READY, Condition.NOT_LAST),
                on_failure=OnFailure.ALERT,
                without_hooks=WithoutHooks.HOLD,
                run_hooks=False,
            ),
        ),
        commands=(
            Command(
                phase=Phase.UNDO,
                hook=Hook("50-batch", ("systemctl", "start", "batch"), timedelta(minutes=5)),
                types=("Reboot",),
                sources=("User",),
            ),
        ),
        peers=PeerSettings(
            members=("web-0", "web-1"),
            url="http://{name}:8171",
            urls=(("web-1", "http://10.0.0.2:8171"),),
            command=("/bin/sh", "-c", "is-ready"),
        ),
        notify=(
            Notification(
                url="https://hooks.example/x",
                on=(Kind.FAILED, Kind.ALERT),
                template="{name} {what}",
                content_type="text/plain",
            ),
        ),
    )


def test_an_empty_file_has_the_defaults() -> None:
    assert parse_settings("", "agent.toml") == Settings()


def test_what_a_table_leaves_out_has_its_default() -> None:
    text = '[[rules]]\n[[commands]]\nphase = "prepare"\nrun = "true"\n[[notify]]\nurl = "x://y"\n'

    settings = parse_settings(text, "agent.toml")

    assert settings.rules == (Rule(),)
    assert settings.commands == (
        Command(Phase.PREPARE, Hook("command-1", ("/bin/sh", "-c", "true"))),
    )
    assert settings.notify == (Notification("x://y", tuple(Kind)),)


# What is wrong, on which line, and what to do about it.
FAULTS: Final = [
    ("color = 1", "1: the agent's file has no member 'color': remove it, or use commands, "),
    ('endpiont = "x"', "1: the agent's file has no member 'endpiont': did you mean 'endpoint'?"),
    ('approve = "never"', "1: the agent's file has no member 'approve': it belongs under [[rules]]"),
    ("endpoint = 80", '1: endpoint = 80 is not text: write endpoint = "…"'),
    ('endpoint = "ftp://x"', "1: 'ftp://x' is no endpoint: write http://HOST[:PORT], and nothing"),
    ('state = "here"', "1: state = 'here' is not an absolute path: begin it with /"),
    ('hooks = "./hooks.d"', "1: hooks = './hooks.d' is not an absolute path: begin it with /"),
    ('undo_waits = "no"', '1: undo_waits = "no" is neither true nor false: write it without quotes'),
    ('healthy = ""', '1: healthy is empty: write healthy = "systemctl stop batch"'),
    ("healthy = []", '1: healthy is empty: write healthy = "systemctl stop batch"'),
    ("rules = 1", "1: rules is not an array of tables: begin each of them with [[rules]]"),
    ("peers = 1", "1: peers is not a table: write [peers] on a line of its own"),
    ('[[rules]]\nurl = "x"', "2: [[rules]] has no member 'url': it belongs under [peers] or"),
    ('[[rules]]\ntypes = ["Frieze"]', '2: types has no value "Frieze": did you mean "Freeze"?'),
    ('[[rules]]\ntypes = "Freeze"', '2: types = "Freeze" is not a list: write types = ["Freeze"]'),
    ('[[rules]]\nsources = ["Me"]', '2: sources has no value "Me": give "Platform" or "User"'),
    ("[[rules]]\nnames = [1]", "2: names has 1, which is not text: write names = "),
    ('[[rules]]\nduration_max = "9"', "2: duration_max = '9' is not a duration: write it like"),
    ("[[rules]]\nduration_min = 9", "2: duration_min = 9 is not a duration: write it like"),
    ('[[rules]]\napprove = "soon"', '2: approve has no value "soon": give "never", "always" or'),
    ('[[rules]]\nonly = ["boss"]', '2: only has no value "boss": give "leader", "peers-ready" or'),
    ('[[rules]]\non_failure = "x"', '2: on_failure has no value "x": give "hold", "approve" or'),
    ("[[rules]]\nwithout_hooks = 1", '2: without_hooks has no value 1: give "approve" or "hold"'),
    ("[[rules]]\nrun_hooks = 1", "2: run_hooks = 1 is neither true nor false: write it without"),
    ('[[rules]]\nonly = ["peers-ready"]', "1: rules ask peers, and nothing says where they are: "),
    ('[[commands]]\nrun = "x"', '1: a command without phase: write phase = "…" into it'),
    ('[[commands]]\nphase = "undo"', '1: a command without run: write run = "…" into it'),
    ('[[commands]]\nphase = "x"\nrun = "x"', '2: phase has no value "x": give "prepare", '),
    ('[[commands]]\nphase = "undo"\nrun = ""', '3: run is empty: write run = "systemctl stop'),
    (
        '[[commands]]\nphase = "undo"\nrun = "x"\nlimit = "0s"',
        '4: limit is no time at all: give "1s" or more',
    ),
    ('[peers]\nnames = ["x"]', "2: [peers] has no member 'names': it belongs under [[rules]]"),
    ('[peers]\nurl = "http://x:8171"', "2: url is the same for all peers, who then would speak"),
    ('[peers]\nurls = "x"', '2: urls = "x" is not a table: write urls = '),
    ("[peers]\nmembers = [1]", "2: members has 1, which is not text"),
    ('[[notify]]\nurl = "x://y"\non = ["news"]', '3: on has no value "news": '),
    (
        '[[notify]]\nurl = "x://y"\ntemplate = "{who}"',
        "3: template cannot be filled in ('who'): use {name}, {kind}, {what}, ",
    ),
    ('[[notify]]\nurl = "x://y"\ntemplate = "{"', "3: template cannot be filled in (Single '{'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FAULTS)
def test_a_fault_is_told_with_its_line_and_its_remedy(text: str, expected: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_settings(text, "agent.toml")

    lines = str(refused.value).split("\n")
    assert any(line.startswith(f"agent.toml:{expected}") for line in lines), lines


@pytest.mark.parametrize(
    ("text", "place"),
    [('[peers]\nurl = "https://x"', "2"), ('[[notify]]\nurl = "nobody"', "2"), ("[[notify]]", "1")],
)
def test_what_is_no_url_is_refused(text: str, place: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_settings(text, "agent.toml")

    assert str(refused.value).startswith(f"agent.toml:{place}: ")


def test_all_faults_are_told_at_once() -> None:
    text = 'state = "x"\n[[rules]]\napprove = "x"\nonly = ["not-last"]\n[[commands]]\n'

    with pytest.raises(Malformed) as refused:
        parse_settings(text, "agent.toml")

    lines = str(refused.value).split("\n")
    assert [line.split(": ")[0] for line in lines] == [
        *("agent.toml:1", "agent.toml:2", "agent.toml:2", "agent.toml:3"),
        *("agent.toml:5", "agent.toml:5"),
    ]


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    with pytest.raises(Malformed, match=f"there is no file {file}: give --config the agent's file"):
        load_settings(file)

    file.write_text('name = "web-0"')
    assert load_settings(file) == Settings(name="web-0")

    file.write_bytes(b"\xff")
    with pytest.raises(Malformed, match="cannot be read"):
        load_settings(file)

    with pytest.raises(Malformed, match="cannot be read"):
        load_settings(tmp_path)


def test_the_file_that_is_shipped_shows_every_default() -> None:
    assert parse_settings(SHIPPED, "agent.toml") == Settings()

    shown = re.sub(r"^#(?=[a-z\[])", "", SHIPPED, flags=re.MULTILINE)
    settings = parse_settings(shown, "agent.toml")

    usual = Settings()
    assert (settings.state, settings.hooks, settings.listen) == (
        *(usual.state, usual.hooks),
        usual.listen,
    )
    assert settings.undo_waits == usual.undo_waits
    [rule] = settings.rules
    assert (rule.approve, rule.only, rule.on_failure) == (
        *(Rule().approve, Rule().only),
        Rule().on_failure,
    )
    assert (rule.without_hooks, rule.run_hooks) == (Rule().without_hooks, Rule().run_hooks)
    [notification] = settings.notify
    told = Notification(url="")
    assert (notification.template, notification.content_type) == (told.template, told.content_type)


def test_the_file_that_is_shipped_has_every_member_with_a_word_on_it() -> None:
    shown = tomllib.loads(re.sub(r"^#(?=[a-z\[])", "", SHIPPED, flags=re.MULTILINE))

    assert members(shown) == members(tomllib.loads(ALL))
    lines = SHIPPED.splitlines()
    for line, above in zip(lines[1:], lines, strict=False):
        is_member = re.match(r"#[a-z_]+ =|#\[", line)
        assert not is_member or above.startswith("# "), line


def members(content: dict[str, object]) -> set[str]:
    """Every member of the file, with its table."""
    found = set(content)
    for title in ("rules", "commands", "notify"):
        tables = content[title]
        assert isinstance(tables, list)
        found |= {f"{title}.{key}" for key in tables[0]}
    peers = content["peers"]
    assert isinstance(peers, dict)
    return found | {f"peers.{key}" for key in peers}
