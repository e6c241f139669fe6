"""The agent's file: what the owner wants done, as TOML."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from forewarn.agent.endpoint import parse_address
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.news import Kind
from forewarn.agent.rules import Approve, Condition, OnFailure, Rule, WithoutHooks
from forewarn.client.discovery import parse_endpoint
from forewarn.errors import Malformed
from forewarn.tables.reading import Faults, Table, parse_toml

FILE: Final = Path("/etc/forewarn/agent.toml")
STATE: Final = Path("/var/lib/forewarn-agent")
HOOKS: Final = Path("/etc/forewarn/hooks.d")
LISTEN: Final = "127.0.0.1:8171"
TEMPLATE: Final = "{name}: {type} {id}: {what}"
JSON: Final = "application/json"
PLAIN: Final = "text/plain"

_TOP: Final = "the agent's file"
_RULE: Final = "[[rules]]"
_COMMAND: Final = "[[commands]]"
_PEERS: Final = "[peers]"
_NOTIFY: Final = "[[notify]]"
# What each table may have.
MEMBERS: Final[Mapping[str, Collection[str]]] = {
    _TOP: (
        *("endpoint", "name", "state", "hooks", "listen", "undo_waits", "healthy"),
        *("rules", "commands", "peers", "notify"),
    ),
    _RULE: (
        *("types", "sources", "names", "duration_min", "duration_max"),
        *("approve", "only", "on_failure", "without_hooks", "run_hooks"),
    ),
    _COMMAND: ("phase", "run", "name", "types", "sources", "limit"),
    _PEERS: ("members", "url", "urls", "command"),
    _NOTIFY: ("url", "on", "template", "content_type"),
}


class _EventType(Enum):
    """The types a rule may name; in a document there may yet be others."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"


class _Source(Enum):
    PLATFORM = "Platform"
    USER = "User"


class _ContentType(Enum):
    FOR_PROGRAMS = JSON
    FOR_PEOPLE = PLAIN


@dataclass(frozen=True, slots=True)
class Command:
    """A hook that is no file of the directory."""

    phase: Phase
    hook: Hook
    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """How the other VMs are asked."""

    members: tuple[str, ...] = ()
    # With {name} in it, for those that `urls` does not have.
    url: str | None = None
    urls: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Somebody to be told, of what, and in which words."""

    url: str
    on: tuple[Kind, ...] = ()
    template: str = TEMPLATE
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Settings:
    """All of the file."""

    endpoint: str | None = None
    name: str | None = None
    state: Path = STATE
    hooks: Path = HOOKS
    listen: str = LISTEN
    undo_waits: bool = True
    healthy: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ()
    commands: tuple[Command, ...] = ()
    peers: PeerSettings = PeerSettings()
    notify: tuple[Notification, ...] = ()


def load_settings(file: Path | None) -> Settings:
    """The settings of a file; without one, of the usual place, where it may be missing. Raises: Malformed."""
    chosen = FILE if file is None else file
    try:
        text = chosen.read_text(encoding="utf-8")
    except FileNotFoundError:
        if file is None:
            return Settings()
        raise Malformed(f"there is no file {file}: give --config the agent's file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{chosen} cannot be read: {error}") from error
    return parse_settings(text, str(chosen))


def parse_settings(text: str, name: str) -> Settings:
    """The settings of a text, which errors call by the given name. Raises: Malformed."""
    faults = Faults()
    top = Table(_TOP, parse_toml(text, name), (), faults)
    top.refuse_unknown(MEMBERS)
    settings = Settings(
        endpoint=_endpoint(top),
        name=top.text("name") or None,
        state=_path(top, "state", STATE),
        hooks=_path(top, "hooks", HOOKS),
        listen=_listen(top),
        undo_waits=top.flag("undo_waits", default=True),
        healthy=_words(top, "healthy"),
        rules=tuple(_rule(table) for table in top.tables("rules", _RULE)),
        commands=tuple(
            _command(table, number)
            for number, table in enumerate(top.tables("commands", _COMMAND), start=1)
        ),
        peers=_peers(top.table("peers", _PEERS)),
        notify=tuple(_notification(table) for table in top.tables("notify", _NOTIFY)),
    )
    _check_together(top, settings)
    faults.raise_any(name, text)
    return settings


def _endpoint(top: Table) -> str | None:
    text = top.text("endpoint")
    if not text:
        return None
    try:
        parse_endpoint(text)
    except Malformed as error:
        top.fault("endpoint", str(error), 'write it like "http://169.254.169.254"')
    return text


def _listen(top: Table) -> str:
    text = top.text("listen", LISTEN)
    try:
        if text:
            parse_address(text)
    except Malformed as error:
        top.fault("listen", f"listen = {error}", f'write "{LISTEN}", or "" for none')
    return text


def _path(top: Table, key: str, default: Path) -> Path:
    text = top.text(key, str(default))
    if not text.startswith("/"):
        top.fault(key, f"{key} = {text!r} is not an absolute path", "begin it with /")
    return Path(text)


def _words(table: Table, key: str) -> tuple[str, ...] | None:
    """A command: a line for the shell, or a list of words; None if it is not given."""
    value = table.members.get(key)
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return ("/bin/sh", "-c", value)
    words = tuple(word for _, word in table.strings(key))
    if isinstance(value, str) or not words:
        table.fault(key, f"{key} is empty", f'write {key} = "systemctl stop batch"')
    return words


def _rule(table: Table) -> Rule:
    table.refuse_unknown(MEMBERS)
    return Rule(
        types=_values(table, "types", _EventType),
        sources=_values(table, "sources", _Source),
        names=tuple(name for _, name in table.strings("names")),
        duration_min=table.duration("duration_min"),
        duration_max=table.duration("duration_max"),
        approve=table.choice("approve", Approve.AFTER_HOOKS),
        only=table.choices("only", Condition),
        on_failure=table.choice("on_failure", OnFailure.HOLD),
        without_hooks=table.choice("without_hooks", WithoutHooks.APPROVE),
        run_hooks=table.flag("run_hooks", default=True),
    )


def _values(table: Table, key: str, kind: type[Enum]) -> tuple[str, ...]:
    return tuple(str(one.value) for one in table.choices(key, kind))


def _command(table: Table, number: int) -> Command:
    table.refuse_unknown(MEMBERS)
    for key in ("phase", "run"):
        if key not in table.members:
            table.fault(key, f"a command without {key}", f'write {key} = "…" into it')
    name = table.text("name", f"command-{number}")
    limit = table.duration("limit")
    if limit is not None and limit <= timedelta():
        table.fault("limit", "limit is no time at all", 'give "1s" or more')
    return Command(
        phase=table.choice("phase", Phase.PREPARE),
        hook=Hook(name, _words(table, "run") or (), limit),
        types=_values(table, "types", _EventType),
        sources=_values(table, "sources", _Source),
    )


def _peers(table: Table) -> PeerSettings:
    table.refuse_unknown(MEMBERS)
    url = table.text("url") or None
    urls = table.pairs("urls")
    for key, one in (("url", url), *(("urls", one) for _, one in urls)):
        try:
            parse_endpoint("http://x" if one is None else one.replace("{name}", "x"))
        except Malformed as error:
            table.fault(key, str(error), 'like "http://{name}:8171"')
    if url is not None and "{name}" not in url:
        what = "url is the same for all peers, who then would speak for each other"
        table.fault("url", what, 'write "{name}" into it, or one for each under urls')
    return PeerSettings(
        members=tuple(name for _, name in table.strings("members")),
        url=url,
        urls=tuple((name.casefold(), one) for name, one in urls),
        command=_words(table, "command"),
    )


def _notification(table: Table) -> Notification:
    table.refuse_unknown(MEMBERS)
    url = table.text("url")
    _check_url(table, url)
    template = table.text("template", TEMPLATE)
    try:
        template.format_map(_NOBODY)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        words = ", ".join(f"{{{word}}}" for word in _NOBODY)
        table.fault("template", f"template cannot be filled in ({error})", f"use {words}")
    return Notification(
        url=url,
        on=table.choices("on", Kind) or tuple(Kind),
        template=template,
        content_type=table.choice("content_type", _ContentType.FOR_PROGRAMS).value,
    )


def _check_url(table: Table, url: str) -> None:
    remedy = 'write url = "https://…"'
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        table.fault("url", "url is not a URL", remedy)
        return
    if "://" not in url or not url.isascii() or not url.isprintable() or " " in url:
        table.fault("url", "url is not a URL", remedy)
    elif parts.scheme in ("http", "https") and (not parts.hostname or not has_port):
        table.fault("url", "url has no host, or no port that can be", remedy)
    elif parts.scheme in ("http", "https") and "@" in parts.netloc:
        what = "url has a user in it, which a webhook has not"
        table.fault("url", what, "leave it out, or have apprise tell it by json://")


# Every word that a template may have.
_NOBODY: Final = dict.fromkeys(
    (
        *("name", "kind", "what", "id", "type", "status", "source"),
        *("not_before", "duration", "description", "resources"),
    ),
    "",
)


def _check_together(top: Table, settings: Settings) -> None:
    wanted = {condition for rule in settings.rules for condition in rule.only}
    peers = settings.peers
    can_ask = peers.command is not None or peers.url is not None or peers.urls
    if not can_ask and wanted & {Condition.PEERS_READY, Condition.NOT_LAST}:
        what = "rules ask peers, and nothing says where they are"
        top.fault("rules", what, 'write url = "http://{name}:8171" under [peers]')
    if Condition.NOT_LAST in wanted and not peers.members:
        what = "a rule has not-last, and nothing says who the members are"
        top.fault("rules", what, 'write members = ["web-0", "web-1"] under [peers]')
