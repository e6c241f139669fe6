"""The operators' API: call in, answer out; no sockets."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.events import EventType
from forewarn.core.journal import Actor, Role, What
from forewarn.core.names import MachineName
from forewarn.core.rights import Principal
from forewarn.core.scopes import Enabling, Machine, Scope
from forewarn.errors import (
    Conflict,
    Fenced,
    Forbidden,
    ForewarnError,
    Malformed,
    Refused,
    Unavailable,
    Unfinished,
    Unsuccessful,
)
from forewarn.fabrics.simulated import Behaviour
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.web import calls, control, routes
from forewarn.web.calls import STATUS_OF, Answer, Call
from forewarn.web.control import ROWS, ControlParts
from forewarn.web.counters import Counters
from forewarn.web.routes import Table

ADDRESS = "127.0.0.7"
OPERATOR = Principal(id="1", name="operator", role=Role.OPERATOR)
NOBODYS_ID = "00000000-0000-0000-0000-000000000000"
# Nobody of it ever asked, so that it is not enabled.
QUIET = Scope(
    name="quiet",
    resource_group="rg2",
    enabling=Enabling.ON_REQUEST,
    machines=(Machine(name=MachineName("quiet-0"), addresses=("10.0.0.20",)),),
)


@dataclass
class Service:
    """A service and the operators' API to it, as a handful of functions."""

    world: World = field(default_factory=lambda: World(WEB, QUIET))
    saved: list[Path] = field(default_factory=list)
    unready: str | None = None
    principal: Principal = OPERATOR

    def __post_init__(self) -> None:
        parts = self.world.parts
        self.parts = ControlParts(
            clock=parts.clock,
            books=parts.books,
            desk=parts.desk,
            journals=parts.journals,
            operations=parts.operations,
            apply_fleet=self.apply_fleet,
            reload_fleet=lambda actor: self.apply_fleet('name = "reloaded"', "own.toml", actor),
            backup=self.saved.append,
            ready=lambda: self.unready,
            counters=Counters(),
            setbacks=lambda: 3,
            behave=lambda machine, word: self.world.fabric.behave(
                parts.directory.machine(machine)[1], Behaviour(word)
            ),
            take=lambda machine, impact, takes: self.world.fabric.take(
                parts.directory.machine(machine)[1], impact, takes
            ),
        )

    def apply_fleet(self, text: str, name: str, actor: Actor) -> tuple[str, ...]:
        try:
            declared = tomllib.loads(text)["name"]
        except tomllib.TOMLDecodeError as error:
            raise Malformed(f"{name}: {error}") from error
        return (f"rg1/{declared}: added by {actor.name} from {actor.address}",)

    def ask(self, method: str, target: str, body: Mapping[str, object] | bytes = b"") -> Answer:
        path, _, query = target.partition("?")
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.answer(Call(method=method, path=path, query=query, body=sent, address=ADDRESS))

    def answer(self, call: Call) -> Answer:
        """As `web.app` does it, without sockets."""
        found = Table(control.routes(self.parts)).find(call.path)
        if found is None:
            return routes.no_path(call)
        route = found.route(call.method)
        if route is None:
            return routes.no_method(call, found)
        call = replace(routes.addressed(call, found), principal=self.principal)
        reason = routes.why_not(route, call)
        return routes.answer(route, call) if reason is None else calls.no_right(reason)

    def get(self, target: str) -> Any:  # noqa: ANN401 - JSON is anything
        answer = self.ask("GET", f"/fabric/v1{target}")
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def post(self, target: str, **body: object) -> Any:  # noqa: ANN401 - JSON is anything
        answer = self.ask("POST", f"/fabric/v1{target}", body)
        assert answer.status in {200, 201}, answer.body
        return json.loads(answer.body)

    def announced(self, event_type: EventType = EventType.FREEZE, machine: str = "web-0") -> str:
        return self.world.announce(event_type, machine).id


@pytest.fixture
def service() -> Service:
    return Service()


def test_every_family_of_errors_has_a_status() -> None:
    families = {f for f in ForewarnError.__subclasses__() if f.__module__ == "forewarn.errors"}
    # What clients that wait tell their own callers; no service says so.
    families -= {Unfinished, Unsuccessful}

    assert families <= set(STATUS_OF)


@pytest.mark.parametrize(
    ("error", "status", "family"),
    [
        (Malformed("x"), 400, "Malformed"),
        (Refused("x"), 409, "Refused"),
        (Fenced("x"), 409, "Refused"),
        (Forbidden("x"), 403, "Forbidden"),
        (Conflict(["x"]), 503, "Conflict"),
        (Unavailable("x"), 503, "Unavailable"),
    ],
)
def test_an_error_is_answered_by_its_family(error: ForewarnError, status: int, family: str) -> None:
    answer = calls.refused(error)

    assert answer.status == status
    assert json.loads(answer.body) == {"error": {"code": family, "message": str(error)}}
    assert (("Retry-After", "1") in answer.headers) == (status == 503)


def test_an_error_without_a_family_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="belongs to no family"):
        calls.refused(ForewarnError("x"))


@pytest.mark.parametrize(
    ("authorization", "token"),
    [
        ("", ""),
        ("s3cret", ""),
        ("Bearer", ""),
        ("Basic s3cret", ""),
        ("Bearer s3cret", "s3cret"),
        ("bearer  s3cret", "s3cret"),
    ],
)
def test_a_token_is_what_a_bearer_shows(authorization: str, token: str) -> None:
    assert calls.bearer({"authorization": authorization}) == token


def test_whoever_shows_no_token_is_told_where_to_get_one() -> None:
    refusal = calls.no_token(Call(method="GET", path="/", base="https://here:1"))

    assert refusal.status == 401
    assert refusal.headers == (
        ("WWW-Authenticate", 'Bearer authorization_uri="https://here:1/adfs"'),
    )


@pytest.mark.parametrize(
    "path",
    ["", "/", "/fabric", "/fabric/v1", "/fabric/v1/", "/fabric/v1/event", "/fabric/v1/events/x/y"],
)
def test_an_unknown_path_is_not_found(service: Service, path: str) -> None:
    assert service.ask("GET", path).status == 404


@pytest.mark.parametrize("path", sorted({row.path for row in ROWS}))
def test_a_path_says_which_methods_it_takes(service: Service, path: str) -> None:
    answer = service.ask("PATCH", path.replace("{event}", NOBODYS_ID).replace("{host}", "host-0"))

    assert answer.status == 405
    allowed = ", ".join(row.method for row in ROWS if row.path == path)
    assert answer.headers == (("Allow", allowed),)


def test_head_is_answered_like_get(service: Service) -> None:
    assert service.ask("HEAD", "/healthz") == service.ask("GET", "/healthz")


@pytest.mark.parametrize(
    ("target", "body", "status", "complaint"),
    [
        ("/events", b"{", 400, "cannot be understood"),
        ("/events", {"type": "Freeze", "machines": ["web-0"], "when": 1}, 400, "unknown field"),
        ("/events", {"type": "Freeze"}, 400, "name at least one VM or host"),
        ("/events", {"type": "Freeze", "machines": ["web-9"]}, 404, "no VM web-9"),
        ("/events", {"type": "Freeze", "hosts": ["host-9"]}, 404, "host host-9"),
        ("/events", {"type": "Freeze", "machines": ["quiet-0"]}, 409, "not enabled"),
        ("/events", {"type": "Freeze", "machines": ["web-0"], "notice_seconds": 1}, 409, "minimum"),
        (f"/events/{NOBODYS_ID}/approve", {}, 404, "no event"),
        (f"/events/{NOBODYS_ID}/cancel", {}, 404, "no event"),
        (f"/events/{NOBODYS_ID}/cancel", {"why": "x"}, 400, "unknown field"),
        (f"/events/{NOBODYS_ID}/postpone", {"by_seconds": 60}, 404, "no event"),
        (f"/events/{NOBODYS_ID}/postpone", {}, 400, "give either"),
        (f"/events/{NOBODYS_ID}/resolve", {"result": "failed"}, 404, "no event"),
        (f"/events/{NOBODYS_ID}/resolve", {}, 400, "missing required field"),
        ("/fleet", {}, 400, "toml"),
        ("/fleet", {"toml": "[", "name": "f.toml"}, 400, "f.toml: "),
        ("/fleet/reload", {"name": "x"}, 400, "unknown field"),
        ("/journal/prune", {}, 400, "before"),
        ("/backup", {"path": "here.db"}, 400, "absolute"),
        ("/backup", {"path": "/nowhere/b.db"}, 409, "there is no directory /nowhere"),
        ("/backup", {"path": "/dev/null"}, 409, "exists already"),
        ("/events", {"type": "Freeze", "machines": ["web-8", "web-9"]}, 404, "no VM web-8, web-9"),
        ("/simulated-fabric", {"machine": "web-0", "behavior": "dances"}, 400, "dances"),
        ("/simulated-fabric", {"machine": "web-9", "behavior": "fails"}, 404, "no VM web-9"),
        ("/simulated-fabric", {"machine": "web-0"}, 400, "give behavior; or type and takes"),
        ("/simulated-fabric", {"machine": "web-0", "type": "Freeze"}, 400, "which go together"),
        (
            "/simulated-fabric",
            {"machine": "web-0", "type": "Nap", "takes_seconds": 9},
            400,
            "no type is called 'Nap'",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    service: Service, target: str, body: Mapping[str, object] | bytes, status: int, complaint: str
) -> None:
    before = service.world.journal()

    answer = service.ask("POST", f"/fabric/v1{target}", body)

    assert answer.status == status
    assert complaint in json.loads(answer.body)["error"]["message"]
    assert service.world.journal() == before


@pytest.mark.parametrize(
    ("target", "status", "complaint"),
    [
        ("/events?status=closed", 400, "open or all"),
        ("/events?state=open", 400, "no parameter is called 'state'"),
        ("/events?status=open&status=all", 400, "more than once"),
        ("/events?status=%ff", 400, "cannot be understood"),
        ("/events/nothing", 404, "no event nothing"),
        (f"/events/{NOBODYS_ID}", 404, "no event"),
        ("/journal?limit=0", 400, "from 1 to 1000"),
        ("/journal?limit=1001", 400, "from 1 to 1000"),
        ("/journal?limit=", 400, "from 1 to 1000"),
        ("/journal?limit=٣", 400, "from 1 to 1000"),
        ("/journal?wait=31", 400, "from 0 to 30"),
        ("/journal?wait=-1", 400, "from 0 to 30"),
        ("/journal?wait=0.5", 400, "from 0 to 30"),
        ("/journal?after=soon", 400, "not a cursor"),
        ("/journal?after=999", 409, "does not reach"),
        ("/journal?scope=rg1/nothing", 404, "no scope rg1/nothing"),
        ("/journal?scope=nothing", 404, "no scope nothing"),
        ("/journal?group=nothing", 404, "no scope is in a resource group nothing"),
        ("/journal?since=yesterday", 400, "since is an instant with its time zone"),
        ("/journal?until=2030-01-01T00:00:00", 400, "until is an instant with its time zone"),
        ("/journal?since=9999-01-01T00:00:00Z", 400, "the year 9999 is out of reach"),
        ("/journal?what=exploded", 400, "no what is called 'exploded'"),
        ("/journal?role=king", 400, "no role is called 'king'"),
        ("/fleet?scope=web", 400, "no parameter is called 'scope' here: there is none"),
        ("/journal?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p", 400, "cannot be understood"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    service: Service, target: str, status: int, complaint: str
) -> None:
    answer = service.ask("GET", f"/fabric/v1{target}")

    assert answer.status == status
    assert complaint in json.loads(answer.body)["error"]["message"]


def test_the_fleet_shows_scopes_with_their_machines(service: Service) -> None:
    web, quiet = service.get("/fleet")["scopes"]

    assert (web["scope"], web["resource_group"], web["enabled"]) == ("web", "rg1", True)
    assert [machine["name"] for machine in web["machines"]] == ["web-0", "web-1", "web-2", "web-3"]
    assert (quiet["scope"], quiet["enabled"], quiet["enabling"]) == ("quiet", False, "on-request")


def test_a_scope_that_is_gone_is_left_out_once_its_events_are_over(service: Service) -> None:
    event = service.announced()
    service.post(f"/events/{event}/approve")
    service.world.settle()
    service.world.declare(QUIET)

    still = service.get("/fleet")["scopes"]
    service.world.advance(timedelta(minutes=1))

    assert [(scope["scope"], len(scope["machines"])) for scope in still] == [
        ("web", 0),
        ("quiet", 1),
    ]
    assert [scope["scope"] for scope in service.get("/fleet")["scopes"]] == ["quiet"]


def test_a_fleet_file_is_applied_in_the_operators_name(service: Service) -> None:
    added = "added by operator from 127.0.0.7"

    assert service.post("/fleet", toml='name = "db"', name="f.toml") == {
        "changes": [f"rg1/db: {added}"]
    }
    assert service.post("/fleet/reload") == {"changes": [f"rg1/reloaded: {added}"]}


def test_announcing_makes_one_event_for_each_group(service: Service) -> None:
    """Keeps S15: the machines of one event are of one update domain."""
    body = {"type": "reboot", "hosts": ["host-0", "host-1"], "description": "New kernel"}

    answer = service.ask("POST", "/fabric/v1/events", body)

    assert answer.status == 201
    made = json.loads(answer.body)
    assert [event["resources"] for event in made["events"]] == [["web-0", "web-3"], ["web-1"]]
    assert [event["update_domain"] for event in made["events"]] == [0, 1]
    assert {event["announced_by"] for event in made["events"]} == {"operator"}
    assert {event["description"] for event in made["events"]} == {"New kernel"}
    assert made["unannounced"] == []
    assert service.get("/events")["events"] == made["events"]


def test_what_guests_are_not_told_of_is_listed_apart(service: Service) -> None:
    """Keeps S13: while a scope is disabled, operations run without an event for guests."""
    made = service.post("/events", type="Freeze", machines=["quiet-0"], unannounced=True)

    (event,) = made["unannounced"]
    assert made["events"] == []
    assert (event["announced"], event["status"]) == (False, "Started")


def test_open_events_are_listed_unless_all_are_asked_for(service: Service) -> None:
    first, second = service.announced(), service.announced(EventType.REBOOT, "web-1")
    service.post(f"/events/{first}/cancel")

    def listed(target: str) -> list[str]:
        return [event["event_id"] for event in service.get(target)["events"]]

    assert listed("/events") == listed("/events?status=open") == [second]
    assert listed("/events?status=all") == [first, second]


def test_an_operator_approves_from_outside(service: Service) -> None:
    """Keeps N10: the approval names the operator and the address."""
    event = service.announced()

    approved = service.post(f"/events/{event.lower()}/approve")
    service.world.settle()

    assert approved["status"] == "Scheduled"
    assert approved["approved"] == {
        "by": "operator",
        "role": "operator",
        "address": ADDRESS,
        "at": "2030-01-01T12:00:00Z",
    }
    assert service.get(f"/events/{event}")["status"] == "Started"


def test_an_event_is_postponed_by_a_while_and_to_an_instant(service: Service) -> None:
    """Keeps N5: later only, and every time shown is kept."""
    event = service.announced()

    service.post(f"/events/{event}/postpone", by_seconds=60)
    moved = service.post(f"/events/{event}/postpone", to="2030-01-01T14:00:00+01:00")

    assert moved["not_before"] == "2030-01-01T13:00:00Z"
    assert moved["not_before_earlier"] == ["2030-01-01T12:15:02Z", "2030-01-01T12:16:02Z"]
    body = {"to": "2030-01-01T12:30:00Z"}
    assert service.ask("POST", f"/fabric/v1/events/{event}/postpone", body).status == 409


@pytest.mark.parametrize(("word", "result"), [("completed", "done"), ("failed", "failed")])
def test_an_operator_resolves_what_hangs(service: Service, word: str, result: str) -> None:
    assert service.post("/simulated-fabric", machine="rg1/web-0", behavior="hangs") == {}
    event = service.announced()
    service.post(f"/events/{event}/approve")
    service.world.advance(timedelta(hours=1))

    resolved = service.post(f"/events/{event}/resolve", result=word)

    assert resolved["status"] == "Completed"
    assert [outcome["result"] for outcome in resolved["outcomes"]] == [result]


def test_how_long_an_impact_takes_is_not_what_guests_are_told(service: Service) -> None:
    said = {"type": "Freeze", "takes_seconds": 600}
    assert service.post("/simulated-fabric", machine="rg1/web-0", behavior="obeys", **said) == {}
    event = service.announced()
    service.post(f"/events/{event}/approve")
    service.world.advance(timedelta(seconds=599))
    assert service.get(f"/events/{event}")["status"] == "Started"

    service.world.advance(timedelta(seconds=2))

    ended = service.get(f"/events/{event}")
    assert (ended["status"], ended["duration_seconds"]) == ("Completed", None)


def test_where_the_fabric_is_real_nobody_tells_a_machine_to_fail(service: Service) -> None:
    service.parts = replace(service.parts, behave=None)

    body = {"machine": "web-0", "behavior": "fails"}

    assert service.ask("POST", "/fabric/v1/simulated-fabric", body).status == 404


def test_an_event_of_long_ago_is_shown_from_the_journal(service: Service) -> None:
    """Keeps S23: what happened can be looked up."""
    event = service.announced()
    service.post(f"/events/{event}/cancel")
    service.world.advance(timedelta(days=3))

    assert service.get("/events?status=all") == {"events": []}
    shown = service.get("/events/{" + event.lower() + "}")
    assert (shown["event_id"], shown["status"], shown["scope"]) == (event, "Canceled", "web")
    assert service.ask("POST", f"/fabric/v1/events/{event}/cancel").status == 404


def test_the_journal_is_read_page_by_page(service: Service) -> None:
    """Keeps S23: the log of events, with Completed and Canceled."""
    event = service.announced()
    service.post(f"/events/{event}/cancel")

    first = service.get("/journal?limit=1")
    rest = service.get(f"/journal?after={first['cursor']}")

    assert not first["is_last"]
    assert rest["is_last"]
    assert [entry["what"] for entry in rest["entries"]] == ["announced", "readable", "canceled"]
    last = rest["entries"][-1]
    assert last["event"]["status"] == "Canceled"
    assert last["by"] == {"role": "operator", "name": "operator", "address": ADDRESS}
    assert (last["resource_group"], last["scope"]) == ("rg1", "web")
    assert last["cursor"] == rest["cursor"]


def test_the_journal_is_read_by_event_and_by_scope(service: Service) -> None:
    event = service.announced()
    service.announced(EventType.REBOOT, "web-1")

    of_event = service.get(f"/journal?event={event}")["entries"]
    of_scope = service.get("/journal?scope=RG2/Quiet")["entries"]

    assert {entry["event"]["event_id"] for entry in of_event} == {event}
    assert [entry["what"] for entry in of_scope] == ["roster"]


@pytest.mark.parametrize(
    ("query", "whats"),
    [
        ("group=RG2", ["roster"]),
        ("machine=web-1", ["announced", "readable"]),
        ("type=freeze", ["announced", "readable", "canceled"]),
        ("what=canceled&actor=Operator&role=operator", ["canceled"]),
        ("since=2030-01-01T13:00:00%2B01:00&limit=2", ["roster", "roster"]),
        ("until=2030-01-01T12:00:00Z", []),
    ],
)
def test_the_journal_is_read_by_whatever_is_known(
    service: Service, query: str, whats: list[str]
) -> None:
    """Keeps S23: what happened can be looked up."""
    event = service.announced()
    service.announced(EventType.REBOOT, "web-1")
    service.post(f"/events/{event}/cancel")

    entries = service.get(f"/journal?{query}")["entries"]

    assert [entry["what"] for entry in entries] == whats


def test_a_reader_at_the_end_may_wait_and_reads_on_from_there(service: Service) -> None:
    end = service.get("/journal")["cursor"]
    asked = Call(method="GET", path="/fabric/v1/journal", query=f"after={end}&wait=5&event=X")
    service.announced()

    answer = service.answer(asked)

    assert json.loads(answer.body)["entries"] == []
    assert answer.later is not None
    assert answer.later.wait == timedelta(seconds=5)
    assert f"after={service.get('/journal')['cursor']}" in answer.later.call.query


def test_a_reader_with_news_does_not_wait(service: Service) -> None:
    assert service.ask("GET", "/fabric/v1/journal?wait=5").later is None


def test_pruning_forgets_the_old_and_is_written_down(service: Service) -> None:
    service.world.advance(timedelta(days=1))
    service.announced()

    pruned = service.post("/journal/prune", before="2030-01-02T00:00:00Z")

    assert pruned["pruned"] > 0
    entries = service.get("/journal")["entries"]
    assert entries[0]["what"] == "announced"
    assert (entries[-1]["what"], entries[-1]["scope"]) == ("pruned", "")


def test_a_backup_is_written_down_before_it_is_taken(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "f.db"

    assert service.post("/backup", path=str(file)) == {"path": str(file)}

    last = service.world.journal()[-1]
    assert (last.what, last.note, last.at) == (What.BACKED_UP, f"to {file}", NOON)
    assert service.saved == [file]


def test_a_scope_may_be_meant_by_its_name_alone_while_no_other_has_it(service: Service) -> None:
    of_scope = service.get("/journal?scope=Quiet")["entries"]
    service.world.declare(WEB, QUIET, replace(WEB, resource_group="rg9", machines=()))

    answer = service.ask("GET", "/fabric/v1/journal?scope=web")

    assert [entry["what"] for entry in of_scope] == ["roster"]
    assert answer.status == 409
    assert "say which of rg1/web, rg9/web" in json.loads(answer.body)["error"]["message"]


def test_probes_tell_whether_the_service_lives_and_is_ready(service: Service) -> None:
    assert service.ask("GET", "/healthz").body == b'{"status":"ok"}'
    assert service.ask("GET", "/readyz").status == 200

    service.unready = "the store is away"

    assert service.ask("GET", "/healthz").status == 200
    answer = service.ask("GET", "/readyz")
    assert answer.status == 503
    assert json.loads(answer.body) == {"status": "not ready", "reason": "the store is away"}


def test_metrics_are_told_as_prometheus_reads_them(service: Service) -> None:
    answer = service.ask("GET", "/metrics")

    assert answer.status == 200
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    assert b"forewarn_conductor_setbacks_total 3.0" in answer.body


OWNER = Principal(id="2", name="olga", role=Role.OWNER, groups=("rg1",))
STRANGER = Principal(id="3", name="otto", role=Role.OWNER, groups=("rg2",))
READER = Principal(id="4", name="rosa", role=Role.READER)


def test_an_owner_sees_and_steers_what_is_of_its_groups(service: Service) -> None:
    """Keeps N5: postponed and canceled by the owner of the VM."""
    event_id = service.announced(EventType.REBOOT)
    service.principal = OWNER

    assert [scope["scope"] for scope in service.get("/fleet")["scopes"]] == ["web"]
    assert [event["event_id"] for event in service.get("/events")["events"]] == [event_id]
    assert service.get(f"/events/{event_id}")["status"] == "Scheduled"
    assert {entry["scope"] for entry in service.get("/journal")["entries"]} == {"web"}
    assert service.post(f"/events/{event_id}/postpone", by_seconds=60)["status"] == "Scheduled"
    assert service.post(f"/events/{event_id}/cancel")["status"] == "Canceled"
    assert service.world.journal()[-1].actor == Actor(Role.OWNER, "olga", ADDRESS)


def test_an_owner_of_other_groups_is_told_nothing(service: Service) -> None:
    event_id = service.announced(EventType.REBOOT)
    service.principal = STRANGER

    assert service.get("/events")["events"] == []
    assert {entry["scope"] for entry in service.get("/journal")["entries"]} <= {"quiet"}
    for method, path in (("GET", ""), ("POST", "/approve"), ("POST", "/cancel")):
        assert service.ask(method, f"/fabric/v1/events/{event_id}{path}").status == 403
    assert service.world.event(event_id).approval is None


def test_an_old_event_is_the_business_of_its_group_alone(service: Service) -> None:
    event_id = service.announced(EventType.FREEZE)
    service.post(f"/events/{event_id}/cancel")
    service.world.advance(timedelta(days=2))
    service.principal = STRANGER

    assert service.ask("GET", f"/fabric/v1/events/{event_id}").status == 403


def test_a_reader_changes_nothing(service: Service) -> None:
    event_id = service.announced(EventType.REBOOT)
    service.principal = READER

    assert service.get("/events")["events"]
    assert service.ask("POST", f"/fabric/v1/events/{event_id}/cancel").status == 403
    assert service.ask("POST", "/fabric/v1/fleet/reload").status == 403
